"""What the parts of the kernel share: buffers, coordinates and addresses of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.bits.plan import BitsPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


@dataclass
class Block:
    """Buffers and coordinates of one block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: BitsPlan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    shared: Any
    base: Any
    """Byte address of the block's shared memory."""
    thread: Any
    warp: Any
    """Index of the warp; the same for all its lanes as the compiler sees it."""
    lane: Any
    slice_: Any
    """Index among the blocks that share an input."""
    group: Any
    """Group of 8 images."""
    first_row: Any
    """First output row."""

    @property
    def first_input(self) -> Any:
        """Row of the image that is staged first; before the image it is negative."""
        w = self.plan.workload
        return self.first_row * w.stride - w.pad

    def row_barrier(self, row: Any) -> Any:
        """Byte address of the barrier of a staged row."""
        return self.base + T.uint32(self.plan.barrier_base) + row * T.uint32(8)

    @property
    def weight_barrier(self) -> Any:
        """Byte address of the barrier of weights and table."""
        return self.row_barrier(T.uint32(self.plan.staged_rows))

    def wait(self, address: Any) -> None:
        """Wait for the only phase of a barrier."""
        done = registers("done", 1)
        T.buffer_store(done, T.uint32(0), [0])
        with T.While(done[0] == T.uint32(0)):
            op.barrier_try_wait(done[0], address, T.uint32(0))


def coordinates(plan: BitsPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> Block:
    """The block that a thread belongs to, from its indices in the grid."""
    index, _ = T.cta_id([plan.launch.grid[0], 1])
    thread = T.thread_id([plan.threads])
    for name, value in (("index", index), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=1024)
    IRBuilder.name("shared", shared)
    warp = registers("warp_word", 1)
    op.first_lane(warp[0], T.cast(thread // 32, "uint32"))
    place = bind("place", index // plan.slices)
    return Block(
        plan, activations, weights, parameters, output, shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warp=bind("warp", T.cast(warp[0], "int32")),
        lane=bind("lane", thread % 32),
        slice_=bind("slice", index % plan.slices),
        group=bind("group", place // plan.segments),
        first_row=bind("first_row", place % plan.segments * plan.config.tile_rows),
    )  # fmt: skip

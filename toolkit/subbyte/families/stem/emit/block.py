"""What the parts of the kernel share: buffers, coordinates and addresses of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.stem.plan import StemPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


@dataclass
class Block:
    """Buffers and coordinates of one block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: StemPlan
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
    """Index among the blocks that share an input: of the output channels."""
    segment: Any
    """Part of the output row."""
    group: Any
    """Group of 8 images."""
    first_rows: Any
    """First group of ``tile_rows`` output rows."""

    @property
    def image(self) -> Any:
        """The lane's image in its group, for both pixels of the warp."""
        return self.lane // 4

    @property
    def warpgroup(self) -> Any:
        """Index of the warpgroup."""
        return self.warp // 4

    def buffer_address(self, buffer: Any) -> Any:
        """Byte address of a buffer of input rows."""
        return self.base + T.uint32(self.plan.rows_base) + buffer * T.uint32(self.plan.buffer_bytes)

    def barrier(self, buffer: Any) -> Any:
        """Byte address of the barrier that counts the bytes of a buffer's rows; the first one's also what all turns
        need."""
        return self.base + T.uint32(self.plan.barrier_base) + buffer * T.uint32(8)

    def wait(self, address: Any, parity: Any) -> None:
        """Wait at a barrier until the phase of this parity has ended."""
        done = registers("done", 1)
        T.buffer_store(done, T.uint32(0), [0])
        with T.While(done[0] == T.uint32(0)):
            op.barrier_try_wait(done[0], address, parity)


def coordinates(plan: StemPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> Block:
    """The block that a thread belongs to, from its indices in the grid."""
    index, _ = T.cta_id([plan.launch.grid[0], 1])
    thread = T.thread_id([plan.config.threads])
    for name, value in (("index", index), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=128)
    IRBuilder.name("shared", shared)
    warp = registers("warp_word", 1)
    op.first_lane(warp[0], T.cast(thread // 32, "uint32"))
    place = bind("place", index // plan.slices)
    rows = bind("rows", place // plan.config.segments)
    return Block(
        plan, activations, weights, parameters, output, shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warp=bind("warp", T.cast(warp[0], "int32")),
        lane=bind("lane", thread % 32),
        slice_=bind("slice", index % plan.slices),
        segment=bind("segment", place % plan.config.segments),
        group=bind("group", rows // plan.row_blocks),
        first_rows=bind("first_rows", rows % plan.row_blocks * plan.config.turns),
    )  # fmt: skip

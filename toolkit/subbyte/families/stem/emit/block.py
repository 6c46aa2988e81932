"""What the parts of the kernel share: a warpgroup's buffers, coordinates and addresses."""

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
    """Buffers and coordinates of a thread's warpgroup. Every field but ``plan`` is a TIRx buffer or expression."""

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
    """Index of the warp, known to the compiler to be the same for all its lanes."""
    lane: Any
    slice_: Any
    """Index among the blocks that share an input: selects the output channels."""
    place: Any
    """Index among the blocks of a slice."""
    first_turn: Any
    """First turn of the warpgroup."""

    @property
    def image(self) -> Any:
        """The lane's image in its group, for both pixels of the warp."""
        return self.lane // 4

    @property
    def warpgroup(self) -> Any:
        """Index of the warpgroup."""
        return self.warp // 4

    @property
    def barrier(self) -> Any:
        """Byte address of the barrier that counts the bytes of weights and parameters."""
        return self.base + T.uint32(self.plan.barrier_base)

    def buffer_address(self, buffer: Any) -> Any:
        """Byte address of one of the warpgroup's buffers of strings."""
        index = T.cast(self.warpgroup * self.plan.buffers, "uint32") + buffer
        return self.base + T.uint32(self.plan.strings_base) + index * T.uint32(self.plan.buffer_bytes)

    def meet(self) -> None:
        """Synchronize all warps of the warpgroup."""
        op.named_barrier(1 + self.warpgroup, 128, wait=True)

    def wait(self) -> None:
        """Wait until weights and parameters have arrived."""
        done = registers("done", 1)
        T.buffer_store(done, T.uint32(0), [0])
        with T.While(done[0] == T.uint32(0)):
            op.barrier_try_wait(done[0], self.barrier, T.uint32(0))


@dataclass
class Turn:
    """What a turn computes, as expressions: a group of 8 images, a group of output rows, a segment of the rows."""

    group: Any
    rows: Any
    segment: Any


def coordinates(plan: StemPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> Block:
    """The warpgroup of a thread, from its indices in the grid."""
    index, _ = T.cta_id([plan.launch.grid[0], 1])
    thread = T.thread_id([plan.config.threads])
    for name, value in (("index", index), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=128)
    IRBuilder.name("shared", shared)
    word = registers("warp_word", 1)
    op.first_lane(word[0], T.cast(thread // 32, "uint32"))
    warp = bind("warp", T.cast(word[0], "int32"))
    place = bind("place", index // plan.slices)
    return Block(
        plan, activations, weights, parameters, output, shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warp=warp,
        lane=bind("lane", thread % 32),
        slice_=bind("slice", index % plan.slices),
        place=place,
        first_turn=bind("first_turn", (place * plan.config.consumers + warp // 4) * plan.config.turns),
    )  # fmt: skip


def turn_of(plan: StemPlan, number: Any) -> Turn:
    """A turn by its index: along the rows of a segment first, then segments, then groups of images."""
    above = bind("above", T.truncdiv(number, T.int32(plan.row_groups)))
    return Turn(
        bind("group", T.truncdiv(above, T.int32(plan.config.segments))),
        bind("rows", T.truncmod(number, T.int32(plan.row_groups))),
        bind("segment", T.truncmod(above, T.int32(plan.config.segments))),
    )

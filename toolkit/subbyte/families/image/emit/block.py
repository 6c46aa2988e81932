"""Coordinates of a block and a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.image.plan import ImagePlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


@dataclass(frozen=True)
class Block:
    """Buffers and coordinates."""

    plan: ImagePlan
    activations: Any
    output: Any
    parameters: Any
    weights: Any
    shared: Any
    base: Any
    """Byte address of the shared memory."""
    thread: Any
    warpgroup: Any
    member: Any
    lane: Any
    rank: Any
    """Rank among the blocks that share the input channels."""
    filter_block: Any
    image: Any
    first: Any
    """First place of the block's tile."""

    @property
    def m(self) -> Any:
        """Index of a warpgroup along the output channels."""
        return self.warpgroup % self.plan.config.filter_warpgroups

    @property
    def part(self) -> Any:
        """Its index along the input channels, within the block."""
        return self.warpgroup // self.plan.config.filter_warpgroups

    @property
    def way(self) -> Any:
        """Its index along the input channels, among all blocks of the cluster."""
        return self.rank * self.plan.config.channel_warpgroups + self.part

    @property
    def tile(self) -> Any:
        """A warpgroup's tile of 64 output channels."""
        return self.filter_block * self.plan.config.filter_warpgroups + self.m

    @property
    def barrier(self) -> Any:
        """Byte address of the barrier that counts partial sums."""
        return self.base + T.uint32(self.plan.barrier_base)


def coordinates(plan: ImagePlan, activations: Any, output: Any, parameters: Any, weights: Any) -> Block:
    """From the thread's indices in the grid."""
    column, place = T.cta_id(list(plan.grid))
    thread = T.thread_id([plan.config.threads])
    for name, value in (("column", column), ("place", place), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=1024)
    IRBuilder.name("shared", shared)
    warpgroup = registers("warpgroup", 1)
    op.first_lane(warpgroup[0], T.cast(thread // 128, "uint32"))
    return Block(
        plan=plan, activations=activations, output=output, parameters=parameters, weights=weights, shared=shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))), thread=thread,
        warpgroup=bind("wg", T.cast(warpgroup[0], "int32")), member=bind("member", thread % 128),
        lane=bind("lane", thread % 32), rank=bind("rank", column % plan.config.cluster_split_k),
        filter_block=bind("filter_block", column // plan.config.cluster_split_k),
        image=bind("image", place // plan.tiles), first=bind("first", place % plan.tiles * plan.config.pixels),
    )  # fmt: skip

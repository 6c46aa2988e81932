"""Coordinates, addresses and barriers of a block whose depth is processed in stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block, indices
from subbyte.families.bits.ring.plan import BAND, RingPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


@dataclass
class RingBlock(Block):
    """A block with its current tile."""

    plan: RingPlan
    rank: Any
    """The block's rank in its cluster."""
    cluster: Any
    """Index of the cluster."""
    first_pixel: Any = None
    """First pixel of the block's tile, among all pixels."""
    table_place: Any = None
    """Which of the tables belongs to the tile."""

    @property
    def table(self) -> Any:
        """Index of the first word of the tile's table in shared memory."""
        return self.plan.table_base // 4 + self.table_place * self.plan.table_words

    @property
    def pixel_rank(self) -> Any:
        """Rank among the blocks that share weights."""
        return self.rank % self.plan.config.share_weights

    @property
    def channel_rank(self) -> Any:
        """Rank among the blocks that share activations."""
        return self.rank // self.plan.config.share_weights

    def full(self, slot: Any) -> Any:
        """Byte address of the barrier that signals that a stage has arrived."""
        return self.base + T.uint32(self.plan.barrier_base) + slot * T.uint32(8)

    def empty(self, slot: Any) -> Any:
        """Byte address of the barrier that signals that no block of the cluster reads a stage any more."""
        return self.full(slot) + T.uint32(8 * self.plan.config.stages)

    def stage(self, slot: Any) -> Any:
        """Byte address of a stage."""
        return self.base + slot * T.uint32(self.plan.stage_bytes)

    def await_phase(self, barrier: Any, parity: Any) -> None:
        """Wait until a barrier's phase with this parity has completed."""
        done = registers("done", 1)
        T.buffer_store(done, T.uint32(0), [0])
        with T.While(done[0] == T.uint32(0)):
            op.barrier_try_wait(done[0], barrier, parity)


@dataclass
class RingPlace:
    """A warp's current stage, as registers: its slot, and the parity of the barriers' phase."""

    slot: Any
    parity: Any

    @classmethod
    def begin(cls) -> RingPlace:
        """The first stage."""
        place = cls(registers("slot", 1), registers("parity", 1))
        T.buffer_store(place.slot, T.uint32(0), [0])
        T.buffer_store(place.parity, T.uint32(0), [0])
        return place

    def advance(self, stages: int) -> None:
        """Advance to the next stage."""
        following = bind("following", self.slot[0] + T.uint32(1))
        wraps = bind("wraps", following == T.uint32(stages))
        T.buffer_store(self.parity, T.Select(wraps, self.parity[0] ^ T.uint32(1), self.parity[0]), [0])
        T.buffer_store(self.slot, T.Select(wraps, T.uint32(0), following), [0])


def coordinates(plan: RingPlan, buffers: Mapping[str, Any]) -> RingBlock:
    """The block of a thread, from its indices in the grid."""
    index, thread, shared, warp = indices(plan)
    return RingBlock(
        plan, buffers["A"], buffers["Wt"], buffers.get("Prm"), buffers["Out"], None, None, shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warp=bind("warp", T.cast(warp[0], "int32")),
        lane=bind("lane", thread % 32),
        slice_=None,
        group=T.int32(0),
        first_row=T.int32(0),
        first_column=0,
        rank=bind("rank", index % plan.cluster),
        cluster=bind("cluster", index // plan.cluster),
    )  # fmt: skip


def tile_of(block: RingBlock, turn: Any) -> tuple[Any, Any, Any]:
    """For a turn: whether the cluster has a tile left, the tile's first pixel and its output channels in this block.

    Tiles cover a band of neighbouring pixels first, then the next output channels.
    """
    plan = block.plan
    tiles = plan.pixel_tiles * plan.channel_tiles
    number = bind("number", turn * plan.clusters + block.cluster)
    exists = True if tiles % plan.clusters == 0 else bind("exists", number < tiles)
    band = bind("band", number // (BAND * plan.channel_tiles))
    within = bind("within", number % (BAND * plan.channel_tiles))
    rest = plan.pixel_tiles % BAND
    height: Any = T.int32(BAND)
    if rest:
        height = bind("height", T.Select(band == plan.pixel_tiles // BAND, T.int32(rest), T.int32(BAND)))
    row = bind("pixel_tile", band * BAND + within % height)
    column = bind("channel_tile", within // height)
    first = bind("first_pixel", (row * plan.config.share_weights + block.pixel_rank) * plan.block_pixels)
    return exists, first, bind("slice", column * plan.config.share_pixels + block.channel_rank)

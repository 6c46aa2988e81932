"""The copying warps: stage by stage, each as soon as no block in the cluster reads its buffer's former contents."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.ring.emit.block import RingBlock, RingPlace, tile_of
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, when
from subbyte.workload.conv import ceil_div
from subbyte.workload.precision import SUMS

COPIERS = 4
"""Number of copying warps."""


def produce(block: RingBlock) -> None:
    """All stages of all tiles. The pixels of a stage are divided among the warps, since a warp issues its lanes' copies
    one after the other; the first lane also copies weights."""
    plan = block.plan
    if plan.config.dependent_launch:
        op.wait_for_previous_launch()
    place = RingPlace.begin()
    with loop("turn", plan.turns, T.serial) as turn:
        exists, first, slice_ = tile_of(block, turn)
        with when(exists), loop("stage", plan.tile_stages, T.serial) as stage:
            block.await_phase(block.empty(place.slot[0]), place.parity[0] ^ T.uint32(1))
            _copy_stage(block, place.slot[0], stage, turn, first, slice_)
            place.advance(plan.config.stages)
    if plan.config.dependent_launch:
        op.allow_next_launch()


def _copy_stage(block: RingBlock, slot: Any, stage: Any, turn: Any, first: Any, slice_: Any) -> None:
    """Data may arrive before it is announced: a barrier's phase ends no earlier than the announcement."""
    plan = block.plan
    full, start = block.full(slot), bind("stage_at", block.stage(slot))
    pixel_bytes = _of_stage(plan.tile_stages, stage, plan.pixel_stage_bytes)
    weight_bytes = _of_stage(plan.tile_stages, stage, plan.weight_stage_bytes)
    with when(T.And(block.warp == 4 * plan.config.consumers, block.lane == 0)):
        table = T.Select(stage == 0, T.int32(4 * plan.table_words), T.int32(0))
        op.barrier_expect(full, plan.block_pixels * pixel_bytes + weight_bytes + table)
        _copy_weights(block, full, start, stage, slice_, weight_bytes)
        with when(stage == 0):
            _copy_table(block, full, turn, slice_)
    T.evaluate(T.cuda.warp_sync())
    _copy_pixels(block, full, start, stage, first, pixel_bytes)


def _copy_weights(block: RingBlock, full: Any, start: Any, stage: Any, slice_: Any, size: Any) -> None:
    plan, others = block.plan, block.plan.config.share_weights
    word = slice_ * plan.slice_words + stage * (plan.weight_stage_bytes(False) // 4)
    target, ranks, share = start + T.uint32(plan.weight_base), None, size
    if others > 1:
        share = size // others
        mine = bind("mine", block.pixel_rank * share)
        word, target = word + mine // 4, target + T.cast(mine, "uint32")
        ranks = _mask(T.uint32((1 << others) - 1) << T.cast(block.channel_rank * others, "uint32"))
    op.bulk_copy(target, block.weights.ptr_to([word]), share, full, ranks)


def _copy_table(block: RingBlock, full: Any, turn: Any, slice_: Any) -> None:
    """The thresholds are a separate argument; if sums are the output, the addends follow
    the weights."""
    plan, size = block.plan, 4 * block.plan.table_words
    target = block.base + T.cast(plan.table_base + turn % plan.tables * size, "uint32")
    if plan.output == SUMS:
        pointer = block.weights.ptr_to([slice_ * plan.slice_words + plan.weight_bytes // 4])
    else:
        pointer = block.parameters.ptr_to([slice_ * plan.table_words])
    op.bulk_copy(target, pointer, size, full)


def _copy_pixels(block: RingBlock, full: Any, start: Any, stage: Any, first: Any, pixel_bytes: Any) -> None:
    """Pixels beyond the last one are copies of it; their sums are not stored."""
    plan, others = block.plan, block.plan.config.share_pixels
    share, ranks = plan.block_pixels // others, None
    each = ceil_div(share, COPIERS)
    index: Any = bind("copied", (block.warp - 4 * plan.config.consumers) * each + block.lane)
    conditions = [block.lane < each, *([index < share] if share % COPIERS else [])]
    if others > 1:
        index = index + block.channel_rank * share
        everyone = sum(1 << rank * plan.config.share_weights for rank in range(others))
        ranks = _mask(T.uint32(everyone) << T.cast(block.pixel_rank, "uint32"))
    with when(every(conditions)):
        pixel = first + index
        if plan.view.w % (plan.block_pixels * plan.config.share_weights):
            pixel = T.min(pixel, plan.view.w - 1)
        word = pixel * (plan.pixel_bytes // 4) + stage * (plan.pixel_stage_bytes(False) // 4)
        target = start + T.cast(index * plan.pixel_stage_bytes(False), "uint32")
        op.bulk_copy(target, block.activations.ptr_to([word]), pixel_bytes, full, ranks)


def _of_stage(stages: int, stage: Any, size: Any) -> Any:
    """Bytes of a stage; the last one of a tile may have fewer."""
    if size(True) == size(False):
        return T.int32(size(False))
    return bind("size", T.Select(stage == stages - 1, T.int32(size(True)), T.int32(size(False))))


def _mask(ranks: Any) -> Any:
    return bind("ranks", T.cast(ranks, "uint16"))

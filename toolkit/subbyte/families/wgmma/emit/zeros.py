"""Zeros in the ring: the columns left and right of the image, and behind the slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit import instructions as op
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.rows import PIECE, Columns
from subbyte.tirx.emit import bind, registers, when


def zero_padding(block: Block, where: Columns) -> None:
    """Fill the columns of the ring that lie left and right of the image with zeros, for good.

    Every warpgroup does it for the slots that it is the first to fill: the fence and the arrival behind its first part
    say that the zeros are there too.
    """
    config = block.plan.knobs
    if config.producers > 1:
        _zero_slots(block, where, _first_filled(block))
        return
    stages = block.plan.stages
    first = bind("first_slot", T.min(block.warpgroup, config.consumers))
    slots = T.Select(block.warpgroup < config.consumers, T.int32(1), T.int32(stages - config.consumers))
    _zero_slots(
        block, where, Share(block.member, 128, first, slots, block.warpgroup == min(stages - 1, config.consumers))
    )


def _first_filled(block: Block) -> Share:
    """The slots that a warpgroup is the first to fill, where producers take turns."""
    config = block.plan.knobs
    ring, consumers, producers = block.plan.stages, config.consumers, config.producers
    behind = T.max(ring - block.warpgroup + (producers - 1), 0) // producers
    slots = T.Select(block.warpgroup < consumers, T.int32(1), behind)
    last = ring - 1 if ring <= consumers else consumers + (ring - 1 - consumers) % producers
    return Share(block.member, 128, block.warpgroup, slots, block.warpgroup == last, producers)


@dataclass
class Share:
    """Who fills what with zeros: the thread among ``threads``, the slots, whether the end of the ring is theirs, and
    how far apart the slots lie."""

    thread: Any
    threads: int
    first: Any
    slots: Any
    last: Any
    apart: int = 1


def _zero_slots(block: Block, where: Columns, share: Share) -> None:
    plan = block.plan
    columns = plan.left_zeros + plan.right_zeros
    if columns:
        pieces = plan.part_rows * plan.channels * columns * (plan.column_bytes // PIECE)
        _each(share, pieces, lambda slot, i: _zero(block, where, slot, i))
    pieces = plan.slack_columns * (plan.column_bytes // PIECE)
    behind = plan.slot_bytes - (plan.slack_columns * plan.column_bytes if plan.separate else 0)

    def zero_behind(slot: Any, piece: Any) -> None:
        _store_zeros(block, slot * plan.slot_bytes + behind + piece * PIECE)

    if pieces and plan.separate:
        _each(share, pieces, zero_behind)
    elif pieces:
        with when(share.last):
            _each(replace(share, first=block.plan.stages - 1, slots=1), pieces, zero_behind)


def _each(share: Share, pieces: int, emit: Callable[[Any, Any], None]) -> None:
    """``emit(slot, piece)`` for all pieces of the slots of a share."""
    index = registers("piece", 1, "int32")
    T.buffer_store(index, share.thread, [0])
    count = bind("pieces", share.slots * pieces)
    with T.While(index[0] < count):
        emit(share.first + index[0] // pieces * share.apart, index[0] % pieces)
        T.buffer_store(index, index[0] + share.threads, [0])


def _zero(block: Block, where: Columns, slot: Any, index: Any) -> None:
    plan = block.plan
    left, right = plan.left_zeros, plan.right_zeros
    pieces = plan.column_bytes // PIECE
    plane, place = index // ((left + right) * pieces), index // pieces % (left + right)
    column = place
    if right:
        column = place + T.Select(place >= left, T.int32(plan.pitch - left - right), T.int32(0))
    outside: Any = True
    if plan.x_tiles > 1:
        low, high = plan.col_range
        outside = T.Or(where.tile + column < low, where.tile + column > high)
    with when(outside):
        start = slot * plan.slot_bytes + plane * (plan.pitch * plan.column_bytes)
        _store_zeros(block, start + column * plan.column_bytes + index % pieces * PIECE)


def _store_zeros(block: Block, offset: Any) -> None:
    op.store_shared16(block.base + T.cast(offset, "uint32"), [T.uint32(0)] * 4)

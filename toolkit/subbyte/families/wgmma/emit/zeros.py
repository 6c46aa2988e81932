"""Zeros in the pipeline: the columns left and right of the image, after the stage buffers, and next to an odd block of
channels if an instruction takes two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.rows import PIECE, Columns
from subbyte.families.wgmma.memory import PIXEL_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers, when


def zero_padding(block: Block, where: Columns) -> None:
    """Fill the columns of the stage buffers that are left and right of the image with zeros, once and for all.

    Each warpgroup does so for the stage buffers that it is the first to fill: the fence and the arrival after its
    first stage signal that the zeros are there too.
    """
    config = block.plan.knobs
    if block.plan.zero_bytes:  # the first warpgroup, whose stage every consumer waits for
        with when(T.And(block.warpgroup == 0, block.member < block.plan.zero_bytes // PIECE)):
            _store_zeros(block, block.plan.zero_base + block.member * PIECE)
    if config.producers > 1:
        _zero_buffers(block, where, _first_filled(block))
        return
    stages = block.plan.stages
    first = bind("first_slot", T.min(block.warpgroup, config.consumers))
    buffers = T.Select(block.warpgroup < config.consumers, T.int32(1), T.int32(stages - config.consumers))
    _zero_buffers(
        block, where, Share(block.member, 128, first, buffers, block.warpgroup == min(stages - 1, config.consumers))
    )


def _first_filled(block: Block) -> Share:
    """The stage buffers that a warpgroup is the first to fill, if producers alternate."""
    config = block.plan.knobs
    depth, consumers, producers = block.plan.stages, config.consumers, config.producers
    behind = T.max(depth - block.warpgroup + (producers - 1), 0) // producers
    buffers = T.Select(block.warpgroup < consumers, T.int32(1), behind)
    last = depth - 1 if depth <= consumers else consumers + (depth - 1 - consumers) % producers
    return Share(block.member, 128, block.warpgroup, buffers, block.warpgroup == last, producers)


@dataclass
class Share:
    """The distribution of the zero filling: the thread among ``threads``, the stage buffers, whether the last one is
    included, and their distance."""

    thread: Any
    threads: int
    first: Any
    buffers: Any
    last: Any
    apart: int = 1


def _zero_buffers(block: Block, where: Columns, share: Share) -> None:
    plan = block.plan
    columns = plan.left_zeros + plan.right_zeros
    if columns:
        pieces = plan.stage_rows * plan.row_planes * columns * (plan.column_step // PIECE)
        _each(share, pieces, lambda buffer, i: _zero(block, where, buffer, i))
    if plan.kept_channels > plan.channels:
        cells = plan.stage_rows * plan.pitch * plan.knobs.image_groups
        _each(share, cells * (PIXEL_BYTES // PIECE), lambda buffer, i: _zero_block(block, buffer, i))
    pieces = plan.slack_columns * (plan.column_step // PIECE)
    behind = plan.buffer_bytes - (plan.slack_columns * plan.column_step if plan.separate else 0)

    def zero_behind(buffer: Any, piece: Any) -> None:
        _store_zeros(block, buffer * plan.buffer_bytes + behind + piece * PIECE, plan.staged_fill)

    if pieces and plan.separate:
        _each(share, pieces, zero_behind)
    elif pieces:
        with when(share.last):
            _each(replace(share, first=block.plan.stages - 1, buffers=1), pieces, zero_behind)


def _each(share: Share, pieces: int, emit: Callable[[Any, Any], None]) -> None:
    """``emit(buffer, piece)`` for all pieces of the stage buffers of a share."""
    index = registers("piece", 1, "int32")
    T.buffer_store(index, share.thread, [0])
    count = bind("pieces", share.buffers * pieces)
    with T.While(index[0] < count):
        emit(share.first + index[0] // pieces * share.apart, index[0] % pieces)
        T.buffer_store(index, index[0] + share.threads, [0])


def _zero(block: Block, where: Columns, buffer: Any, index: Any) -> None:
    plan = block.plan
    left, right = plan.left_zeros, plan.right_zeros
    pieces = plan.column_step // PIECE
    plane, place = index // ((left + right) * pieces), index // pieces % (left + right)
    column = place
    if right:
        column = place + T.Select(place >= left, T.int32(plan.pitch - left - right), T.int32(0))
    outside: Any = True
    if plan.x_tiles > 1:
        low, high = plan.col_range
        outside = T.Or(where.tile + column < low, where.tile + column > high)
    conditions = [outside]
    if plan.kept_channels > plan.channels:  # the block after the others gets its zeros elsewhere
        piece = index % (plan.kept_channels * PIXEL_BYTES // PIECE)
        conditions.append(piece < plan.channels * PIXEL_BYTES // PIECE)
    with when(every(conditions)):
        start = buffer * plan.buffer_bytes + plane * (plan.pitch * plan.column_step)
        _store_zeros(block, start + column * plan.column_step + index % pieces * PIECE, plan.staged_fill)


def _zero_block(block: Block, buffer: Any, index: Any) -> None:
    """One piece of the zeros after the last block of channels of a pixel."""
    plan = block.plan
    cell, piece = index // (PIXEL_BYTES // PIECE), index % (PIXEL_BYTES // PIECE)
    place = (cell * plan.kept_channels + plan.channels) * PIXEL_BYTES + piece * PIECE
    _store_zeros(block, buffer * plan.buffer_bytes + place)


def _store_zeros(block: Block, offset: Any, word: int = 0) -> None:
    op.store_shared16(block.base + T.cast(offset, "uint32"), [T.uint32(word)] * 4)

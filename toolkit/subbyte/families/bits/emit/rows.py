"""Filling shared memory: one warp copies weights and rows, the others write everything outside the image."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block
from subbyte.families.bits.emit.order import COUNTERS
from subbyte.families.bits.tiles import PIECE_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, when
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.operand import BLOCK_BITS
from subbyte.workload.precision import SUMS


def set_up(block: Block) -> None:
    """One thread initializes the barriers and starts copying the weights and the table, which no launch writes."""
    plan = block.plan
    with loop("barrier", plan.staged_rows + 1) as barrier:
        op.barrier_init(block.row_barrier(T.cast(barrier, "uint32")), 1)
    if plan.config.counted:
        with loop("windows", plan.config.tile_rows) as row:
            op.barrier_init(block.window_barrier(T.cast(row, "uint32")), COUNTERS // 32)
    op.barrier_init_fence()
    bar, weights = block.weight_barrier, plan.slice_words
    op.barrier_expect(bar, 4 * (weights + (0 if plan.output == SUMS else plan.table_words)))
    start = block.base + T.uint32(plan.weight_base)
    op.bulk_copy(start, block.weights.ptr_to([block.slice_ * weights]), 4 * weights, bar)
    if plan.output != SUMS:
        pointer = block.parameters.ptr_to([block.slice_ * plan.table_words])
        op.bulk_copy(block.base + T.uint32(plan.table_base), pointer, 4 * plan.table_words, bar)


def copy_rows(block: Block) -> None:
    """One thread copies every staged row that exists in the image, or the block's part of it, to where instructions
    read."""
    plan, w = block.plan, block.plan.view
    first, pixels, before = block.row_span()
    row_bytes, stored_bytes = pixels * plan.pixel_bytes, w.w * plan.pixel_bytes
    if plan.config.row_parts > 1:
        row_bytes = bind("part_bytes", T.cast(row_bytes, "uint32"))
    if plan.config.dependent_launch:
        op.wait_for_previous_launch()
    with loop("staged", plan.staged_rows, T.serial) as staged:
        y = bind("y", block.first_input + staged)
        barrier = block.row_barrier(T.cast(staged, "uint32"))
        with T.If(T.And(y >= 0, y < plan.image_rows)):
            with T.Then():
                op.barrier_expect(barrier, T.uint32(row_bytes) if plan.config.row_parts == 1 else row_bytes)
                target = block.base + T.cast((staged * plan.pitch + before) * plan.pixel_bytes, "uint32")
                word = (block.group * plan.image_rows + y) * (stored_bytes // 4)
                if plan.config.row_parts > 1:
                    word = word + first * (plan.pixel_bytes // 4)
                op.bulk_copy(target, block.activations.ptr_to([word]), row_bytes, barrier)
            with T.Else():
                op.barrier_arrive(barrier)
    if plan.config.dependent_launch:
        op.allow_next_launch()


def fill_border(block: Block) -> None:
    """All consumers fill the pixels outside the image: zeros, or the padding code in the channels that exist."""
    plan, w = block.plan, block.plan.view
    pieces = plan.pixel_bytes // PIECE_BYTES
    if plan.config.row_parts > 1:
        _fill_parts(block, pieces)
        return
    beside = plan.pitch - w.w
    if beside:
        with _turns(block, "beside", plan.staged_rows * beside * pieces) as index:
            row, at = bind("row", index // (beside * pieces)), bind("at", index % (beside * pieces))
            column = bind("column", T.Select(at // pieces < w.pad, at // pieces, at // pieces + w.w))
            _fill(block, row * plan.pitch + column, at % pieces)
    if plan.slack:
        with _turns(block, "behind", plan.slack * pieces) as index:
            _fill(block, plan.staged_rows * plan.pitch + index // pieces, index % pieces)
    if plan.rows_inside:
        return
    with loop("outside", plan.staged_rows, T.serial) as row:
        y = bind("y", block.first_input + row)
        with when(T.Or(y < 0, y >= plan.image_rows)), _turns(block, "piece", w.w * pieces) as index:
            _fill(block, row * plan.pitch + w.pad + index // pieces, index % pieces)


def _fill_parts(block: Block, pieces: int) -> None:
    """The same if blocks share rows: entire rows outside the image, and the edges of the others."""
    plan = block.plan
    _, pixels, before = block.row_span()
    with _turns(block, "staged_piece", plan.staged_rows * plan.pitch * pieces) as index:
        row, at = bind("row", index // (plan.pitch * pieces)), bind("at", index % (plan.pitch * pieces))
        y, column = bind("y", block.first_input + row), bind("column", at // pieces)
        beside = T.Or(column < before, column >= before + pixels)
        with when(T.Or(beside, T.Or(y < 0, y >= plan.image_rows))):
            _fill(block, row * plan.pitch + column, at % pieces)


class _turns:
    """Distributes the indices below ``count`` over the consumers."""

    def __init__(self, block: Block, name: str, count: int) -> None:
        self.block, self.name, self.count = block, name, count

    def __enter__(self) -> Any:
        threads = 128 * self.block.plan.config.consumers
        self.loop = loop("turn", -(-self.count // threads), T.serial)
        turn = self.loop.__enter__()
        index = bind(self.name, turn * threads + self.block.thread)
        self.when = when(True if self.count % threads == 0 else index < self.count)
        self.when.__enter__()
        return index

    def __exit__(self, *error: Any) -> None:
        self.when.__exit__(*error)
        self.loop.__exit__(*error)


def _fill(block: Block, pixel: Any, piece: Any) -> None:
    """Write 16 bytes: 128 channels of an image in a plane."""
    plan = block.plan
    words = _fill_words(block, piece)
    op.store_shared16(block.base + T.cast(pixel * plan.pixel_bytes + piece * PIECE_BYTES, "uint32"), words)


def _fill_words(block: Block, piece: Any) -> list[Any]:
    plan, code = block.plan, block.plan.form.fill
    if not code:
        return [T.uint32(0)] * 4
    plane = piece // BATCH_GROUP % plan.planes
    last = piece // (BATCH_GROUP * plan.planes) == plan.channel_blocks - 1
    rest = plan.view.c - (plan.channel_blocks - 1) * BLOCK_BITS
    words = []
    for word in range(4):
        bits = max(0, min(32, rest - 32 * (word % 2 if plan.paired_rows else word)))
        full = T.Select(last, T.uint32((1 << bits) - 1), T.uint32(0xFFFFFFFF))
        one = (T.uint32(code) >> T.cast(plane, "uint32")) & T.uint32(1)
        words.append(bind("fill", full * one))
    return words

"""Global to shared memory: bulk copies by one warp, for rows a lane each. The border is stored: rows are whole."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.emit.block import Block
from subbyte.families.stem.strips import WORD_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, when
from subbyte.workload.conv import BATCH_GROUP, ceil_div


def set_up(block: Block) -> None:
    """One thread sets up the barriers and begins to copy weights and parameters, which no launch writes."""
    plan = block.plan
    for buffer in range(plan.buffers):
        op.barrier_init(block.barrier(T.uint32(buffer)), 1)
    op.barrier_init_fence()
    first, row = block.barrier(T.uint32(0)), _row_bytes(block)
    op.barrier_expect(first, row * T.uint32(plan.staged_rows) + T.uint32(plan.weight_bytes + plan.parameter_bytes))
    source = block.weights.ptr_to([block.slice_ * plan.slice_words])
    op.bulk_copy(block.base, source, plan.weight_bytes, first)
    for line in range(3 if plan.parameter_bytes else 0):
        source = block.parameters.ptr_to([line * plan.workload.padded_filters + block.slice_ * plan.config.filters])
        target = block.base + T.uint32(plan.parameter_base + 4 * line * plan.config.filters)
        op.bulk_copy(target, source, 4 * plan.config.filters, first)


def copy_rows(block: Block, rows: Any, buffer: Any, expect: bool = True) -> None:
    """The lanes of a warp copy the input rows of a group of output rows; ``expect``: the barrier does not know yet."""
    plan, form = block.plan, block.plan.strips.form
    barrier, size = block.barrier(buffer), _row_bytes(block)
    if expect:
        with when(block.lane == 0):
            op.barrier_expect(barrier, size * T.uint32(plan.staged_rows))
        op.emit(T.cuda.warp_sync())
    top = block.group * form.rows + rows * (plan.config.tile_rows * plan.workload.stride)
    word = bind("word", T.cast(top * form.words + block.segment * _segment_words(block), "int64") * BATCH_GROUP)
    with loop("turn", ceil_div(plan.staged_rows, 32)) as turn:
        row = bind("row", turn * 32 + block.lane)
        with when(row < plan.staged_rows):
            target = block.buffer_address(buffer) + T.cast(row * (plan.pitch * WORD_BYTES), "uint32")
            source = block.activations.ptr_to([word + T.cast(row * (form.words * BATCH_GROUP), "int64")])
            op.bulk_copy(target, source, size, barrier)


def _segment_words(block: Block) -> int:
    return block.plan.segment_units * block.plan.strips.unit_words


def _row_bytes(block: Block) -> Any:
    """Of a staged row: the last segment may end before the others do."""
    plan, form = block.plan, block.plan.strips.form
    whole, last = plan.row_words, form.words - (plan.config.segments - 1) * _segment_words(block)
    if last >= whole:
        return T.uint32(whole * WORD_BYTES)
    is_last = block.segment == plan.config.segments - 1
    return T.Select(is_last, T.uint32(last * WORD_BYTES), T.uint32(whole * WORD_BYTES))

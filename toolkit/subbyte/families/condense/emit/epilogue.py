"""Sums to memory: requantized and packed, or raw. A lane holds 8 neighbouring channels of an image."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.condense.config import PANEL, ROW_PIXELS
from subbyte.families.condense.emit.block import Block
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers, when
from subbyte.tirx.requantize import requantize
from subbyte.workload.precision import SUMS


def store(block: Block) -> None:
    """Emit the stores of a warp's panels."""
    plan = block.plan
    for panel in range(plan.config.panels):
        column = bind("column", block.first_panel + block.warp_col * plan.config.panels + panel)
        exact = plan.workload.filter_blocks % plan.block_panels == 0
        with when(exact or column < plan.workload.filter_blocks):
            for pixel in range(ROW_PIXELS):
                row = bind("row", block.first_pixel + block.warp_row * ROW_PIXELS + pixel)
                with when(every([] if plan.pixels % plan.block_pixels == 0 else [row < plan.pixels])):
                    _store(block, panel, pixel, row, column)


def _store(block: Block, panel: int, pixel: int, row: Any, column: Any) -> None:
    plan, lane = block.plan, block.lane
    word = bind("word", plan.output_word(row, column, lane // 4, lane % 4))
    if plan.output == SUMS:
        for first in (0, 4):
            values = [_sum(block, panel, pixel, first + i) >> T.int32(plan.atom.scale_log2) for i in range(4)]
            found = [T.cast(value, "uint32") for value in values]
            op.store16(block.output.ptr_to([word * 8 + first]), found)
        return
    packed = registers("packed", 1)
    T.buffer_store(packed, T.uint32(0), [0])
    for i in (6, 4, 2, 0):
        low, high = (bind("value", _requantized(block, panel, pixel, i + more, column)) for more in range(2))
        op.pack_int4(packed[0], high, low, signed=True)
    T.buffer_store(block.output, packed[0], [word])


def _sum(block: Block, panel: int, pixel: int, channel: int) -> Any:
    """The signed sum of one of a lane's 8 channels, still scaled by the atom."""
    place = ((panel * 4 + channel // 2) * 2 + pixel // 2) * 4 + pixel % 2 * 2 + channel % 2
    return T.cast(block.sums[place], "int32")


def _requantized(block: Block, panel: int, pixel: int, channel: int, column: Any) -> Any:
    plan = block.plan
    place = column * PANEL + block.lane % 4 * 8 + channel
    rows = [block.parameters[row * plan.workload.filter_blocks * PANEL + place] for row in range(3)]
    return requantize(plan, _sum(block, panel, pixel, channel), rows)

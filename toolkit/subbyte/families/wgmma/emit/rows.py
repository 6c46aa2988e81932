"""Input rows on their way from memory: which columns a block loads, and the registers that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.memory import PIXEL_BYTES
from subbyte.families.wgmma.operands import HALF_BYTES
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.tirx.emit import bind, registers

PIECE = 16
"""Bytes of one shared-memory store."""


@dataclass
class Columns:
    """Loaded columns of the block: the first staged column of its tile, how many lie left of the image, how many are
    loaded (None: all that the plan counts)."""

    tile: Any
    left: Any
    count: Any


def columns(block: Block) -> Columns:
    """The loaded columns of this block."""
    plan = block.plan
    if plan.x_tiles == 1:
        return Columns(0, plan.left_zeros, None)
    tile = bind("tile_column", block.tile_x * (plan.width_covered * plan.cols.pixel_step))
    left = bind("left", T.Select(block.tile_x == 0, T.int32(plan.left_zeros), T.int32(0)))
    reached = T.min(T.int32(plan.columns_read), plan.col_range[1] + 1 - tile)
    return Columns(tile, left, bind("columns", reached - left))


def row_registers(block: Block, name: str) -> Any:
    """Registers for one producer thread's share of a stage."""
    return registers(name, 4 * block.plan.copies)


def staged_pixel(plan: WgmmaPlan, block_index: Any, column: Any) -> Any:
    """Byte of a pixel of a stage's row within its buffer."""
    if plan.knobs.sparse:
        return (column * plan.kept_channels + block_index) * PIXEL_BYTES
    if plan.bytes_in:
        place = (block_index // 2 * (plan.pitch * plan.knobs.image_groups) + column) * PIXEL_BYTES
        return place + block_index % 2 * HALF_BYTES
    return (block_index * (plan.pitch * plan.knobs.image_groups) + column) * PIXEL_BYTES

"""Loading input rows from global memory: which columns a block loads, and the registers that hold them."""

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
    """Loaded columns of the block: the first staged column of its tile, the number of columns left of the image, and
    the number loaded (None: all that the plan counts)."""

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


def staged_pixel(plan: WgmmaPlan, block_index: Any, column: Any, unit: int = 1) -> Any:
    """Byte, or word of ``unit`` bytes, where a block of memory of a pixel is stored in its stage buffer."""
    if plan.knobs.sparse:
        return (column * plan.kept_channels + block_index) * PIXEL_BYTES
    columns = plan.pitch * plan.knobs.image_groups
    if plan.bytes_in:
        return (block_index // 2 * columns + column) * (PIXEL_BYTES // unit) + block_index % 2 * (HALF_BYTES // unit)
    return (block_index * columns + column) * PIXEL_BYTES


def row_registers(block: Block, name: str) -> Any:
    """Registers for one producer thread's share of a stage; none if data goes straight into shared memory."""
    return None if block.plan.direct else registers(name, 4 * block.plan.copies)

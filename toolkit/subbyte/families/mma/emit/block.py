"""What the parts of the kernel share while it is emitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.families.mma.plan import Plan


@dataclass
class Block:
    """Buffers and coordinates of one thread block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: Plan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    residual: Any
    """Values to be added, in the layout of the output; None if there are none."""
    shared: Any
    accumulators: Any
    thread: Any
    lane: Any
    warp_row: Any
    """Index of the warp along the block's pixels."""
    warp_col: Any
    """Index of the warp along the block's column tiles."""
    split: Any
    """Index of the warp among those that split the input channels."""
    group: Any
    """Group of 8 images."""
    row0: Any
    """First output row of the block tile."""
    col0: Any
    """First output column of the block tile."""
    column_block: Any

    def tile_pixel(self, pixel: Any) -> tuple[Any, Any]:
        """Row and column, within the block tile, of a pixel of this thread's warp."""
        width = self.plan.tile[1]
        first = self.warp_row * self.plan.config.warp_row_tiles
        wide = self.plan.warp_tile[1]
        return first // width + pixel // wide, first % width + pixel % wide

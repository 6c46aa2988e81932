"""Layers of single pixels, as kernels take them whose tiles are rows of pixels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.matmul import MatmulWorkload

ROW_PIXELS = 8
"""What the pixels of a row should be a multiple of."""
WIDEST_ROW, ENOUGH_ROWS = 64, 64
"""Of a flat view: pixels of a row, and rows that are enough for all multiprocessors."""


def flat_view(workload: ConvWorkload) -> ConvWorkload:
    """A layer of single pixels (1x1, stride 1, no padding; a matrix product) as one group of images with all their
    pixels in rows of a width that fills tiles; any other layer itself."""
    w = workload
    if (w.r, w.s, w.pad, w.stride) != (1, 1, 0, 1):
        return w
    pixels = w.batch_groups * w.h * w.w
    width = _width(pixels)
    plain = w.convolution if isinstance(w, MatmulWorkload) else w  # of a product all pixels are one row
    return replace(plain, n=BATCH_GROUP, h=pixels // width, w=width)


@cache
def _width(pixels: int) -> int:
    """Of the rows into which so many pixels are put. Cached: every plan of a layer asks."""
    widths = [width for width in range(1, WIDEST_ROW + 1) if pixels % width == 0]

    def cost(width: int) -> tuple[float, int, int]:
        waste = ceil_div(width, ROW_PIXELS) * ROW_PIXELS / width
        few = pixels // width < ENOUGH_ROWS
        return waste, int(few), width if few else -width

    return min(widths, key=cost)

"""Layers of single pixels, rearranged for kernels whose tiles are rows of pixels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.matmul import MatmulWorkload

ROW_PIXELS = 8
"""The number of pixels in a row should be a multiple of this."""
WIDEST_ROW, ENOUGH_ROWS = 64, 64
"""For a flat view: most pixels in a row, and the number of rows that is enough for all multiprocessors."""


def flat_view(workload: ConvWorkload) -> ConvWorkload:
    """A layer of single pixels (1x1, stride 1, no padding; a matrix product) as one group of images with all their
    pixels in rows of a width that fills tiles; any other layer unchanged."""
    w = workload
    if (w.r, w.s, w.pad, w.stride) != (1, 1, 0, 1):
        return w
    pixels = w.batch_groups * w.h * w.w
    width = _width(pixels)
    plain = w.convolution if isinstance(w, MatmulWorkload) else w  # all pixels of a product are in one row
    return replace(plain, n=BATCH_GROUP, h=pixels // width, w=width)


@cache
def _width(pixels: int) -> int:
    """The width of the rows for this many pixels. Cached: every plan of a layer asks."""
    widths = [width for width in range(1, WIDEST_ROW + 1) if pixels % width == 0]

    def cost(width: int) -> tuple[float, int, int]:
        waste = ceil_div(width, ROW_PIXELS) * ROW_PIXELS / width
        few = pixels // width < ENOUGH_ROWS
        return waste, int(few), width if few else -width

    return min(widths, key=cost)

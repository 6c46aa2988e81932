"""Sizes shared by all kernels on bit planes: planes, blocks of channels, border classes."""

from __future__ import annotations

from functools import cached_property

from subbyte.numerics.bit_products import CLASSES, border_axes
from subbyte.workload.conv import ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS


class BitSizes:
    """Sizes of a layer as a kernel sees it (``view``), whose ``border`` costs classes of pixels or nothing."""

    @property
    def view(self) -> ConvWorkload:
        """The layer as the kernel sees it."""
        raise NotImplementedError

    @property
    def border(self) -> str:
        """How pixels outside the image are counted (subbyte.numerics.bit_products)."""
        raise NotImplementedError

    @property
    def weight_planes(self) -> int:
        """Bit planes of the weights: the bits of one weight."""
        return self.view.precision.weights.bits

    @property
    def planes(self) -> int:
        """Bits of an activation."""
        return self.view.precision.activations.bits

    @property
    def output_planes(self) -> int:
        """Bits of an output value."""
        return self.view.precision.output.bits

    @property
    def channel_blocks(self) -> int:
        """Blocks of 128 input channels."""
        return ceil_div(self.view.c, BLOCK_BITS)

    @property
    def filter_blocks(self) -> int:
        """Blocks of 128 output channels."""
        return ceil_div(self.view.k, BLOCK_BITS)

    @cached_property
    def border_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Class of each output row and of each output column (subbyte.numerics.border_classes), all 0 if the border
        costs nothing."""
        w = self.view
        if self.border != CLASSES:
            return (0,) * w.p, (0,) * w.q
        return border_axes(w)

    @property
    def classes(self) -> tuple[int, int]:
        """Numbers of classes of rows and of columns."""
        rows, columns = self.border_rows
        return max(rows) + 1, max(columns) + 1

"""One axis of an image: how output pixels and taps map to staged input positions."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

Index = Any
"""An ``int``, or a TIRx expression."""


@dataclass(frozen=True)
class Axis:
    """How the output pixels and taps of one axis map to staged input positions.

    Position = ``pixel * pixel_step + tap * tap_step`` in units of ``unit`` input pixels. Dividing by the greatest
    common divisor removes gaps, so a staged tile holds only positions that are used (Choi et al. 2022, 3.1.2).
    """

    pixel_step: int
    tap_step: int
    count: int
    unit: int

    @classmethod
    def of(cls, pixels: int, taps: int, stride: int, dilation: int) -> Axis:
        """The axis for ``pixels`` consecutive outputs and ``taps`` kernel positions."""
        unit = gcd(stride if pixels > 1 else 0, dilation if taps > 1 else 0) or 1
        pixel_step = stride // unit if pixels > 1 else 0
        tap_step = dilation // unit if taps > 1 else 0
        return cls(pixel_step, tap_step, (pixels - 1) * pixel_step + (taps - 1) * tap_step + 1, unit)

    def position(self, pixel: Index, tap: Index) -> Index:
        """Staged position of an output pixel's tap."""
        return pixel * self.pixel_step + tap * self.tap_step

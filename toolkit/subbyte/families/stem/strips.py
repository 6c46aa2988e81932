"""How the taps of a layer share the K of an instruction: words of neighbouring pixels, of which a lane takes one.

A *word* is 8 int4 values: pixels of 1, 2, 4 or 8 of them that lie next to each other in an input row. The *window* of
an output pixel is ``row_words`` words of each of ``r`` input rows; an instruction's K of 32 is four of them, one for
each lane of a quad: the lane splits its word into the even and the odd values, four bytes each. Words begin at fixed
places, windows do not: *phases* counts the places of a window in its first word, for each of which there are weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import gcd

from subbyte.families.stem.config import TILE_PIXELS
from subbyte.numerics.pixel_strips import WORD_VALUES, StripForm
from subbyte.workload.conv import ConvWorkload, ceil_div

LANES = 4
"""Lanes that share the K of an instruction: words of a step."""
PIXEL_CHANNELS = (1, 2, 4, 8)
WORD_BYTES = 32
"""A word of 8 images."""
ROWS_TOGETHER = 4
"""Stored rows are enough for this many output rows at once, the most that tiles have."""


@dataclass(frozen=True)
class Strips:
    """A layer's windows in words, where a pixel is stored as ``channels`` int4 values."""

    workload: ConvWorkload
    channels: int

    @property
    def advance(self) -> int:
        """Values from the window of an output pixel to that of its neighbour."""
        return self.workload.stride * self.channels

    @property
    def phases(self) -> int:
        """Output pixels after which windows begin at the same place of a word again."""
        return WORD_VALUES // gcd(WORD_VALUES, self.advance)

    def phase_values(self, phase: int) -> int:
        """Values of the first word in front of the window of output pixel ``phase``."""
        return phase * self.advance % WORD_VALUES

    @cached_property
    def row_words(self) -> int:
        """Words of an input row that hold the window's part of it, at any phase."""
        most = max(self.phase_values(phase) for phase in range(self.phases))
        return ceil_div(most + self.workload.s * self.channels, WORD_VALUES)

    @property
    def steps(self) -> int:
        """Instructions for a tile: four words of the window each."""
        return ceil_div(self.workload.r * self.row_words, LANES)

    @property
    def window_rows(self) -> int:
        """Input rows that the steps read, with those that only fill up the last one."""
        return (LANES * self.steps - 1) // self.row_words + 1

    @property
    def period(self) -> int:
        """Steps after which lanes have the same places in their rows again."""
        return self.row_words // gcd(self.row_words, LANES)

    @property
    def period_rows(self) -> int:
        """Input rows that these are."""
        return LANES // gcd(self.row_words, LANES)

    @property
    def unit_pixels(self) -> int:
        """Output pixels of a unit of an output row: a tile for each phase."""
        return TILE_PIXELS * self.phases

    @property
    def units(self) -> int:
        """Of an output row; the last one may reach beyond it."""
        return ceil_div(self.workload.q, self.unit_pixels)

    def words(self, units: int) -> int:
        """Words of an input row that so many units read."""
        return (units * self.unit_pixels - 1) * self.advance // WORD_VALUES + self.row_words

    @property
    def unit_words(self) -> int:
        """Words from one unit to the next."""
        return self.unit_pixels * self.advance // WORD_VALUES

    @property
    def pixel_words(self) -> int:
        """Words from one pixel of a tile to the next: they are ``phases`` apart."""
        return self.phases * self.advance // WORD_VALUES

    @property
    def form(self) -> StripForm:
        """How the activations lie in memory: what every tile reads is there, zeros too."""
        w = self.workload
        rows = (ceil_div(w.p, ROWS_TOGETHER) * ROWS_TOGETHER - 1) * w.stride + self.window_rows
        return StripForm(self.channels, w.pad, rows, self.words(self.units))


@cache
def strips(workload: ConvWorkload) -> Strips:
    """The strips of a layer: of those with fewest instructions, fewest bytes. More than 8 channels, which no kernel
    takes, are whole words."""
    able = [Strips(workload, channels) for channels in PIXEL_CHANNELS if channels >= workload.c]
    if not able:
        return Strips(workload, ceil_div(workload.c, WORD_VALUES) * WORD_VALUES)
    return min(able, key=lambda one: (one.units * one.phases * one.steps, one.form.words * one.form.rows))

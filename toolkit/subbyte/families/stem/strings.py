"""How the window of an output pixel is written into shared memory, and how its bytes share the K of an instruction.

A *word* is 8 int4 values: pixels of 1, 2, 4 or 8 of them that lie next to each other in an input row. A *string* is
what ``r`` words of one column of words become: bytes, the values times 16. The even values of a word are four bytes,
the odd ones four more, or two where a pixel's last value is none (3 channels of 4): then those of two rows share a
word. A string ends with words of constants, which weights turn into what sums begin with. It is a whole number of
*pieces* of 16 bytes, so that neighbouring strings are one window: an instruction's K of 32 is two pieces.

Words begin at fixed places, windows do not: *phases* counts the places of a window in its first word, for each of which
there are weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import gcd

from subbyte.families.stem.config import TILE_PIXELS
from subbyte.numerics.pixel_strips import WORD_VALUES, StripForm
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div

PIXEL_CHANNELS = (1, 2, 4, 8)
WORD_BYTES = 4
PIECE_BYTES = 16
"""Of K, of an image: half of an instruction's."""
STRIP_BYTES = BATCH_GROUP * PIECE_BYTES
"""A piece of 8 images: a core matrix."""
ROWS_TOGETHER = 4
"""Stored rows are enough for this many output rows at once, the most that a turn has."""
SCALE_LOG2 = 4
"""Sums are those of the values times 2 to this: activations are bytes times 16."""
LARGEST_BYTE = 127
CONSTANT = LARGEST_BYTE * 0x010101 | 1 << 24
"""A word of constants: three bytes of 127 and one of 1, by which weights give any number up to ``begins_with``."""
ROOM = 1.25
"""What sums may begin with, at least, as a multiple of the largest sum."""
LARGEST_PRODUCT = 64


@dataclass(frozen=True)
class Part:
    """A word of a string: of input rows ``rows`` of the window, ``values[b]`` (row of ``rows``, value of the word) is
    its byte b. No rows: constants."""

    rows: tuple[int, ...]
    values: tuple[tuple[int, int], ...] = ()

    @property
    def even(self) -> bool:
        """Of even values, which are the lower halves of a packed word's bytes."""
        return self.values[0][1] % 2 == 0


@dataclass(frozen=True)
class Strings:
    """A layer's windows, where a pixel is stored as ``channels`` int4 values."""

    workload: ConvWorkload
    channels: int

    # ---- words of an input row --------------------------------------------------------------------------------------

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
        """Words of an input row that hold the window's part of it, at any phase: strings of a window."""
        most = max(self.phase_values(phase) for phase in range(self.phases))
        return ceil_div(most + self.workload.s * self.channels, WORD_VALUES)

    @property
    def unit_pixels(self) -> int:
        """Output pixels of a unit of an output row: a tile for each phase."""
        return TILE_PIXELS * self.phases

    @property
    def units(self) -> int:
        """Of an output row; the last one may reach beyond it."""
        return ceil_div(self.workload.q, self.unit_pixels)

    def words(self, units: int) -> int:
        """Words of an input row that so many units read: strings."""
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
        rows = (ceil_div(w.p, ROWS_TOGETHER) * ROWS_TOGETHER - 1) * w.stride + w.r
        return StripForm(self.channels, w.pad, rows, self.words(self.units))

    # ---- strings ----------------------------------------------------------------------------------------------------

    @property
    def odd_bytes(self) -> tuple[int, ...]:
        """Bytes of a word's odd values that may be other than 0."""
        return tuple(b for b in range(4) if (2 * b + 1) % self.channels < self.workload.c or self.channels == 1)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The words of a string."""
        rows, kept = range(self.workload.r), self.odd_bytes
        found = [Part((row,), tuple((row, 2 * b) for b in range(4))) for row in rows]
        if len(kept) == 2:
            for row in rows[: len(rows) // 2 * 2 : 2]:
                found.append(Part((row, row + 1), tuple((one, 2 * b + 1) for one in (row, row + 1) for b in kept)))
            rows = rows[len(rows) // 2 * 2 :]
        found += [Part((row,), tuple((row, 2 * b + 1) for b in range(4))) for row in rows]
        least = ROOM * self.largest_sum / (3 * LARGEST_BYTE**2 * self.row_words)
        count = len(found) + max(1, ceil_div(int(1000 * least), 1000))
        return (*found, *[Part(())] * (ceil_div(count, 4) * 4 - len(found)))

    @property
    def pieces(self) -> int:
        """Of a string."""
        return len(self.parts) // 4

    @property
    def string_bytes(self) -> int:
        """Of a string of 8 images: [piece][image][16 bytes]."""
        return self.pieces * STRIP_BYTES

    @property
    def steps(self) -> int:
        """Instructions for a tile: two pieces of the window each."""
        return ceil_div(self.row_words * self.pieces, 2)

    # ---- what sums begin with ---------------------------------------------------------------------------------------

    @property
    def largest_sum(self) -> int:
        """Magnitude of a scaled sum, at most."""
        w = self.workload
        return LARGEST_PRODUCT * w.r * w.s * w.c << SCALE_LOG2

    @property
    def constants(self) -> tuple[int, ...]:
        """Places of the words of constants in a window, whose words are counted through its strings."""
        length = len(self.parts)
        inside = [place for place, part in enumerate(self.parts) if not part.rows]
        return tuple(string * length + place for string in range(self.row_words) for place in inside)

    @property
    def begins_with(self) -> int:
        """What the constants can make sums begin with, at most."""
        return 3 * LARGEST_BYTE**2 * len(self.constants)


@cache
def strings(workload: ConvWorkload) -> Strings:
    """The strings of a layer: of those with fewest instructions, fewest bytes. More than 8 channels, which no kernel
    takes, are whole words."""
    able = [Strings(workload, channels) for channels in PIXEL_CHANNELS if channels >= workload.c]
    if not able:
        return Strings(workload, ceil_div(workload.c, WORD_VALUES) * WORD_VALUES)
    return min(able, key=lambda one: (one.units * one.phases * one.steps, one.form.words * one.form.rows))

"""How the window of an output pixel is written into shared memory, and how its bytes share the K of an instruction.

A *word* is 8 int4 values: adjacent pixels of an input row with 1, 2, 4 or 8 values each. A *string* is
made from ``r`` words of one column of words: bytes, the values times 16. The even values of a word are four bytes,
the odd ones four more, or two if a pixel's last value is unused (3 channels of 4): two rows then share a
word. A string ends with words of constants, which weights turn into the initial sums. It is a whole number of
*pieces* of 16 bytes, so that neighbouring strings form a window: an instruction's K of 32 is two pieces.

Words begin at fixed places, windows do not: *phases* counts the positions of a window in its first word, each of which
has its own weights. The window of a 3x3 kernel on 3 channels, 27 values, fits an instruction: a string is then a whole
window, made from two columns of words, and each phase has its own (*dense*).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil, gcd

from subbyte.families.stem.config import TILE_PIXELS
from subbyte.numerics.pixel_strips import WORD_VALUES, StripForm
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div

PIXEL_CHANNELS = (1, 2, 4, 8)
WORD_BYTES = 4
PIECE_BYTES = 16
"""Bytes of K per image: half of an instruction's."""
STRIP_BYTES = BATCH_GROUP * PIECE_BYTES
"""Bytes of a piece for 8 images: a core matrix."""
ROWS_TOGETHER = 4
"""There are enough stored rows for this many output rows at once, the most in a turn."""
SCALE_LOG2 = 4
"""Sums are multiplied by 2 to this power: activations are bytes times 16."""
LARGEST_BYTE = 127
CONSTANTS = (LARGEST_BYTE, LARGEST_BYTE, LARGEST_BYTE, 1)
"""Bytes of a word of constants, from which weights can make any number up to ``begins_with``."""
ROOM = 1.25
"""Lower bound on the initial sums that can be expressed, as a multiple of the largest sum."""
LARGEST_PRODUCT = 64


Byte = tuple[int, int] | int
"""A byte of a string: row of the window and value index in its words, 8 in each; or a constant."""
Part = tuple[Byte, ...]
"""The four bytes of a word of a string."""


@dataclass(frozen=True)
class Strings:
    """A layer's windows, with ``channels`` int4 values stored per pixel."""

    workload: ConvWorkload
    channels: int

    # ---- words of an input row --------------------------------------------------------------------------------------

    @cached_property
    def advance(self) -> int:
        """Values between the windows of neighbouring output pixels."""
        return self.workload.stride * self.channels

    @cached_property
    def phases(self) -> int:
        """Number of output pixels after which windows begin at the same position of a word again."""
        return WORD_VALUES // gcd(WORD_VALUES, self.advance)

    def phase_values(self, phase: int) -> int:
        """Values of the first word before the window of output pixel ``phase``."""
        return phase * self.advance % WORD_VALUES

    @cached_property
    def row_words(self) -> int:
        """Words of an input row that contain the window's part of it, for any phase."""
        most = max(self.phase_values(phase) for phase in range(self.phases))
        return ceil_div(most + self.workload.s * self.channels, WORD_VALUES)

    @cached_property
    def unit_pixels(self) -> int:
        """Output pixels per unit of an output row: one tile for each phase."""
        return TILE_PIXELS * self.phases

    @cached_property
    def units(self) -> int:
        """Units of an output row; the last one may extend beyond it."""
        return ceil_div(self.workload.q, self.unit_pixels)

    @cached_property
    def unit_words(self) -> int:
        """Words from one unit to the next."""
        return self.unit_pixels * self.advance // WORD_VALUES

    @cached_property
    def pixel_words(self) -> int:
        """Words between the pixels of a tile, which are ``phases`` apart."""
        return self.phases * self.advance // WORD_VALUES

    @cached_property
    def form(self) -> StripForm:
        """Layout of the activations in memory: everything that a tile reads is stored, including zeros."""
        w = self.workload
        rows = (ceil_div(w.p, ROWS_TOGETHER) * ROWS_TOGETHER - 1) * w.stride + w.r
        return StripForm(self.channels, w.pad, rows, self.count(self.units) + self.span - 1)

    # ---- strings ----------------------------------------------------------------------------------------------------

    @cached_property
    def dense(self) -> bool:
        """Whether a string is a whole window."""
        w = self.workload
        return (w.r, w.s, w.c, self.channels) == (3, 3, 3, 4) and w.stride <= 2

    @cached_property
    def span(self) -> int:
        """Words of an input row from which a string is made."""
        return self.row_words if self.dense else 1

    @cached_property
    def kinds(self) -> int:
        """Strings per column of words: one for each phase, or one for all of them."""
        return self.phases if self.dense else 1

    @cached_property
    def window_strings(self) -> int:
        """Neighbouring strings that form a window."""
        return 1 if self.dense else self.row_words

    def count(self, units: int) -> int:
        """Strings of one kind that this many units of an output row read."""
        return (units * self.unit_pixels - 1) * self.advance // WORD_VALUES + self.window_strings

    @cached_property
    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """The words of a string, of each kind."""
        if self.dense:
            return tuple(_window(phase) for phase in range(self.phases))
        rows, kept = range(self.workload.r), self._odd_bytes
        found: list[Part] = [tuple((row, 2 * byte) for byte in range(4)) for row in rows]
        if len(kept) == 2:
            pairs = rows[: len(rows) // 2 * 2 : 2]
            found += [tuple((one, 2 * byte + 1) for one in (row, row + 1) for byte in kept) for row in pairs]
            rows = rows[len(rows) // 2 * 2 :]
        found += [tuple((row, 2 * byte + 1) for byte in range(4)) for row in rows]
        least = ceil(ROOM * self.largest_sum / (3 * LARGEST_BYTE**2 * self.row_words))
        constants = ceil_div(len(found) + least, 4) * 4 - len(found)
        return ((*found, *[CONSTANTS] * constants),)

    @property
    def _odd_bytes(self) -> tuple[int, ...]:
        """Bytes of a word's odd values that may be nonzero."""
        return tuple(b for b in range(4) if (2 * b + 1) % self.channels < self.workload.c)

    @cached_property
    def length(self) -> int:
        """Words per string."""
        return len(self.parts[0])

    @cached_property
    def pieces(self) -> int:
        """Pieces per string."""
        return self.length // 4

    @cached_property
    def string_bytes(self) -> int:
        """Bytes of a string for 8 images: [piece][image][16 bytes]."""
        return self.pieces * STRIP_BYTES

    @cached_property
    def steps(self) -> int:
        """Instructions per tile: each takes two pieces of the window."""
        return ceil_div(self.window_strings * self.pieces, 2)

    def window(self, phase: int) -> list[Part]:
        """The words of a window; values are counted from its first word."""
        ahead = range(0, WORD_VALUES * self.window_strings, WORD_VALUES)
        parts = self.parts[phase % self.kinds]
        return [tuple(_later(byte, more) for byte in part) for more in ahead for part in parts]

    def taps(self, phase: int) -> dict[int, tuple[int, int, int]]:
        """Kernel row, kernel column and channel for each byte of K that has one."""
        found, w = {}, self.workload
        for place, part in enumerate(self.window(phase)):
            for byte, one in enumerate(part):
                if not isinstance(one, int):
                    s, c = divmod(one[1] - self.phase_values(phase), self.channels)
                    if 0 <= s < w.s and c < w.c:
                        found[4 * place + byte] = (one[0], s, c)
        return found

    # ---- what sums begin with ---------------------------------------------------------------------------------------

    @cached_property
    def largest_sum(self) -> int:
        """Largest magnitude of a scaled sum."""
        w = self.workload
        return LARGEST_PRODUCT * w.r * w.s * w.c << SCALE_LOG2

    def constants(self, phase: int) -> list[int]:
        """Bytes of K that are constants: a 1, then those of 127."""
        parts = self.window(phase)
        found = [(4 * place + byte, one) for place, part in enumerate(parts) for byte, one in enumerate(part)
                 if isinstance(one, int)]  # fmt: skip
        one = next(place for place, value in found if value == 1)
        return [one, *(place for place, value in found if value == LARGEST_BYTE)]

    @cached_property
    def begins_with(self) -> int:
        """The largest initial sum that the constants can express."""
        return LARGEST_BYTE**2 * (len(self.constants(0)) - 1)


def _window(phase: int) -> tuple[Part, ...]:
    """The 27 values of three pixels in three rows, in two words of each: the even values of the word entirely inside,
    those of half of the other word, and the odd values of both; constants replace whatever is outside."""
    whole, half, outside = (8, 0, 0) if phase else (0, 8, 3)
    inner = [half + 4, half + 6] if phase else [half, half + 2]
    odd = [[(row, value) for value in (1, 5, 9, 13)] for row in range(3)]
    filled: list[list[Byte]] = [[LARGEST_BYTE if i == outside and row < 2 else value for i, value in enumerate(values)]
                                for row, values in enumerate(odd)]  # fmt: skip
    return (
        *(tuple((row, whole + value) for value in (0, 2, 4, 6)) for row in range(3)),
        tuple((row, value) for row in range(2) for value in inner),
        *(tuple(values) for values in filled),
        (*((2, value) for value in inner), LARGEST_BYTE, 1),
    )


def _later(byte: Byte, values: int) -> Byte:
    return byte if isinstance(byte, int) else (byte[0], byte[1] + values)


@cache
def strings(workload: ConvWorkload) -> Strings:
    """The strings of a layer: those with the fewest instructions, then the fewest bytes. More than 8 channels, which no
    kernel supports, become whole words."""
    able = [Strings(workload, channels) for channels in PIXEL_CHANNELS if channels >= workload.c]
    if not able:
        return Strings(workload, ceil_div(workload.c, WORD_VALUES) * WORD_VALUES)
    return min(able, key=lambda one: (one.units * one.phases * one.steps, one.form.words * one.form.rows))

"""Where the words of a form lie, and which values each of them holds: index maps of ``+ * // %`` alone, so that the
same function serves the generated kernel (on TIRx expressions) and the tests (on integers)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from subbyte.errors import Unsupported
from subbyte.numerics.layout import BLOCK_WORDS
from subbyte.numerics.pixel_strips import WORD_VALUES, StripForm
from subbyte.workload.conv import BATCH_GROUP, ceil_div

CHANNELS = BLOCK_WORDS * WORD_VALUES
"""int4 values of one image in a block of channels: 32."""


class Shape(NamedTuple):
    """True sizes of a tensor of values."""

    n: int
    h: int
    w: int
    c: int

    @property
    def groups(self) -> int:
        """Groups of 8 images."""
        return ceil_div(self.n, BATCH_GROUP)

    @property
    def blocks(self) -> int:
        """Blocks of 32 channels."""
        return ceil_div(self.c, CHANNELS)


class Place(NamedTuple):
    """A word: its number, and the image, row, column and first channel of its eight values."""

    word: Any
    n: Any
    y: Any
    x: Any
    c: Any


@dataclass(frozen=True)
class WordForm(ABC):
    """How the int4 values [N,H,W,C] of a tensor lie in words."""

    shape: Shape

    @property
    @abstractmethod
    def words(self) -> int:
        """Words in all, filling ones too."""

    @abstractmethod
    def at(self, thread: Any, columns_first: bool) -> Place:
        """The word that a thread handles; with ``columns_first`` neighbouring threads have neighbouring columns, else
        neighbouring words."""


@dataclass(frozen=True)
class BlockedForm(WordForm):
    """``nhwcnc`` [NB][H][W][CB][8 n][4 words] or ``nhwc`` [NB*8][H][W][CB*4 words]."""

    packed: bool

    @property
    def words(self) -> int:
        """Words in all."""
        s = self.shape
        return s.groups * BATCH_GROUP * s.h * s.w * s.blocks * BLOCK_WORDS

    def word(self, n: Any, y: Any, x: Any, index: Any) -> Any:
        """The number of word ``index`` (of 8 channels) of a pixel."""
        s = self.shape
        if not self.packed:
            return ((n * s.h + y) * s.w + x) * (s.blocks * BLOCK_WORDS) + index
        block = (((n // BATCH_GROUP) * s.h + y) * s.w + x) * s.blocks + index // BLOCK_WORDS
        return (block * BATCH_GROUP + n % BATCH_GROUP) * BLOCK_WORDS + index % BLOCK_WORDS

    def at(self, thread: Any, columns_first: bool) -> Place:
        """The word that a thread handles."""
        s = self.shape
        if columns_first:
            x, rest = thread % s.w, thread // s.w
            y, rest = rest % s.h, rest // s.h
            index, n = rest % (s.blocks * BLOCK_WORDS), rest // (s.blocks * BLOCK_WORDS)
            return Place(self.word(n, y, x, index), n, y, x, index * WORD_VALUES)
        if not self.packed:
            index, pixel = thread % (s.blocks * BLOCK_WORDS), thread // (s.blocks * BLOCK_WORDS)
            x, row = pixel % s.w, pixel // s.w
            return Place(thread, row // s.h, row % s.h, x, index * WORD_VALUES)
        part, rest = thread % BLOCK_WORDS, thread // BLOCK_WORDS
        image, rest = rest % BATCH_GROUP, rest // BATCH_GROUP
        block, rest = rest % s.blocks, rest // s.blocks
        x, rest = rest % s.w, rest // s.w
        y, group = rest % s.h, rest // s.h
        return Place(thread, group * BATCH_GROUP + image, y, x, (block * BLOCK_WORDS + part) * WORD_VALUES)


@dataclass(frozen=True)
class StripsForm(WordForm):
    """Strips of pixels of few channels, with the border stored (:class:`subbyte.numerics.pixel_strips.StripForm`):
    [NB][rows][words][8 n]. A word holds several pixels: its ``x`` and ``c`` are those of its first value."""

    strips: StripForm

    @property
    def words(self) -> int:
        """Words in all."""
        return self.shape.groups * self.strips.rows * self.strips.words * BATCH_GROUP

    def at(self, thread: Any, columns_first: bool) -> Place:
        """The word that a thread handles; row and column count from the image's, so that the border's are outside."""
        image, rest = thread % BATCH_GROUP, thread // BATCH_GROUP
        index, rest = rest % self.strips.words, rest // self.strips.words
        y, group = rest % self.strips.rows, rest // self.strips.rows
        pixels = WORD_VALUES // self.strips.channels
        return Place(thread, group * BATCH_GROUP + image, y - self.strips.pad, index * pixels - self.strips.pad, 0)


def word_form(form: str, shape: Shape) -> WordForm:
    """The form that an argument names. Raises Unsupported for one that no conversion kernel knows."""
    if form in ("nhwcnc", "nhwc"):
        return BlockedForm(shape, form == "nhwcnc")
    if strips := StripForm.of(form):
        return StripsForm(shape, strips)
    raise Unsupported(f"words of the form {form}: no kernel converts them on the device; Kernel.run does on the host")

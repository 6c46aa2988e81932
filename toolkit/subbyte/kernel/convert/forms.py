"""Where the words of a layout are in memory, and which values each holds: index maps using only ``+ * // %``, so that
the same function serves the generated kernel (on TIRx expressions) and the tests (on integers)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from subbyte.errors import Unsupported
from subbyte.numerics.layout import BLOCK_WORDS
from subbyte.numerics.pixel_strips import WORD_VALUES, StripForm
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.operand import WORD_BITS


class Shape(NamedTuple):
    """Actual sizes of a tensor of values."""

    n: int
    h: int
    w: int
    c: int

    @property
    def groups(self) -> int:
        """Groups of 8 images."""
        return ceil_div(self.n, BATCH_GROUP)


class Place(NamedTuple):
    """A word: its index, and the image, row, column and first channel of its values."""

    word: Any
    n: Any
    y: Any
    x: Any
    c: Any


@dataclass(frozen=True)
class WordForm(ABC):
    """How the values [N,H,W,C] of a tensor are laid out in words."""

    shape: Shape

    @property
    @abstractmethod
    def words(self) -> int:
        """Total number of words, including padding."""

    @abstractmethod
    def at(self, thread: Any, columns_first: bool) -> Place:
        """The word that a thread handles; with ``columns_first`` neighbouring threads take neighbouring columns, else
        neighbouring words."""


@dataclass(frozen=True)
class BlockedForm(WordForm):
    """``nhwcnc`` [NB][H][W][CB][8 n][4 words] or ``nhwc`` [NB*8][H][W][CB*4 words]."""

    packed: bool
    values: int = WORD_VALUES
    """Values per word: eight of four bits, four of eight."""

    @property
    def blocks(self) -> int:
        """Blocks of channels: 32 four-bit values or 16 eight-bit ones each."""
        return ceil_div(self.shape.c, BLOCK_WORDS * self.values)

    @property
    def words(self) -> int:
        """Total number of words."""
        s = self.shape
        return s.groups * BATCH_GROUP * s.h * s.w * self.blocks * BLOCK_WORDS

    def word(self, n: Any, y: Any, x: Any, index: Any) -> Any:
        """The index of word ``index`` of a pixel."""
        s = self.shape
        if not self.packed:
            return ((n * s.h + y) * s.w + x) * (self.blocks * BLOCK_WORDS) + index
        block = (((n // BATCH_GROUP) * s.h + y) * s.w + x) * self.blocks + index // BLOCK_WORDS
        return (block * BATCH_GROUP + n % BATCH_GROUP) * BLOCK_WORDS + index % BLOCK_WORDS

    def at(self, thread: Any, columns_first: bool) -> Place:
        """The word that a thread handles."""
        s = self.shape
        if columns_first:
            x, rest = thread % s.w, thread // s.w
            y, rest = rest % s.h, rest // s.h
            index, n = rest % (self.blocks * BLOCK_WORDS), rest // (self.blocks * BLOCK_WORDS)
            return Place(self.word(n, y, x, index), n, y, x, index * self.values)
        if not self.packed:
            index, pixel = thread % (self.blocks * BLOCK_WORDS), thread // (self.blocks * BLOCK_WORDS)
            x, row = pixel % s.w, pixel // s.w
            return Place(thread, row // s.h, row % s.h, x, index * self.values)
        part, rest = thread % BLOCK_WORDS, thread // BLOCK_WORDS
        image, rest = rest % BATCH_GROUP, rest // BATCH_GROUP
        block, rest = rest % self.blocks, rest // self.blocks
        x, rest = rest % s.w, rest // s.w
        y, group = rest % s.h, rest // s.h
        return Place(thread, group * BATCH_GROUP + image, y, x, (block * BLOCK_WORDS + part) * self.values)


@dataclass(frozen=True)
class StripsForm(WordForm):
    """Strips of pixels with few channels, including the border (:class:`subbyte.numerics.pixel_strips.StripForm`):
    [NB][rows][words][8 n]. A word holds several pixels: its ``x`` and ``c`` are those of its first value."""

    strips: StripForm

    @property
    def words(self) -> int:
        """Total number of words."""
        return self.shape.groups * self.strips.rows * self.strips.words * BATCH_GROUP

    def at(self, thread: Any, columns_first: bool) -> Place:
        """The word that a thread handles; row and column are relative to the image, so those of the border are
        outside."""
        image, rest = thread % BATCH_GROUP, thread // BATCH_GROUP
        index, rest = rest % self.strips.words, rest // self.strips.words
        y, group = rest % self.strips.rows, rest // self.strips.rows
        pixels = WORD_VALUES // self.strips.channels
        return Place(thread, group * BATCH_GROUP + image, y - self.strips.pad, index * pixels - self.strips.pad, 0)


def word_form(form: str, shape: Shape, bits: int = 4) -> WordForm:
    """The layout that an argument's ``form`` names, for values of 4 or 8 bits. Raises Unsupported if no conversion
    kernel handles it."""
    if form in ("nhwcnc", "nhwc"):
        return BlockedForm(shape, form == "nhwcnc", WORD_BITS // bits)
    if bits == 4 and (strips := StripForm.of(form)):
        return StripsForm(shape, strips)
    raise Unsupported(f"words of the form {form}: no kernel converts them on the device; Kernel.run does on the host")

"""Sizes of a kernel on fragments of bit planes: its tile, its stages in shared memory, what stands behind the sums.

A *fragment* is 8 images x 128 channels of one plane of a pixel, 32 words: lane ``4 g + t`` holds word t of image g, as
they lie in memory. A *slot* is one input pixel of the block's staged tile.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING

from subbyte.device.arch import Arch
from subbyte.families.shared.axis import Axis, Index
from subbyte.families.shared.bit_sizes import BitSizes
from subbyte.families.shared.flat_view import flat_view
from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.numerics.bit_products import CountForm, count_form
from subbyte.numerics.layout import BLOCK_WORDS as IMAGE_WORDS
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.operand import WORD_BITS
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.device.atoms import Atom

FRAGMENT_WORDS = BATCH_GROUP * IMAGE_WORDS
"""8 images x 128 channels of a plane."""
GROUP_TILES = 4
"""8-channel tiles whose bits are one output word, and whose weights a lane loads together."""
GROUP_WORDS = WORD_BITS * IMAGE_WORDS
"""Of a plane of 32 output channels' weights, 128 input channels each."""


@dataclass(frozen=True)
class PlaneGeometry(BitSizes):
    """What follows from the workload, the schedule and the output. Index functions take Python or TIRx integers."""

    workload: ConvWorkload
    config: PlaneConfig
    arch: Arch
    output: str
    clip: tuple[int, int] = (0, 0)
    requant: str = "fixed"

    # ---- what the kinds differ in ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def operation(self) -> str:
        """``and`` or ``xor``: what is counted."""

    @property
    @abstractmethod
    def atom(self) -> Atom:
        """What multiplies fragments."""

    @cached_property
    @abstractmethod
    def factors(self) -> tuple[int, ...]:
        """What each set of a thread's counts is multiplied by."""

    @property
    @abstractmethod
    def ones_registers(self) -> int:
        """Registers of a thread that count the activations' bits of its pixels."""

    @property
    @abstractmethod
    def fragment_registers(self) -> int:
        """Registers of a thread for operands, at a time."""

    @property
    @abstractmethod
    def written(self) -> int:
        """Products of fragments in the body of the innermost loop."""

    # ---- operands -------------------------------------------------------------------------------------------------

    @cached_property
    def view(self) -> ConvWorkload:
        """The layer as the kernel takes it: pixels that are no neighbours to each other count in one row of rows."""
        return flat_view(self.workload) if self.config.layout == "nhwcnc" else self.workload

    @cached_property
    def counts(self) -> CountForm:
        """Sums from counts of bits."""
        return count_form(self.workload.precision, self.operation)

    @property
    def border(self) -> str:
        """How pixels beyond the border are counted."""
        return self.counts.form.border

    @property
    def layout(self) -> str:
        """Of activations and outputs in memory."""
        return self.config.layout

    # ---- tiling ---------------------------------------------------------------------------------------------------

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels of a block."""
        pixels = self.config.pixels
        if self.config.tile_height:
            return self.config.tile_height, pixels // self.config.tile_height
        height = min((h for h in range(1, pixels + 1) if pixels % h == 0), key=self._cost)
        return height, pixels // height

    def _cost(self, height: int) -> tuple[int, int, int, int]:
        """Of rows of a block: whether warps have no rectangles, pixels at edges, staged pixels."""
        w, width = self.view, self.config.pixels // height
        uneven = not _rectangle(self.config.warp_row_tiles, width)
        covered = ceil_div(w.p, height) * ceil_div(w.q, width)
        rows, columns = Axis.of(height, w.r, w.stride, w.dilation), Axis.of(width, w.s, w.stride, w.dilation)
        return int(uneven), covered, rows.count * columns.count, height

    @cached_property
    def warp_tile(self) -> tuple[int, int]:
        """Rows and columns of a warp's rectangle: consecutive pixels of the block tile."""
        width = min(self.tile[1], self.config.warp_row_tiles)
        return self.config.warp_row_tiles // width, width

    @property
    def even(self) -> bool:
        """A warp's pixels are a rectangle of the block's."""
        return _rectangle(self.config.warp_row_tiles, self.tile[1])

    @property
    def pixel_tiles(self) -> tuple[int, int]:
        """Block tiles along the output's rows and columns."""
        return ceil_div(self.view.p, self.tile[0]), ceil_div(self.view.q, self.tile[1])

    @property
    def columns(self) -> int:
        """Output channels of a block."""
        return self.config.columns

    @property
    def words(self) -> int:
        """Output words of 32 channels of a block, of a plane."""
        return self.config.columns // WORD_BITS

    @property
    def warp_words(self) -> int:
        """Output words of a warp's channels."""
        return self.config.warp_col_tiles // GROUP_TILES

    @property
    def column_blocks(self) -> int:
        """Blocks along the output channels."""
        return ceil_div(self.view.k, self.config.columns)

    # ---- stages ---------------------------------------------------------------------------------------------------

    @property
    def rows_staged(self) -> int:
        """Kernel rows staged together."""
        return 1 if self.config.reorder_inner else self.view.r

    @property
    def chunks(self) -> int:
        """Steps along the input channels."""
        return ceil_div(self.channel_blocks, self.config.chunk)

    @property
    def iterations(self) -> int:
        """Stages, one after the other."""
        return self.chunks * (self.view.r // self.rows_staged)

    @property
    def stages(self) -> int:
        """Stages in shared memory at a time."""
        return min(self.config.stages, self.iterations)

    def step(self, iteration: Index) -> tuple[Index, Index]:
        """First kernel row and channel chunk of an iteration."""
        if self.config.reorder_inner:
            return iteration // self.chunks, iteration % self.chunks
        return 0, iteration

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Kernel column and channel block, within the chunk, of each 128 products of a kernel row."""
        return tuple((s, block) for s in range(self.view.s) for block in range(self.config.chunk))

    @cached_property
    def rows(self) -> Axis:
        """Vertical axis of the staged tile."""
        return Axis.of(self.tile[0], self.rows_staged, self.view.stride, self.view.dilation)

    @cached_property
    def cols(self) -> Axis:
        """Horizontal axis of the staged tile."""
        return Axis.of(self.tile[1], self.view.s, self.view.stride, self.view.dilation)

    @property
    def slots(self) -> int:
        """Input pixels of a stage."""
        return self.rows.count * self.cols.count

    def slot(self, row: Index, col: Index, r: Index, s: Index) -> Index:
        """Slot that output pixel (row, col) of the tile reads for tap (r, s), r counted within the staged rows."""
        return self.rows.position(row, r) * self.cols.count + self.cols.position(col, s)

    @property
    def slot_words(self) -> int:
        """Words of a slot, ordered [channel block][plane][8 images][4]."""
        return self.config.chunk * self.planes * FRAGMENT_WORDS

    @property
    def activation_words(self) -> int:
        """Words of a stage's activations."""
        return self.slots * self.slot_words

    @property
    def weight_words(self) -> int:
        """Words of a stage's weights, ordered [kernel row][kernel column][channel block][plane][32 channels]."""
        taps = self.rows_staged * self.view.s
        return taps * self.config.chunk * self.weight_planes * self.words * GROUP_WORDS

    def weight_place(self, r: Index, s: Index, block: Index, plane: Index, group: Index) -> Index:
        """Where, in a stage's weights, the words of 32 output channels begin."""
        tap = ((r * self.view.s + s) * self.config.chunk + block) * self.weight_planes + plane
        return (tap * self.words + group) * GROUP_WORDS

    @property
    def stage_words(self) -> int:
        """Words of a stage."""
        return self.activation_words + self.weight_words

    @property
    def staged(self) -> bool:
        """Operands go through shared memory."""
        return self.config.staging == "shared"

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes: of its stages, or of what warps add up there later."""
        staged = self.stages * self.stage_words if self.staged else 0
        return 4 * max(staged, (self.splits - 1) * self.kept_registers * self.config.threads)

    # ---- warps and registers ----------------------------------------------------------------------------------------

    @property
    def split_factors(self) -> tuple[tuple[int, int], ...]:
        """Groups of warps that compute the same outputs and add them up at the end: what the counts, and the counts of
        the activations' bits, of each are multiplied by."""
        return ((1, 1),)

    @property
    def splits(self) -> int:
        """Their number."""
        return len(self.split_factors)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.config.threads * self.splits

    @property
    def pairs(self) -> int:
        """Matrix instructions along the warp's pixels: instruction m takes pixels m and, if it has two, m + pairs."""
        return ceil_div(self.config.warp_row_tiles, self.atom.pixels)

    @property
    def set_registers(self) -> int:
        """Counts of a thread in a set."""
        return self.pairs * self.config.warp_col_tiles * self.atom.accumulators

    @property
    def kept_registers(self) -> int:
        """Registers of a thread that hold counts at the end of the main loop."""
        return len(self.factors) * self.set_registers + self.ones_registers

    def count(self, index: Index, pixel: Index, column: Index, e: Index) -> Index:
        """Register, of a set, of a warp's pixel and column ``2 (lane % 4) + e`` of one of its 8-channel tiles."""
        pair, half = pixel % self.pairs, pixel // self.pairs
        place = (pair * self.config.warp_col_tiles + column) * self.atom.accumulators + half * 2 + e
        return index * self.set_registers + place

    # ---- what is compared or added at the end -----------------------------------------------------------------------

    @property
    def thresholds(self) -> int:
        """Comparisons of a sum, 1 addition where sums are the output."""
        return 1 if self.output == SUMS else (1 << self.output_planes) - 1

    @cached_property
    def divisor(self) -> int:
        """What all factors of counts have in common."""
        form, sides = self.counts, (range(self.weight_planes), range(self.planes))
        found = [form.factor(s, t) for s in sides[0] for t in sides[1]]
        return gcd(*found, form.pixel) if self.output != SUMS else 1

    @property
    def shift(self) -> int:
        """What varies with the pixel is so much less than in :class:`CountForm`."""
        return 0

    @property
    def span(self) -> tuple[int, int]:
        """Least and largest value of what varies with the pixel, the common divisor taken out."""
        least, largest = (end - self.shift for end in self.counts.span(self.view))
        return least // self.divisor, largest // self.divisor

    @property
    def class_words(self) -> int:
        """What is compared or added in a class: [thresholds][words of the block][2][4 lanes][4 channels]."""
        return self.thresholds * self.words * WORD_BITS

    @property
    def flip_words(self) -> int:
        """Words behind the table that say which channels are flipped: whole 16 bytes."""
        return 0 if self.output == SUMS else ceil_div(self.words, 4) * 4

    @property
    def table_words(self) -> int:
        """Words of a block's table."""
        rows, columns = self.classes
        return rows * columns * self.class_words + self.flip_words

    # ---- outputs ----------------------------------------------------------------------------------------------------

    @property
    def pixel_words(self) -> int:
        """Output words of an image's pixel, of a plane: with those of channels that only fill up."""
        return self.filter_blocks * IMAGE_WORDS


def _rectangle(pixels: int, width: int) -> bool:
    return width % pixels == 0 or pixels % width == 0

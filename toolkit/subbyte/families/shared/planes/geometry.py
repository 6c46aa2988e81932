"""Sizes of a kernel on fragments of bit planes: its tile, its stages in shared memory, and what follows the sums.

A *fragment* is 8 images x 128 channels of one plane of a pixel, 32 words: lane ``4 g + t`` holds word t of image g, in
memory order. A *slot* is one input pixel of the block's staged tile.
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
"""Words of 8 images x 128 channels of a plane."""
GROUP_TILES = 4
"""8-channel tiles whose bits form one output word, and whose weights a lane loads at once."""
GROUP_WORDS = WORD_BITS * IMAGE_WORDS
"""Words of a plane of 32 output channels' weights, 128 input channels each."""


@dataclass(frozen=True)
class PlaneGeometry(BitSizes):
    """Quantities derived from the workload, the schedule and the output. Index functions take Python or TIRx
    integers."""

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
        """The bit product that is counted: ``and`` or ``xor``."""

    @property
    @abstractmethod
    def atom(self) -> Atom:
        """The instruction that multiplies fragments."""

    @cached_property
    @abstractmethod
    def factors(self) -> tuple[int, ...]:
        """The factor of each set of a thread's counts."""

    @property
    @abstractmethod
    def ones_registers(self) -> int:
        """Registers per thread that count the activation bits of its pixels."""

    @property
    @abstractmethod
    def fragment_registers(self) -> int:
        """Registers per thread for operands at any time."""

    @property
    @abstractmethod
    def written(self) -> int:
        """Products of fragments in the body of the innermost loop."""

    # ---- operands -------------------------------------------------------------------------------------------------

    @cached_property
    def view(self) -> ConvWorkload:
        """The layer as the kernel sees it: pixels whose windows contain no neighbours form one long row."""
        return flat_view(self.workload) if self.config.layout == "nhwcnc" else self.workload

    @cached_property
    def counts(self) -> CountForm:
        """How sums are computed from counts of bits."""
        return count_form(self.workload.precision, self.operation)

    @property
    def border(self) -> str:
        """How pixels outside the image are counted."""
        return self.counts.form.border

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        return self.config.layout

    # ---- tiling ---------------------------------------------------------------------------------------------------

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per block."""
        pixels = self.config.pixels
        if self.config.tile_height:
            return self.config.tile_height, pixels // self.config.tile_height
        height = min((h for h in range(1, pixels + 1) if pixels % h == 0), key=self._cost)
        return height, pixels // height

    def _cost(self, height: int) -> tuple[int, int, int, int]:
        """The cost of this many rows per block: whether warps have no rectangles, wasted pixels at edges, staged
        pixels."""
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
        """Whether each warp's pixels are a rectangle of the block's."""
        return _rectangle(self.config.warp_row_tiles, self.tile[1])

    @property
    def pixel_tiles(self) -> tuple[int, int]:
        """Block tiles along the output's rows and columns."""
        return ceil_div(self.view.p, self.tile[0]), ceil_div(self.view.q, self.tile[1])

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return self.config.columns

    @property
    def words(self) -> int:
        """Output words of 32 channels per block and plane."""
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
        """Number of chunks along the input channels."""
        return ceil_div(self.channel_blocks, self.config.chunk)

    @property
    def iterations(self) -> int:
        """Number of stages loaded in sequence."""
        return self.chunks * (self.view.r // self.rows_staged)

    @property
    def stages(self) -> int:
        """Number of stages in shared memory at a time."""
        return min(self.config.stages, self.iterations)

    def step(self, iteration: Index) -> tuple[Index, Index]:
        """First kernel row and channel chunk of an iteration."""
        if self.config.reorder_inner:
            return iteration // self.chunks, iteration % self.chunks
        return 0, iteration

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Kernel column and channel block (within the chunk) of each 128 products of a kernel row."""
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
        """Input pixels per stage."""
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
        """Where the words of 32 output channels begin in a stage's weights."""
        tap = ((r * self.view.s + s) * self.config.chunk + block) * self.weight_planes + plane
        return (tap * self.words + group) * GROUP_WORDS

    @property
    def stage_words(self) -> int:
        """Words of a stage."""
        return self.activation_words + self.weight_words

    @property
    def staged(self) -> bool:
        """Whether operands go through shared memory."""
        return self.config.staging == "shared"

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes: for its stages, or for what warps later add up there."""
        staged = self.stages * self.stage_words if self.staged else 0
        return 4 * max(staged, (self.splits - 1) * self.kept_registers * self.config.threads)

    # ---- warps and registers ----------------------------------------------------------------------------------------

    @property
    def split_factors(self) -> tuple[tuple[int, int], ...]:
        """Groups of warps that compute the same outputs and add them up at the end: the factors of each group's counts,
        and of its counts of activation bits."""
        return ((1, 1),)

    @property
    def splits(self) -> int:
        """Number of such groups."""
        return len(self.split_factors)

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.config.threads * self.splits

    @property
    def pairs(self) -> int:
        """Matrix instructions along the warp's pixels: instruction m takes pixels m and, if it has two, m + pairs."""
        return ceil_div(self.config.warp_row_tiles, self.atom.pixels)

    @property
    def set_registers(self) -> int:
        """Counts of a thread per set."""
        return self.pairs * self.config.warp_col_tiles * self.atom.accumulators

    @property
    def kept_registers(self) -> int:
        """Registers per thread that hold counts at the end of the main loop."""
        return len(self.factors) * self.set_registers + self.ones_registers

    def count(self, index: Index, pixel: Index, column: Index, e: Index) -> Index:
        """Register, within a set, for a warp's pixel and column ``2 (lane % 4) + e`` of one of its 8-channel tiles."""
        pair, half = pixel % self.pairs, pixel // self.pairs
        place = (pair * self.config.warp_col_tiles + column) * self.atom.accumulators + half * 2 + e
        return index * self.set_registers + place

    # ---- what is compared or added at the end -----------------------------------------------------------------------

    @property
    def thresholds(self) -> int:
        """Comparisons per sum; 1 addition if sums are the output."""
        return 1 if self.output == SUMS else (1 << self.output_planes) - 1

    @cached_property
    def divisor(self) -> int:
        """The common divisor of all factors of counts."""
        form, sides = self.counts, (range(self.weight_planes), range(self.planes))
        found = [form.factor(s, t) for s in sides[0] for t in sides[1]]
        return gcd(*found, form.pixel) if self.output != SUMS else 1

    @property
    def shift(self) -> int:
        """How much smaller the part that varies with the pixel is than in :class:`CountForm`."""
        return 0

    @property
    def span(self) -> tuple[int, int]:
        """Smallest and largest value of the part that varies with the pixel, divided by the common divisor."""
        least, largest = (end - self.shift for end in self.counts.span(self.view))
        return least // self.divisor, largest // self.divisor

    @property
    def class_words(self) -> int:
        """Words to compare with or add in a class: [thresholds][words of the block][2][4 lanes][4 channels]."""
        return self.thresholds * self.words * WORD_BITS

    @property
    def flip_words(self) -> int:
        """Words after the table that say which channels are flipped, rounded up to 16 bytes."""
        return 0 if self.output == SUMS else ceil_div(self.words, 4) * 4

    @property
    def table_words(self) -> int:
        """Words of a block's table."""
        rows, columns = self.classes
        return rows * columns * self.class_words + self.flip_words

    # ---- outputs ----------------------------------------------------------------------------------------------------

    @property
    def pixel_words(self) -> int:
        """Output words of one pixel of one image, per plane, including those of padding channels."""
        return self.filter_blocks * IMAGE_WORDS


def _rectangle(pixels: int, width: int) -> bool:
    return width % pixels == 0 or pixels % width == 0

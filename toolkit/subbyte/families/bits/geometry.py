"""Sizes and places of a kernel on one-bit products: what lies where in shared memory, and what an instruction reads.

M = 64: 8 pixels of an output row times 8 images, straight from the rows of the input as they lie in memory: the 8
images' 128 bits of a pixel's channels are a core matrix of wgmma. N: output channels times planes of the weights, then
columns of ones that count the activations' bits. K = 256: two pieces of 128 channels, at any distance from each other,
of one tap or of two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.bits.config import BitsConfig
from subbyte.numerics.bit_products import CLASSES, BitProducts, bit_products, border_classes
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS
from subbyte.workload.precision import SUMS

PIECE_BYTES = 16
"""128 bits of one image: a row of a core matrix."""
CORE_BYTES = BATCH_GROUP * PIECE_BYTES
TILE_PIXELS = 8
"""Of an instruction: M = 64."""
COLUMNS = (8, 16, 24, *range(32, 257, 16))
"""N of wgmma with integers (PTX ISA, wgmma.mma_async)."""
ONES = 8
"""Columns of ones, of which each thread holds two."""
WORD_CHANNELS = 32
PAIR_CHANNELS = BLOCK_BITS // 2
"""Channels of a pixel where two rows share a block."""
WORKING_REGISTERS = 28
"""Of a thread, beside counts and table."""
MOST_KEPT = 32
"""Table entries in registers, at most."""


WIDEST_ROW, ENOUGH_ROWS = 64, 64
"""Of a flat view: pixels of a row, and rows that are enough for all multiprocessors."""


def flat_view(workload: ConvWorkload) -> ConvWorkload:
    """A layer of single pixels (1x1, stride 1, no padding; a matrix product) as one group of images with all their
    pixels in rows of a width that fills tiles; any other layer itself."""
    w = workload
    if (w.r, w.s, w.pad, w.stride) != (1, 1, 0, 1):
        return w
    pixels = w.batch_groups * w.h * w.w
    widths = [width for width in range(1, WIDEST_ROW + 1) if pixels % width == 0]

    def cost(width: int) -> tuple[float, int, int]:
        waste = ceil_div(width, TILE_PIXELS) * TILE_PIXELS / width
        few = pixels // width < ENOUGH_ROWS
        return waste, int(few), width if few else -width

    width = min(widths, key=cost)
    return replace(w, n=BATCH_GROUP, h=pixels // width, w=width)


@dataclass(frozen=True)
class BitsGeometry:
    """What follows from the workload, the schedule and the output. Index functions take Python or TIRx integers."""

    workload: ConvWorkload
    config: BitsConfig
    arch: Arch
    output: str
    clip: tuple[int, int] = (0, 0)
    requant: str = "fixed"

    @cached_property
    def view(self) -> ConvWorkload:
        """The layer as the kernel takes it: pixels that are no neighbours to each other count in one row of rows."""
        return self.workload if self.config.paired_rows else flat_view(self.workload)

    # ---- operands -----------------------------------------------------------------------------------------------

    @cached_property
    def form(self) -> BitProducts:
        """Sums of products from counts of bits."""
        return bit_products(self.workload.precision)

    @property
    def weight_planes(self) -> int:
        """Bits of a weight."""
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

    @property
    def paired_rows(self) -> bool:
        """Two input rows share the 128 bits of a block of channels."""
        return bool(self.config.paired_rows) and self.view.c <= PAIR_CHANNELS

    @property
    def paired_output(self) -> bool:
        """Two output rows share them."""
        return self.output != SUMS and bool(self.config.paired_rows) and self.view.k <= PAIR_CHANNELS

    @property
    def pixel_bytes(self) -> int:
        """Of 8 images."""
        return self.channel_blocks * self.planes * CORE_BYTES

    # ---- tiles --------------------------------------------------------------------------------------------------

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels of a block."""
        return self.config.tile_rows, self.view.q

    @property
    def columns(self) -> int:
        """Output channels of a block."""
        return self.config.channels

    @property
    def slices(self) -> int:
        """Blocks that share an input, each with its own output channels."""
        return ceil_div(self.view.k, self.config.channels)

    @property
    def segments(self) -> int:
        """Blocks along the output rows."""
        return ceil_div(self.view.p, self.config.tile_rows)

    @property
    def row_tiles(self) -> int:
        """Instruction tiles of an output row, where they end with it."""
        return ceil_div(self.view.q, TILE_PIXELS)

    @property
    def tiles(self) -> int:
        """Instruction tiles of a block."""
        if not self.config.run_on:
            return self.config.tile_rows * self.row_tiles
        return ceil_div((self.config.tile_rows - 1) * self.pitch + self.view.q, TILE_PIXELS)

    @property
    def pixels_per_row(self) -> int:
        """From the first output pixel of a row to that of the next one, counted in steps of the instruction."""
        return self.pitch if self.config.run_on else self.row_tiles * TILE_PIXELS

    # ---- input rows in shared memory ------------------------------------------------------------------------------

    @property
    def pitch(self) -> int:
        """Pixels from one staged row to the next. The zeros behind a row are those before the next one; where tiles end
        with a row, it is as wide as its last tile reads."""
        w = self.view
        if self.config.run_on:
            return w.w + w.pad
        last = (self.row_tiles * TILE_PIXELS - 1) * w.stride + (w.s - 1) * w.dilation + 1
        return max(w.w + w.pad, last)

    @property
    def image_rows(self) -> int:
        """Rows of the input as it is stored: pairs, or single ones."""
        return ceil_div(self.view.h, 2) if self.paired_rows else self.view.h

    @property
    def window_rows(self) -> int:
        """Stored rows that an output row reads."""
        w = self.view
        span = (w.r - 1) * w.dilation + 1
        return max(ceil_div(span + parity, 2) for parity in self.parities) if self.paired_rows else span

    @property
    def parities(self) -> tuple[int, ...]:
        """Which of two paired rows the first row of a window may be: a variant of the weights for each."""
        w = self.view
        if not self.paired_rows:
            return (0,)
        return (w.pad % 2,) if w.stride % 2 == 0 else (0, 1)

    @property
    def staged_rows(self) -> int:
        """Stored rows of a block."""
        w, rows = self.view, self.config.tile_rows
        span = (rows - 1) * w.stride + (w.r - 1) * w.dilation + 1
        if not self.paired_rows:
            return span
        firsts = {(segment * rows * w.stride - w.pad) % 2 for segment in range(self.segments)}
        return max(ceil_div(span + first, 2) for first in firsts)

    @property
    def slack(self) -> int:
        """Pixels behind the last staged row that tiles read."""
        w = self.view
        if not self.config.run_on:
            return 0
        end = self.tiles * TILE_PIXELS + (w.r - 1) * w.dilation * self.pitch + (w.s - 1) * w.dilation
        return max(0, end - self.staged_rows * self.pitch)

    @property
    def rows_bytes(self) -> int:
        """Of the staged rows."""
        return (self.staged_rows * self.pitch + self.slack) * self.pixel_bytes

    def stored_row(self, row: Any) -> Any:
        """The stored row that holds a row of the image."""
        half = (self.view.pad + 1) // 2  # rows before the image are negative
        return (row + 2 * half) // 2 - half if self.paired_rows else row

    @property
    def rows_inside(self) -> bool:
        """Every staged row of every block is in the image."""
        w = self.view
        last = (self.segments * self.config.tile_rows - 1) * w.stride + (w.r - 1) * w.dilation
        return w.pad == 0 and last < w.h and not self.paired_rows

    # ---- the reduction --------------------------------------------------------------------------------------------

    @cached_property
    def pieces(self) -> tuple[int, ...]:
        """Bytes from a tile's first input pixel to each piece of 128 channels of a tap, ascending."""
        w = self.view
        taps = range(self.window_rows) if self.paired_rows else range(w.r)
        return tuple(
            (r * w.dilation * self.pitch + s * w.dilation) * self.pixel_bytes + block * self.planes * CORE_BYTES
            for r in taps
            for s in range(w.s)
            for block in range(self.channel_blocks)
        )

    @property
    def steps(self) -> int:
        """Instructions of a tile and a plane of activations: two pieces each."""
        return ceil_div(len(self.pieces), 2)

    def step(self, index: int) -> tuple[int, int]:
        """Bytes to the first piece of a step, and from there to the second (0 where there is none: its weights are
        zeros)."""
        first = self.pieces[2 * index]
        return first, self.pieces[2 * index + 1] - first if 2 * index + 1 < len(self.pieces) else 0

    @property
    def filter_columns(self) -> int:
        """Columns of an instruction that multiply weights."""
        return self.weight_planes * self.config.channels

    @property
    def n(self) -> int:
        """N of the instruction, 0 where there is none so wide."""
        wanted = self.filter_columns + (ONES if self.form.per_pixel else 0)
        return next((n for n in COLUMNS if n >= wanted), 0)

    @property
    def sums(self) -> int:
        """Registers of a set of sums of a thread."""
        return self.n // 2

    @property
    def sets(self) -> int:
        """Sets of sums that a thread holds."""
        return 1 if self.config.doubled else self.planes

    @property
    def variant_bytes(self) -> int:
        """Of a block's weights, in one variant."""
        return self.steps * 2 * self.n * PIECE_BYTES

    @property
    def weight_bytes(self) -> int:
        """Of a block's weights."""
        return len(self.parities) * self.variant_bytes

    # ---- what is compared or added at the end -----------------------------------------------------------------------

    @property
    def words(self) -> int:
        """Output words of 32 channels of a block, of a plane."""
        return self.config.channels // WORD_CHANNELS

    @property
    def thresholds(self) -> int:
        """Comparisons of a sum, 1 addition where sums are the output."""
        return 1 if self.output == SUMS else (1 << self.output_planes) - 1

    @cached_property
    def divisor(self) -> int:
        """What all factors of counts have in common."""
        return gcd(*self._factors, self.form.pixel) if self.output != SUMS else 1

    @property
    def _factors(self) -> list[int]:
        form = self.form
        return [form.product * s * t for s in form.weights.weights for t in form.activations.weights]

    def factor(self, weight_plane: int, plane: int) -> int:
        """What a count of a plane of weights and one of activations is multiplied by."""
        form = self.form
        return form.product * form.weights.weights[weight_plane] * form.activations.weights[plane] // self.divisor

    def ones_factor(self, plane: int) -> int:
        """What a count of a plane of activations is multiplied by."""
        return self.form.pixel * self.form.activations.weights[plane] // self.divisor

    def set_factor(self, weight_plane: int, index: int) -> int:
        """What a sum of set ``index`` is multiplied by."""
        return self.factor(weight_plane, index)

    def set_ones_factor(self, index: int) -> int:
        """What a set's count of activation bits is multiplied by."""
        return self.ones_factor(index)

    def doubling(self, plane: int) -> int:
        """What sums of the planes above are multiplied by before those of ``plane`` are added."""
        weights = self.form.activations.weights
        return weights[plane + 1] // weights[plane]

    @cached_property
    def span(self) -> tuple[int, int]:
        """Least and largest value of what varies with the pixel, all factors divided."""
        form, depth = self.form, self.view.r * self.view.s * self.view.c
        found = []
        for w in range(1 << self.weight_planes):
            for x in range(1 << self.planes):
                ws = sum(d for t, d in enumerate(form.weights.weights) if w >> t & 1)
                xs = sum(d for t, d in enumerate(form.activations.weights) if x >> t & 1)
                found.append((form.product * ws * xs + form.pixel * xs) // self.divisor)
        return depth * min(found), depth * max(found)

    @property
    def paired(self) -> bool:
        """Two sums are compared in one register, 16 bits each."""
        least, largest = self.span
        return self.output != SUMS and self.words > 1 and largest - least + 1 < 1 << 15

    @property
    def slots(self) -> int:
        """Words or, where two sums share a register, pairs of words."""
        return self.words // 2 if self.paired else self.words

    def slot_words(self, slot: int) -> tuple[int, ...]:
        """The output words of a slot."""
        if not self.paired:
            return (slot,)
        if self.words == 2:
            return 0, 1
        first = slot // 2 * 4 + slot % 2
        return first, first + 2

    @property
    def granted(self) -> int:
        """Registers of a thread: the assembler counts whole warpgroups."""
        warpgroups = self.config.consumers + 1
        return min(self.arch.registers_per_sm // (128 * warpgroups) // 8 * 8, self.arch.registers_per_thread)

    @property
    def kept(self) -> int:
        """Table entries of the inner class that a thread keeps in registers: all of them, or none."""
        entries = self.thresholds * self.slots * 8
        free = self.granted - self.sums * self.sets - WORKING_REGISTERS
        return entries if self.output != SUMS and entries <= min(free, MOST_KEPT) else 0

    @cached_property
    def border_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Class of each output row and of each output column (subbyte.numerics.border_classes), all 0 where the border
        costs nothing."""
        w = self.view
        if self.form.border != CLASSES:
            return (0,) * w.p, (0,) * w.q
        found = border_classes(w)
        width = int(found.of[0].max()) + 1
        return tuple((found.of[:, 0] // width).tolist()), tuple((found.of[0] % width).tolist())

    @property
    def classes(self) -> tuple[int, int]:
        """Numbers of classes of rows and of columns."""
        rows, columns = self.border_rows
        return max(rows) + 1, max(columns) + 1

    @property
    def table_words(self) -> int:
        """What is compared or added, of a block: [classes][thresholds][slots][8][4 lanes]; behind it the flips of the
        output words, up to 16 bytes more."""
        rows, columns = self.classes
        entries = rows * columns * self.thresholds * self.slots * 32
        return entries + (0 if self.output == SUMS else ceil_div(self.words, 4) * 4)

    # ---- shared memory ----------------------------------------------------------------------------------------------

    @property
    def weight_base(self) -> int:
        """Byte where the weights begin."""
        return ceil_div(self.rows_bytes, 128) * 128

    @property
    def table_base(self) -> int:
        """Byte where the table begins."""
        return self.weight_base + self.weight_bytes

    @property
    def barrier_base(self) -> int:
        """Byte where the barriers begin: one for each staged row, then that of weights and table."""
        return self.table_base + 4 * self.table_words

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return ceil_div(self.barrier_base + 8 * (self.staged_rows + 1), 16) * 16

    # ---- outputs ----------------------------------------------------------------------------------------------------

    @property
    def pixel_words(self) -> int:
        """Output words of an image's pixel, of a plane: with those of channels that only fill up."""
        return PAIR_CHANNELS // WORD_CHANNELS if self.paired_output else self.filter_blocks * 4

    @property
    def stored_outputs(self) -> int:
        """Words of a group of images."""
        w = self.view
        rows = ceil_div(w.p, 2) if self.paired_output else w.p
        return rows * w.q * self.filter_blocks * self.output_planes * 32

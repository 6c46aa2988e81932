"""Sizes of a kernel on one-bit products: what an instruction reads, what follows the sums, and the layout of shared
memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import gcd
from typing import Any

from subbyte.families.bits.tiles import CORE_BYTES, PAIR_CHANNELS, PIECE_BYTES, TILE_PIXELS, BitsTiles
from subbyte.numerics.bit_products import BitProducts
from subbyte.numerics.float_requant import LINE_SCALE_LOG2
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.precision import SUMS

COLUMNS = (8, 16, 24, *range(32, 257, 16))
"""Values of N for integer wgmma (PTX ISA, wgmma.mma_async)."""
ONES = 8
"""Columns of ones; each thread holds two."""
WORD_CHANNELS = 32
WORKING_REGISTERS = 28
"""Registers per thread, besides counts and table."""
LINE_WORDS = 4
"""Words per channel whose code a line gives: addend, factor, offset, and one word of padding."""
MOST_KEPT = 32
"""The most table entries kept in registers."""


@cache
def _span(form: BitProducts, depth: int, divisor: int) -> tuple[int, int]:
    """The smallest and largest contribution of ``depth`` products per pair of values, without constants."""
    sums = [
        [sum(d for t, d in enumerate(code.weights) if bits >> t & 1) for bits in range(1 << len(code.weights))]
        for code in (form.weights, form.activations)
    ]
    found = [(form.product * w * x + form.pixel * x) // divisor for w in sums[0] for x in sums[1]]
    return depth * min(found), depth * max(found)


@dataclass(frozen=True)
class BitsGeometry(BitsTiles):
    """Quantities derived from the workload, the schedule and the output."""

    # ---- the reduction --------------------------------------------------------------------------------------------

    @cached_property
    def pieces(self) -> tuple[int, ...]:
        """Bytes from a tile's first input pixel to each piece of 128 channels of a tap; ascending if a
        descriptor can express the distances (rule ``instruction``)."""
        w = self.view
        return tuple(
            (r * w.dilation * self.pitch + s * w.dilation) * self.pixel_bytes + block * self.planes * CORE_BYTES
            for r in range(self.tap_rows)
            for s in range(w.s)
            for block in range(self.channel_blocks)
        )

    @property
    def steps(self) -> int:
        """Instructions per tile and plane of activations: two pieces each."""
        return ceil_div(self.tap_rows * self.view.s * self.channel_blocks, 2)

    @property
    def tap_rows(self) -> int:
        """Rows of taps, or of pairs of them."""
        return self.window_rows if self.paired_rows else self.view.r

    def step(self, index: int) -> tuple[int, int]:
        """Bytes to the first piece of a step, and from there to the second (0 if there is none: its weights are
        zeros)."""
        first = self.pieces[2 * index]
        return first, self.pieces[2 * index + 1] - first if 2 * index + 1 < len(self.pieces) else 0

    @property
    def filter_columns(self) -> int:
        """Columns of an instruction that multiply weights."""
        return self.weight_planes * self.config.channels

    @property
    def n(self) -> int:
        """N of the instruction, 0 if none is wide enough."""
        return next((n for n in COLUMNS if n >= self.filter_columns + self.ones), 0)

    @property
    def ones(self) -> int:
        """Columns of ones, which count the activation bits if these are needed."""
        return ONES if self.form.per_pixel and not self.config.counted else 0

    @property
    def sums(self) -> int:
        """Registers per thread of a set of sums."""
        return self.n // 2

    @property
    def sets(self) -> int:
        """Number of sets of sums that a thread holds."""
        return 1 if self.config.doubled else self.planes

    @property
    def counts(self) -> int:
        """Registers per thread for all counts of a turn."""
        return self.sums * self.sets * self.config.turn_rows

    def below(self, further: int) -> tuple[int, int]:
        """For the tile ``further`` rows below the first of a turn: byte offset of its rows, and of its variant of the
        weights, which is known if turns begin at even rows."""
        w = self.view
        if not self.paired_rows or self.config.turn_rows == 1:
            return further * w.stride * self.pitch * self.pixel_bytes, 0
        row = further * w.stride - w.pad
        variant = self.parities.index(row % 2) * self.variant_bytes
        return (row // 2 - -w.pad // 2) * self.pitch * self.pixel_bytes, variant

    @property
    def variant_bytes(self) -> int:
        """Bytes of a block's weights in one variant."""
        return self.steps * 2 * self.n * PIECE_BYTES

    @property
    def weight_bytes(self) -> int:
        """Bytes of a block's weights."""
        return len(self.parities) * self.variant_bytes

    # ---- what is compared or added at the end -----------------------------------------------------------------------

    @property
    def words(self) -> int:
        """Output words of 32 channels of a block, per plane."""
        return self.config.channels // WORD_CHANNELS

    @property
    def spread(self) -> bool:
        """Whether blocks take strided output words instead of contiguous ones: a residual that exists only for some
        channels is then distributed over all blocks."""
        return self.slices > 1 and 0 < self.fusion.residual < self.slices * self.config.channels

    def output_word(self, slice_: Any, own: Any) -> Any:
        """The output word that is word ``own`` of a block."""
        return own * self.slices + slice_ if self.spread else slice_ * self.words + own

    @property
    def thresholds(self) -> int:
        """Comparisons per sum; 1 addition if sums are the output; or the words of a line."""
        if self.by_line:
            return LINE_WORDS
        return 1 if self.output == SUMS else (1 << self.output_planes) - 1

    @property
    def constants(self) -> int:
        """Table entries per sum in addition to its thresholds: the constant that completes it, when sums are kept."""
        return int(self.fusion.keep)

    @property
    def entries(self) -> int:
        """Table entries per sum."""
        return self.thresholds + self.constants

    @cached_property
    def divisor(self) -> int:
        """The common divisor of all factors of counts."""
        whole = self.output == SUMS or self.fusion.sums or self.by_line
        return 1 if whole else gcd(*self._factors, self.form.pixel)

    @property
    def scale(self) -> int:
        """The factor on sums."""
        return 1 << LINE_SCALE_LOG2 if self.by_line else 1

    @property
    def _factors(self) -> list[int]:
        form = self.form
        return [form.product * s * t for s in form.weights.weights for t in form.activations.weights]

    def factor(self, weight_plane: int, plane: int) -> int:
        """The factor on a count of a plane of weights and one of activations; doubled sums count as
        those of the lowest plane."""
        form = self.form
        whole = form.product * form.weights.weights[weight_plane] * form.activations.weights[plane]
        return whole * self.scale // self.divisor

    def ones_factor(self, plane: int) -> int:
        """The factor on a count of a plane of activations."""
        return self.form.pixel * self.form.activations.weights[plane] * self.scale // self.divisor

    def doubling(self, plane: int) -> int:
        """The factor on the sums of higher planes before those of ``plane`` are added."""
        weights = self.form.activations.weights
        return weights[plane + 1] // weights[plane]

    @property
    def negative_sums(self) -> bool:
        """Whether a set's sums may be negative: a count never is, but the top plane of signed activations counts
        negatively."""
        return self.whole_values or (bool(self.config.doubled) and min(self.form.activations.weights) < 0)

    @property
    def span(self) -> tuple[int, int]:
        """Smallest and largest value of the part of a sum that varies with the pixel, divided by the common divisor."""
        if self.whole_values:
            most = self.view.r * self.view.s * self.view.c * self.workload.precision.largest_product
            return -most, most
        return _span(self.form, self.view.r * self.view.s * self.view.c, self.divisor)

    @property
    def paired(self) -> bool:
        """Whether two sums are compared in one register, 16 bits each."""
        least, largest = self.span
        small = largest - least + 1 < 1 << 15 and not self.fusion.sums and not self.by_line
        return self.output != SUMS and self.words > 1 and small

    @property
    def slots(self) -> int:
        """Number of words or, if two sums share a register, of pairs of words."""
        return self.words // 2 if self.paired else self.words

    def slot_words(self, slot: int) -> tuple[int, ...]:
        """The output words of a slot."""
        return self.gather_words(slot) if self.paired else (slot,)

    @property
    def gathers(self) -> int:
        """Exchanges per tile and plane in which lanes get whole words: as many words for each lane."""
        return max(1, self.words // 2)

    def gather_words(self, gather: int) -> tuple[int, ...]:
        """The output words that are exchanged together, so that a lane gets neighbours: two, or the only one."""
        if self.words <= 2:
            return tuple(range(self.words))
        first = gather // 2 * 4 + gather % 2
        return first, first + 2

    @property
    def granted(self) -> int:
        """Registers per thread: the assembler allocates for whole warpgroups."""
        warpgroups = self.config.consumers + 1
        return min(self.arch.registers_per_sm // (128 * warpgroups) // 8 * 8, self.arch.registers_per_thread)

    @property
    def residual_registers(self) -> int:
        """Registers per thread for the residual of a tile: one per two sums, or per 32-bit sum."""
        return self.config.channels * self.fusion.residual_bits // 64 if self.fusion.residual else 0

    @property
    def held_residual(self) -> int:
        """Registers per thread for the residual of a turn and of the next one; with windows, for that of a tile and
        some in flight."""
        if not self.fusion.residual:
            return 0
        if self.fusion.residual_pool > 1:
            return self.residual_registers + 2 * self.fusion.residual_bits
        return (2 if self.loads_ahead else 1) * self.residual_registers * self.config.turn_rows

    @property
    def kept_windows(self) -> int:
        """Registers per thread for window maxima, until their lower rows are complete."""
        return self.config.channels * self.fusion.keep_bits // 128 if self.fusion.keep_pool > 1 else 0

    @property
    def loads_ahead(self) -> bool:
        """Whether the next turn's residual is loaded while a turn runs: there is a residual, and registers suffice."""
        if not self.fusion.residual or self.fusion.residual_pool > 1 or self.turns <= self.config.consumers:
            return False
        both = 2 * self.residual_registers * self.config.turn_rows
        return self.counts + both + self.kept_windows <= self.granted - WORKING_REGISTERS

    @property
    def kept(self) -> int:
        """Table entries of the inner class that a thread keeps in registers: all of them, or none."""
        entries = self.entries * self.slots * 8
        free = self.granted - self.counts - self.held_residual - self.kept_windows - WORKING_REGISTERS
        return entries if self.output != SUMS and not self.by_line and entries <= min(free, MOST_KEPT) else 0

    @property
    def table_words(self) -> int:
        """Words per block to compare with or add, [classes][entries][slots][8][4 lanes]; then the flips of the
        output words, up to 16 bytes more."""
        rows, columns = self.classes
        return rows * columns * self.entries * self.slots * 32 + self.flip_words

    @property
    def flip_words(self) -> int:
        """Words after the table that say which channels are flipped, rounded up to 16 bytes."""
        return 0 if self.output == SUMS else ceil_div(self.words, 4) * 4

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
        """Byte where the barriers begin: one for each staged row, then the one for weights and table."""
        return self.table_base + 4 * self.table_words

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.window_base + 4 * self.window_words

    # ---- bits that are counted beside the products ------------------------------------------------------------------

    @property
    def barriers(self) -> int:
        """One for each staged row, one for weights and table, one for each output row whose windows are counted."""
        return self.staged_rows + 1 + (self.config.tile_rows if self.config.counted else 0)

    @property
    def count_base(self) -> int:
        """Byte offset in shared memory of the counts of staged pixels: int32 [image rows][pitch][8 images]."""
        return ceil_div(self.barrier_base + 8 * self.barriers, 16) * 16

    @property
    def count_words(self) -> int:
        """Number of counts of staged pixels."""
        rows = self.staged_rows * (2 if self.paired_rows else 1)
        return rows * self.pitch * BATCH_GROUP if self.config.counted else 0

    @property
    def window_base(self) -> int:
        """Byte where the counts of windows begin: int32 [output rows][pixels][8 images]."""
        return self.count_base + 4 * self.count_words

    @property
    def window_words(self) -> int:
        """Number of counts of windows."""
        return self.config.tile_rows * self.row_tiles * TILE_PIXELS * BATCH_GROUP if self.config.counted else 0

    @property
    def window_factor(self) -> int:
        """The factor on a window's count, which covers all planes with their weights; for both sums of a register."""
        return self.form.pixel * self.scale // self.divisor * ((1 << 16) + 1 if self.paired else 1)

    # ---- outputs ----------------------------------------------------------------------------------------------------

    @property
    def pixel_words(self) -> int:
        """Output words of one pixel of one image, per plane, including those of padding channels."""
        return PAIR_CHANNELS // WORD_CHANNELS if self.paired_output else self.filter_blocks * 4

    @property
    def stored_outputs(self) -> int:
        """Words per group of images."""
        rows = ceil_div(self.out_rows, 2) if self.paired_output else self.out_rows
        return rows * self.out_columns * self.filter_blocks * self.output_planes * 32

"""The plan of a kernel: every size, index map and address, computed from workload, configuration and architecture.

Nothing here knows TVM. The index functions use only ``+ * // %``, so the same functions serve the generated kernel (on
TIRx expressions), the records behind the pictures and the tests (on integers).

Terms: a *slot* is one input pixel of the block's staged tile (an 8 x 32 block of 32 words per channel block); a *tap*
is a kernel position (r, s); the *tile* is the block's rectangle of output pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.device.atoms import Atom, atom, byte_atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.operand_sizes import BLOCK_WORDS, OperandSizes
from subbyte.families.mma.tile import choose_tile
from subbyte.families.shared.axis import Axis, Index
from subbyte.numerics.fusion import ADDED, Fusion
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.operand import SIGNED, Operand
from subbyte.workload.precision import SUMS

COPY_WORDS = 4
"""Words moved by one 16-byte copy."""


@dataclass(frozen=True)
class Plan(OperandSizes):
    """Everything about one kernel that is known before its code is generated.

    ``stored`` is ``s4``, packed activations; ``s8`` is a control experiment that stores in memory what the unpacked
    atom multiplies, signed bytes: twice the bytes to load, and nothing to unpack (``benchmarks/paper unpacking``).
    """

    workload: ConvWorkload
    config: MmaConfig
    arch: Arch
    output: str = "int4"
    clip: tuple[int, int] = (-8, 7)
    requant: str = "fixed"
    stored: str = "s4"

    # ---- tiling -------------------------------------------------------------------------------------------------

    @cached_property
    def atom(self) -> Atom:
        """The matrix instruction."""
        types = self.workload.precision
        found = atom(self.config.atom, self.arch)
        if self.bytes_in:
            found = byte_atom(self.arch, self.workload.channel_blocks, types.weights.bits)
        return found.with_activations(types.activations.encoding == SIGNED)

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Height and width of the block tile in output pixels."""
        if self.config.tile_height:
            return self.config.tile_height, self.config.pixels // self.config.tile_height
        return choose_tile(self.workload, self.config.pixels)

    @cached_property
    def warp_tile(self) -> tuple[int, int]:
        """Height and width of one warp's rectangle: consecutive pixels of the block tile."""
        width = min(self.tile[1], self.config.warp_row_tiles)
        return self.config.warp_row_tiles // width, width

    @property
    def pixel_tiles(self) -> tuple[int, int]:
        """Block tiles along the output's height and width."""
        return ceil_div(self.workload.p, self.tile[0]), ceil_div(self.workload.q, self.tile[1])

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        return self.config.layout

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return self.config.columns

    @property
    def column_tiles(self) -> int:
        """8-channel tiles of the block."""
        return self.config.blk_col_warps * self.config.warp_col_tiles

    @property
    def column_blocks(self) -> int:
        """Blocks along the (padded) output channels."""
        return self.filters // 8 // self.column_tiles

    @property
    def vector(self) -> int:
        """Column tiles whose weight words a lane loads at once."""
        return min(max(self.config.warp_col_tiles // self.tiles_together, 1), 4)

    @property
    def pairs(self) -> int:
        """Matrix instructions along the warp's pixels: instruction m takes pixels m and, if it has two, m + pairs.

        Partners are half a tile apart, because then neighbouring taps see the same partners again and the compiler
        keeps both words of a genuine fragment where the instruction needs them.
        """
        return ceil_div(self.config.warp_row_tiles, self.atom.pixels)

    def partner(self, pair: Index, half: int) -> Index:
        """The warp's pixel in half ``half`` of instruction ``pair`` (an odd last pixel is its own partner)."""
        if half == 0:
            return pair
        if self.config.warp_row_tiles % 2:
            last = self.config.warp_row_tiles - 1
            return pair + self.pairs - (pair + self.pairs) // (last + 1)
        return pair + self.pairs

    def accumulator(self, pixel: Index, column: Index) -> Index:
        """First of the two accumulator registers of a warp's pixel and column tile."""
        pair, half = pixel % self.pairs, pixel // self.pairs
        return (pair * self.config.warp_col_tiles + column) * self.atom.accumulators + half * 2

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a lane."""
        return self.pairs * self.config.warp_col_tiles * self.atom.accumulators

    # ---- main loop ----------------------------------------------------------------------------------------------

    @property
    def rows_staged(self) -> int:
        """Kernel rows staged together."""
        return 1 if self.config.reorder_inner else self.workload.r

    @property
    def taps_staged(self) -> int:
        """Kernel positions staged together."""
        return self.rows_staged * self.workload.s

    @property
    def chunks(self) -> int:
        """Number of chunks along the input channels."""
        return self.workload.channel_blocks // self.config.chunk

    @property
    def iterations(self) -> int:
        """Number of stages loaded in sequence."""
        return self.chunks * (self.workload.r if self.config.reorder_inner else 1)

    @property
    def stages(self) -> int:
        """Number of stages in shared memory at a time."""
        return min(self.config.stages, self.iterations)

    def step(self, iteration: Index) -> tuple[Index, Index]:
        """Kernel row (0 when all rows are staged) and channel chunk of an iteration."""
        if self.config.reorder_inner:
            return iteration // self.chunks, iteration % self.chunks
        return 0, iteration

    # ---- duplicate-aware load -------------------------------------------------------------------------------------

    @property
    def lowered(self) -> bool:
        """Whether the staged tile holds every duplicate, as im2col creates them."""
        return self.config.duplicate_aware == "none"

    @cached_property
    def rows(self) -> Axis:
        """Vertical axis of the staged tile."""
        return Axis.of(self.tile[0], self.rows_staged, self.workload.stride, self.workload.dilation)

    @cached_property
    def cols(self) -> Axis:
        """Horizontal axis of the staged tile."""
        return Axis.of(self.tile[1], self.workload.s, self.workload.stride, self.workload.dilation)

    @property
    def slots(self) -> int:
        """Input pixels staged per channel block: all lowered entries, or only the genuine ones."""
        if self.lowered:
            return self.taps_staged * self.config.pixels
        return self.rows.count * self.cols.count

    def slot(self, row: Index, col: Index, r: Index, s: Index) -> Index:
        """Slot that output pixel (row, col) of the tile reads for tap (r, s), r counted within the staged rows."""
        if self.lowered:
            return (r * self.workload.s + s) * self.config.pixels + row * self.tile[1] + col
        return self.rows.position(row, r) * self.cols.count + self.cols.position(col, s)

    def slot_pixel(self, slot: Index) -> tuple[Index, Index]:
        """Input pixel of a slot, relative to the first staged kernel row and column of the tile's first pixel."""
        w = self.workload
        if self.lowered:
            tap, pixel = slot // self.config.pixels, slot % self.config.pixels
            row, col = pixel // self.tile[1], pixel % self.tile[1]
            return row * w.stride + tap // w.s * w.dilation, col * w.stride + tap % w.s * w.dilation
        return slot // self.cols.count * self.rows.unit, slot % self.cols.count * self.cols.unit

    @cached_property
    def warp_rows(self) -> Axis:
        """Vertical axis of one warp's genuine fragments, in slots of the block."""
        return self._within(self.warp_tile[0], self.rows_staged, self.rows)

    @cached_property
    def warp_cols(self) -> Axis:
        """Horizontal axis of one warp's genuine fragments, in slots of the block."""
        return self._within(self.warp_tile[1], self.workload.s, self.cols)

    @staticmethod
    def _within(pixels: int, taps: int, block: Axis) -> Axis:
        """The axis of part of the block's pixels, with positions in units of the block's positions."""
        return Axis.of(pixels, taps, block.pixel_step, block.tap_step)

    @property
    def fragments(self) -> int:
        """Genuine activation fragments of one warp and channel block."""
        return self.warp_rows.count * self.warp_cols.count

    def fragment(self, row: Index, col: Index, r: Index, s: Index) -> Index:
        """Genuine fragment that pixel (row, col) of the warp's rectangle multiplies for tap (r, s)."""
        return self.warp_rows.position(row, r) * self.warp_cols.count + self.warp_cols.position(col, s)

    def fragment_slot(self, fragment_row: Index, fragment_col: Index) -> Index:
        """Slot of a genuine fragment, relative to the slot of the warp's first fragment."""
        return fragment_row * self.warp_rows.unit * self.cols.count + fragment_col * self.warp_cols.unit

    @cached_property
    def fresh_rows(self) -> tuple[tuple[int, ...], ...]:
        """For each staged kernel row: the genuine fragment rows that no earlier kernel row has loaded."""
        seen: set[int] = set()
        fresh = []
        for r in range(self.rows_staged):
            wanted = {self.warp_rows.position(row, r) for row in range(self.warp_tile[0])}
            fresh.append(tuple(sorted(wanted - seen)))
            seen |= wanted
        return tuple(fresh)

    # ---- shared memory --------------------------------------------------------------------------------------------

    @property
    def stored_words(self) -> int:
        """Words in memory of 8 channels of one pixel of one image."""
        return 1 if self.stored == "s4" else 2

    @property
    def activation_words(self) -> int:
        """Words of one stage's activations, ordered [slot][channel block][32][stored words]."""
        return self.slots * self.config.chunk * BLOCK_WORDS * self.stored_words

    @property
    def weight_words(self) -> int:
        """Words of one stage's weights, ordered [channel block][tap][column group][32 lanes][vector]."""
        return self.config.chunk * self.taps_staged * (self.column_tiles // self.tiles_together) * BLOCK_WORDS

    @property
    def stage_words(self) -> int:
        """Words of one stage."""
        return self.activation_words + self.weight_words

    @property
    def output_row_words(self) -> int:
        """Words from one (pixel, image) row of the int32 tile to the next; 8 spare words spread the banks."""
        return self.config.columns + 8

    @property
    def parameter_words(self) -> int:
        """Words of the requantization parameters."""
        return self.parameter_rows * self.config.columns if self.output != SUMS else 0

    @property
    def parameter_base(self) -> int:
        """First word of the parameters: after the stages, and after anything that later reuses their space."""
        staged = self.stages * self.stage_words
        reduced = (self.config.split_channels - 1) * self.threads_per_split * self.accumulators
        unpacked = 0
        if self.output != SUMS and not self.config.register_packing:
            unpacked = self.config.pixels * BATCH_GROUP * self.output_row_words
        return max(staged, reduced, unpacked)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return 4 * (self.parameter_base + self.parameter_words)

    @property
    def threads_per_split(self) -> int:
        """Threads that together own one accumulator tile."""
        return self.config.threads // self.config.split_channels

    # ---- global memory --------------------------------------------------------------------------------------------

    @property
    def activation_copies(self) -> int:
        """16-byte copies of one stage's activations."""
        return self.activation_words // COPY_WORDS

    @property
    def weight_copies(self) -> int:
        """16-byte copies of one stage's weights."""
        return self.weight_words // COPY_WORDS

    def activation_copy(self, copy: Index) -> tuple[Index, Index, Index]:
        """Slot, channel block (within the chunk) and piece of a copy: an image, or half of one if bytes are stored."""
        pieces = BATCH_GROUP * self.stored_words
        return copy // (pieces * self.config.chunk), copy // pieces % self.config.chunk, copy % pieces

    def activation_word(self, group: Index, y: Index, x: Index, block: Index, piece: Index) -> Index:
        """Word index in the input of a piece (an image) of batch group ``group``, pixel (y, x), channel block."""
        w, parts = self.workload, self.stored_words
        image = piece if parts == 1 else piece // parts
        first = _word(self.config.layout, w.h, w.w, w.channel_blocks, group, y, x, block, image)
        return first if parts == 1 else first * parts + piece % parts * COPY_WORDS

    def output_word(self, group: Index, p: Index, q: Index, tile: Index, image: Index) -> Index:
        """Word index in the packed output of 8-channel tile ``tile`` at pixel (p, q) of an image."""
        w = self.workload
        if self.bytes_out:
            return _word(self.config.layout, w.p, w.q, w.filter_blocks, group, p, q, tile // 2, image) + tile % 2 * 2
        return _word(self.config.layout, w.p, w.q, w.filter_blocks, group, p, q, tile // 4, image) + tile % 4

    def added_word(self, group: Index, p: Index, q: Index, tile: Index, image: Index) -> Index:
        """First word of the 32 channels that contain a tile, in a tensor of the output's sizes with four-bit values."""
        w = self.workload
        if not self.bytes_out:
            return self.output_word(group, p, q, tile // 4 * 4, image)
        return _word(self.config.layout, w.p, w.q, ceil_div(self.filters, 32), group, p, q, tile // 4, image)

    def weight_copy(self, copy: Index) -> tuple[Index, Index, Index]:
        """Channel block (within the chunk), tap and word offset within the block's columns of a weight copy."""
        run = self.column_tiles // self.tiles_together * BLOCK_WORDS // COPY_WORDS
        block_tap = copy // run
        return block_tap // self.taps_staged, block_tap % self.taps_staged, copy % run * COPY_WORDS

    def weight_word(self, block: Index, tap: Index, column_block: Index) -> Index:
        """Word index in the prepared weights of a channel block, tap and block column's first tile."""
        taps = self.workload.r * self.workload.s
        tiles, together = self.filters // 8 // self.tiles_together, self.column_tiles // self.tiles_together
        return ((block * taps + tap) * tiles + column_block * together) * BLOCK_WORDS

    # ---- launch ---------------------------------------------------------------------------------------------------

    @property
    def parameter_form(self) -> str:
        """Layout of the requantization parameters."""
        form = f"fixed{self.atom.scale_log2}" if self.requant == "fixed" else "general"
        return form if self.added is None else form + ADDED

    @cached_property
    def added(self) -> Operand | None:
        """The type of a tensor of values that is added before rounding."""
        return Fusion.of(self.output).added

    @property
    def parameter_rows(self) -> int:
        """Parameters per output channel."""
        return 3 if self.added is None else 4

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w, layout = self.workload, self.config.layout
        images = w.batch_groups * BATCH_GROUP
        out = images * w.p * w.q * w.filter_blocks * COPY_WORDS
        words = images * w.h * w.w * w.channel_blocks * COPY_WORDS * self.stored_words
        form = layout if self.stored == "s4" else f"{layout}.{self.stored}"
        arguments = [Argument("A", "uint32", (words,), "in", form)]
        if self.output != SUMS:
            arguments.append(Argument("Out", "uint32", (out,), "out", layout))
            parameters = self.parameter_rows * self.filters
            arguments.append(Argument("Prm", "int32", (parameters,), "in", self.parameter_form))
            if self.added is not None:
                words = images * w.p * w.q * ceil_div(w.k, self.added.block) * COPY_WORDS
                arguments.append(Argument("Res", "uint32", (words,), "in", layout))
        else:
            arguments.append(Argument("Out", "int32", (out * self.word_values,), "out", layout))
        words = self.correction_base + (self.filters if self.zero_point else 0)
        arguments.append(Argument("Wt", "uint32", (words,), "in", self.weight_form))
        grid = (w.batch_groups * prod(self.pixel_tiles), self.column_blocks, 1)
        return Launch("conv_kernel", grid, (self.config.threads, 1, 1), self.shared_bytes, tuple(arguments))


def plan(workload: ConvWorkload, config: MmaConfig, arch: Arch | str = "sm_90a", **options: Any) -> Plan:
    """The plan for a workload; it exists even for configurations that :mod:`subbyte.space` rejects."""
    return Plan(workload, config, arch_named(arch) if isinstance(arch, str) else arch, **options)


def _word(
    layout: str, height: int, width: int, blocks: int, group: Index, y: Index, x: Index, block: Index, image: Index
) -> Index:
    """First of the four words of 32 channels of one pixel of one image in a packed layout."""
    if layout == "nhwcnc":
        return (((group * height + y) * width + x) * blocks + block) * BLOCK_WORDS + image * COPY_WORDS
    return (((group * BATCH_GROUP + image) * height + y) * width + x) * (blocks * COPY_WORDS) + block * COPY_WORDS

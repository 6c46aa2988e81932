"""The plan of a wgmma kernel: every size, index map and address, computed without TVM.

How the convolution becomes wgmma: M = 64 output channels (weights, unpacked from int4 in registers), N = ``tile_width``
pixels times 8 images (activations, int8 in shared memory), K = 32 input channels of one tap. An input pixel of 32
channels is stored in shared memory once, as 256 bytes; a tap only changes the start address of the descriptor.
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.atoms import Atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.shared.once import once
from subbyte.families.wgmma import halves
from subbyte.families.wgmma.geometry import Index
from subbyte.families.wgmma.listed import ListForm
from subbyte.families.wgmma.memory import PIXEL_BYTES, WgmmaMemory
from subbyte.families.wgmma.operands import output_blocks
from subbyte.numerics.fusion import ADDED
from subbyte.numerics.weight_blocks import allowed_blocks
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.precision import SUMS

EPILOGUE_CYCLES = 16
"""Cycles per accumulator during the multiplications of another warpgroup (measured on an H200)."""
READ_TOGETHER = 3
"""16-byte loads of a producer thread that are read back together if stages are in flight in shared memory."""
COPYING_REGISTERS = 40
"""Registers of a producer thread in that case."""


@dataclass(frozen=True)
class WgmmaPlan(WgmmaMemory):
    """Everything about one wgmma kernel that is known before its code is generated."""

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        return self.atom_of(self.row_pixels)

    @property
    def narrow_columns(self) -> int:
        """Columns of half a fragment row, and one more if N would not be a multiple of 16, or the row's width is odd:
        the column in its middle then belongs to both halves."""
        half = self.knobs.tile_width // 2
        return half + half % 2 if self.knobs.image_groups == 1 else ceil_div(self.knobs.tile_width, 2)

    @property
    def narrow_pixels(self) -> int:
        """Pixels of the instruction for half a fragment row: those of every group of images."""
        return self.narrow_columns * self.knobs.image_groups

    def cut(self, segment: Index) -> Index:
        """For half rows: which half a segment has, see :func:`subbyte.families.wgmma.halves.cut`."""
        return halves.cut(segment, self.output_size[0], self.knobs.segments)

    def atom_of(self, pixels: int) -> Atom:
        """The matrix instruction for this many pixels of 8 images."""
        n = 8 * pixels
        types = self.workload.precision
        if self.bytes_in:
            ptx = f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8"
            one = Atom(f"s8.wgmma.m64n{n}k32", ptx, n // 8, 1, False, 90, types.weights.bits == 4)
        elif self.knobs.sparse:
            ptx = f"wgmma.mma_async.sp.sync.aligned.m64n{n}k64.s32.s8.s8"
            one = Atom(f"s8.wgmma.sp.m64n{n}k64", ptx, n // 8, 2, True, 90)
        else:
            ptx = f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8"
            one = Atom(f"s8.wgmma.m64n{n}k32", ptx, n // 8, 1, True, 90)
        return one.with_activations(self.signed_codes, first=False)

    @property
    def descriptor_high(self) -> int:
        """Upper word of a B descriptor: distance in units of 16 bytes between the fragments of neighbouring pixels; the
        swizzle mode is 0, none."""
        blocks = self.kept_channels if self.knobs.sparse else 1
        return self.cols.pixel_step * blocks * PIXEL_BYTES // 16

    @property
    def descriptor_low(self) -> int:
        """Lower word of a B descriptor without the address: distance in units of 16 bytes between the halves of K or,
        if an instruction takes two blocks, between the quarters of K."""
        return (128 // 16) << 16

    @property
    def late_start(self) -> tuple[int, int, int]:
        """Kernel row, channel group and loop body after which a warpgroup is about an epilogue into its first
        tile iteration. Every iteration has this kernel row."""
        tap = next(tap for tap in range(self.tap_rows) if not self.tap_variants([tap])[1])
        per_body = self.body_fragments * self.operands * self.knobs.tile_rows * self.row_pixels * 4
        turns = ceil_div(EPILOGUE_CYCLES * self.knobs.tile_rows * self.row_pixels * 4, per_body)
        in_group = self.tile_fragments if self.knobs.listed else self.steps
        in_group //= self.unroll
        if self.keep_rows:
            return tap, 0, min(turns, in_group) - 1
        groups = min(self.groups, self.stages // self.group_stages)  # the others' stages wait in the pipeline
        last = min(turns, groups * in_group) - 1
        return tap, last // in_group, last % in_group

    # ---- registers ----------------------------------------------------------------------------------------------

    @property
    def sums_begun(self) -> bool:
        """Whether sums start from the parameter that is added to them."""
        return bool(self.knobs.early_parameters) and self.output != SUMS and self.by_line

    @property
    def first_copies(self) -> int:
        """Loads of a consumer's thread for the row that it loads; the producer loads the rest."""
        return self.copies // 2 if self.knobs.early_start == 2 else self.copies

    @once
    def accumulators(self) -> int:
        """Accumulator registers of a consumer thread."""
        return self.tile_sums * self.knobs.tiles_m

    @once
    def loads_ahead(self) -> int:
        """16-byte loads whose words a producer thread holds in registers."""
        if self.direct:
            return 0
        return min(self.copies, READ_TOGETHER) if self.knobs.copies_ahead else self.copies * self.knobs.load_ahead

    @property
    def lone_iteration(self) -> bool:
        """Whether every consumer has a single tile iteration, so that its text has no loop over them."""
        config = self.knobs
        alone = config.consumers_rows == config.m_iterations == 1
        return bool(config.operands_apart) and alone and config.tile_rows * config.segments >= self.output_size[0]

    @once
    def producer_overhead(self) -> int:
        """Registers of a producer thread besides the words in flight; more if each tap has its own edges, or
        stages have several rows."""
        return 48 if self.lowered else 40 if self.knobs.stage_per_iteration else 32

    @property
    def producer_least(self) -> int:
        """The fewest registers of a producer thread."""
        if self.knobs.copies_ahead:
            return COPYING_REGISTERS
        loaded = ceil_div(4 * self.loads_ahead, 8) * 8
        return max(self.producer_overhead + loaded, 56)

    @once
    def registers(self) -> tuple[int, int]:
        """Registers of a consumer and of a producer thread (PTX ISA, setmaxnreg: multiples of 8, 24 to 256).

        Together they may not exceed what the block was launched with, or setmaxnreg waits forever.
        """
        warpgroups = self.knobs.threads // 128
        granted = self.arch.registers_per_sm // 128 // warpgroups // 8 * 8
        if granted >= 240:
            return 255, 255
        producer = min(self.knobs.producer_registers or self.producer_least, granted)
        others = granted * warpgroups - producer * self.knobs.producers
        return min(others // self.knobs.consumers // 8 * 8, 240), producer

    # ---- launch -------------------------------------------------------------------------------------------------

    @once
    def grid(self) -> tuple[int, int]:
        """Blocks of the launch: channel tiles and within them cluster ranks (of neighbouring places, and within
        them of shares of the input channels); groups, segments and column tiles (last fastest)."""
        c = self.knobs
        if self.odd_places:
            return c.cluster_split_k * self.multicast_blocks, self.filter_blocks * self.places // self.multicast_blocks
        return self.filter_blocks * c.cluster_split_k * self.multicast_blocks, self.places // self.multicast_blocks

    @once
    def places(self) -> int:
        """Tiles of output pixels, each computed by a block."""
        return self.image_groups * self.knobs.segments * self.x_tiles

    @property
    def odd_places(self) -> bool:
        """Whether two blocks share weights, but one place has no neighbour: two tiles of output channels then form a
        cluster there, and each block copies weights for itself."""
        return self.multicast_blocks == 2 and self.places % 2 == 1

    @once
    def grid_blocks(self) -> int:
        """Total number of blocks of the launch."""
        return self.grid[0] * self.grid[1]

    @property
    def weight_form(self) -> str:
        """How :func:`subbyte.families.wgmma.weights.prepare_warpgroup_weights` must arrange the weights."""
        c, order = self.knobs, self.weight_order
        if c.listed:
            return self.list_form.text
        if c.sparse:
            return f"warpgroup24-{c.channel_groups}-{order}-{self.padded_tiles}"
        zero = f".z{self.zero_point}s{self.atom.scale_log2}k{self.workload.padded_filters}" if self.zero_point else ""
        return f"warpgroup{self.weight_kind}-{c.cluster_split_k}-{c.channel_groups}-{order}-{self.padded_tiles}{zero}"

    @property
    def weight_order(self) -> str:
        """The order of the axes of the weights (``ORDERS``)."""
        return "taps" if self.lowered else "rows" if self.knobs.keep_rows else "groups"

    @property
    def padded_tiles(self) -> int:
        """Tiles of 64 output channels, including those that pad the last block."""
        return self.filter_blocks * self.knobs.consumers_m * self.consumer_tiles

    @property
    def weight_words(self) -> int:
        """Words of all weights; with a zero point, its contribution to the sums of each channel follows them."""
        if self.knobs.listed:
            return self.list_form.words
        return self.padded_tiles * self.knobs.cluster_split_k * self.run * self.tap_rows * self.fragment_words

    @property
    def list_form(self) -> ListForm:
        """How block-sparse weights are listed."""
        w, pairs, tiles = self.workload, self.knobs.live_pairs, self.padded_tiles
        of_tile = w.r * w.s * self.channel_blocks
        live = allowed_blocks(self.filter_tiles * of_tile, w.precision.weights.live_percent or 0)
        bodies = min(tiles + live // (2 * pairs), tiles * max(1, ceil_div(of_tile, 2 * pairs)))
        row = self.rows.tap_step * self.buffer_bytes // 16
        column = self.cols.tap_step * self.column_step // 16
        return ListForm(pairs, tiles, bodies * pairs, row, self.block_step // 16, column)

    @property
    def tile_fragments(self) -> int:
        """Weight fragments by which a tile of output channels is multiplied in a tile iteration; with block-sparse
        weights those of as many live blocks as the type allows, distributed evenly."""
        w = self.workload
        if not self.knobs.listed:
            return w.r * w.s * self.steps * self.knobs.channel_groups
        of_tile = w.r * w.s * self.channel_blocks
        live = ceil_div(allowed_blocks(of_tile, w.precision.weights.live_percent or 0), 2 * self.knobs.live_pairs)
        return max(1, live) * self.knobs.live_pairs

    def fragment_word(self, tile: Index, rank: Index) -> Index:
        """First weight word of a tile of 64 output channels and a rank of the cluster."""
        return (tile * self.knobs.cluster_split_k + rank) * (self.run * self.tap_rows * self.fragment_words)

    @property
    def packed(self) -> bool:
        """Whether activations and outputs are in NHWCnc."""
        return self.knobs.layout == "nhwcnc"

    @property
    def block_words(self) -> int:
        """Words from one block of 32 channels of a pixel to the next: those of 8 images, or of one."""
        return 32 if self.packed else 4

    def image_words(self, pixels: int, blocks: int) -> int:
        """Words from one image of a group to the next, in a tensor of ``pixels`` with ``blocks`` of 32 channels."""
        return 4 if self.packed else pixels * blocks * 4

    def output_word(self, group: Index, row: Index, col: Index, block: Index, image: Index) -> Index:
        """First of the four words of a block of output channels of one pixel of one image."""
        return self._word(group, row, col, block, image, self.workload.filter_blocks)

    def added_word(self, group: Index, row: Index, col: Index, block: Index, image: Index) -> Index:
        """The same in a tensor of 4-bit values with the same shape, whatever the output type is."""
        return self._word(group, row, col, block, image, output_blocks(self.workload))

    def _word(self, group: Index, row: Index, col: Index, block: Index, image: Index, blocks: int) -> Index:
        (_, width), pixels = self.output_size, self.workload.p * self.workload.q
        place = ((row * width + col) * blocks + block) * self.block_words
        return group * (pixels * blocks * 32) + place + image * self.image_words(pixels, blocks)

    @property
    def parameter_form(self) -> str:
        """Layout of the requantization parameters."""
        if self.by_line:
            return f"float{self.atom.scale_log2}"
        form = f"fixed{self.atom.scale_log2}" if self.requant == "fixed" else "general"
        return form if self.added is None else form + ADDED

    @once
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w = self.workload
        images = w.batch_groups * BATCH_GROUP
        packed = images * w.p * w.q * w.filter_blocks * 4
        arguments = [Argument("A", "uint32", (images * w.h * w.w * w.channel_blocks * 4,), "in", self.knobs.layout)]
        if self.output != SUMS:
            arguments.append(Argument("Out", "uint32", (packed,), "out", self.knobs.layout))
            parameters = self.parameter_rows * w.padded_filters
            arguments.append(Argument("Prm", "int32", (parameters,), "in", self.parameter_form))
            if self.added is not None:
                words = images * w.p * w.q * ceil_div(w.k, self.added.block) * 4
                arguments.append(Argument("Res", "uint32", (words,), "in", self.knobs.layout))
        else:
            arguments.append(Argument("Out", "int32", (packed * self.word_values,), "out", self.knobs.layout))
        words = self.weight_words + (w.padded_filters if self.zero_point else 0)
        arguments.append(Argument("Wt", "uint32", (words,), "in", self.weight_form))
        return Launch(
            "conv_kernel", (*self.grid, 1), (self.knobs.threads, 1, 1), self.shared_bytes, tuple(arguments),
            self.knobs.cluster_split_k * self.multicast_blocks, bool(self.knobs.dependent_launch),
        )  # fmt: skip

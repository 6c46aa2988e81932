"""The plan of a warpgroup kernel: every size, index map and address, computed without TVM.

How the convolution becomes wgmma: M = 64 output channels (weights, unpacked from int4 in registers), N = ``tile_width``
pixels times 8 images (activations, int8 in shared memory), K = 32 input channels of one tap. An input pixel of 32
channels lies in shared memory once, as 256 bytes; a tap only changes the start address of the descriptor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from subbyte.schedule.atoms import Atom
from subbyte.schedule.launch import Argument, Launch
from subbyte.schedule.warpgroup_geometry import Index, WarpgroupGeometry
from subbyte.workload.conv import BATCH_GROUP, ceil_div

PIXEL_BYTES = 256
"""Shared memory of one staged pixel and 32-channel block: 8 images of 32 signed bytes."""
FRAGMENT_WORDS = 512
"""32-bit words of one weight fragment: 4 for each thread of a warpgroup."""
OPERAND_BYTES = 2048
"""Weights of one wgmma, unpacked: 64 output channels of 32 signed bytes."""
PACKING_ROWS, PACKING_PITCH = 32, 20
"""Rows of a warp's shared memory for packing (one for each image of four pixels) and words from one to the next: 16
values, and room that keeps both the writing and the reading lanes on different banks."""
GROUP_PIXELS = 8
"""Pixels that the epilogue moves through shared memory with one instruction."""
GROUP_BYTES = 64 * GROUP_PIXELS
"""Their bytes: a warp's 16 channels of 8 images."""


@dataclass(frozen=True)
class WarpgroupPlan(WarpgroupGeometry):
    """Everything about one kernel of the warpgroup family that can be known before generating it."""

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        n = 8 * self.config.tile_width
        return Atom(f"s8.wgmma.m64n{n}k32", f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8", n // 8, 1, True, 90)

    # ---- shared memory ------------------------------------------------------------------------------------------

    @property
    def columns_read(self) -> int:
        """Staged columns that the descriptors of one row reach."""
        return (self.width_covered - 1) * self.cols.pixel_step + (self.tap_cols - 1) * self.cols.tap_step + 1

    @property
    def columns_needed(self) -> int:
        """Of those, the columns that outputs inside the image need; beyond them any value does."""
        if self.x_tiles > 1:
            return self.columns_read
        return (self.output_size[1] - 1) * self.cols.pixel_step + (self.tap_cols - 1) * self.cols.tap_step + 1

    @property
    def left_zeros(self) -> int:
        """Staged columns left of the image."""
        return self.col_range[0]

    @property
    def columns_loaded(self) -> int:
        """Most columns of one part that come from memory."""
        first, last = self.col_range
        if self.x_tiles == 1:
            return min(last, self.columns_needed - 1) - first + 1
        return min(self.columns_read, last - first + 1)

    @property
    def shared_column(self) -> bool:
        """The zeros right of a row are those left of the next one."""
        return self.x_tiles == 1

    @property
    def right_zeros(self) -> int:
        """Columns at the right end of a row that some block must fill with zeros."""
        if self.x_tiles == 1:
            trailing = self.columns_needed - self.left_zeros - self.columns_loaded
            return max(0, trailing - self.left_zeros)
        last_tile = (self.x_tiles - 1) * self.width_covered * self.cols.pixel_step
        return max(0, self.columns_read - (self.col_range[1] - last_tile + 1))

    @property
    def pitch(self) -> int:
        """Columns from one 32-channel block of a part to the next."""
        if self.x_tiles == 1:
            return self.left_zeros + self.columns_loaded + self.right_zeros
        return self.columns_read

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot of the ring."""
        return (self.channels * self.pitch + (self.slack_columns if self.separate else 0)) * PIXEL_BYTES

    @property
    def slack_columns(self) -> int:
        """Columns behind a slot that a descriptor can reach."""
        return max(0, self.columns_read - self.pitch)

    @cached_property
    def separate(self) -> bool:
        """Every slot has room behind it for the columns that its last descriptors reach too far.

        Where shared memory has no room they lie in the next slot. What is read there goes into outputs outside the
        image, which are not stored.
        """
        ring = self.config.ring * (self.channels * self.pitch + self.slack_columns) * PIXEL_BYTES
        allowed = self.arch.shared_per_block
        if self.config.blocks > 1:
            allowed = min(allowed, self.arch.shared_per_sm // self.config.blocks - 1024)
        return ring + self._behind_ring <= allowed

    @property
    def _behind_ring(self) -> int:
        """Bytes of shared memory behind the ring."""
        config = self.config
        exchanged = config.split * self.exchange_pixels * config.consumers * 128 * 16 if config.split > 1 else 0
        return 12 * self.parameter_channels + self.weight_bytes + self.packing_bytes + exchanged + self.barrier_bytes

    @property
    def parameter_base(self) -> int:
        """Byte where the requantization parameters of the block's output channels begin."""
        return self.config.ring * self.slot_bytes + (0 if self.separate else self.slack_columns * PIXEL_BYTES)

    @property
    def parameter_channels(self) -> int:
        """Output channels whose parameters a block keeps."""
        return self.filters * self.config.filter_passes if self.output == "int4" else 0

    @property
    def parameter_turns(self) -> int:
        """Words of the parameters that one producer thread brings."""
        return ceil_div(3 * self.parameter_channels, 128)

    @property
    def weight_base(self) -> int:
        """Byte where the consumers' rings of weight fragments begin, or all weights of the block, unpacked."""
        return self.parameter_base + 12 * self.parameter_channels

    @property
    def weight_bytes(self) -> int:
        """Shared memory of weights."""
        if self.config.at_once:
            return self.config.groups_m * self.fragments * self.halves * OPERAND_BYTES
        return self.config.weight_ring * self.config.consumers * 4 * FRAGMENT_WORDS

    @property
    def fragments(self) -> int:
        """Weight fragments of a tile of 64 output channels and a rank of the cluster."""
        return self.run * self.workload.r

    @cached_property
    def stages(self) -> tuple[tuple[range, range], ...]:
        """Where everything is loaded at once: for each kernel row the parts and the weight fragments it needs beyond
        those of the rows before it."""
        found, begin = [], 0
        for tap in range(self.workload.r):
            end = (self.config.tile_rows - 1) * self.rows.pixel_step + tap * self.rows.tap_step + 1
            found.append((range(begin, end), range(tap * self.run, (tap + 1) * self.run)))
            begin = end
        return tuple(found)

    @property
    def loads_at_once(self) -> int:
        """Most 16-byte loads that a thread has on its way where everything is loaded at once."""
        config = self.config
        counts = [0] * (config.consumers + config.at_once)
        for stage, (parts, fragments) in enumerate(self.stages):
            loads = [self.copies for _ in parts] + [1] * (len(fragments) * config.groups_m)
            if stage:
                counts[config.consumers + (stage - 1) % config.at_once] += sum(loads)
            else:
                for consumer in range(config.consumers):
                    counts[consumer] += sum(loads[consumer :: config.consumers])
        return max(counts)

    @property
    def packing_bytes(self) -> int:
        """Shared memory through which the consumers' warps turn packed outputs from channels to images, or without
        register-level packing int32 values."""
        config = self.config
        if self.output != "int4":
            return 0
        if not config.register_packing:
            return config.consumers * 4 * PACKING_ROWS * PACKING_PITCH * 4
        width, rows = (config.tile_width, config.tile_rows) if config.split == 1 else (self.exchange_pixels, 1)
        return config.consumers * 4 * rows * ceil_div(width, GROUP_PIXELS) * GROUP_BYTES

    @property
    def packing_base(self) -> int:
        """Byte where it begins."""
        return self.weight_base + self.weight_bytes

    @property
    def exchange_base(self) -> int:
        """Byte where the partial sums of the cluster's other blocks arrive."""
        return self.packing_base + self.packing_bytes

    @property
    def exchange_pixels(self) -> int:
        """Pixels of a pass (of each warpgroup) that one block of the cluster finishes."""
        return self.config.tile_rows * self.config.tile_width // self.config.split

    @property
    def barrier_base(self) -> int:
        """Byte where the barriers begin: one "full" for each slot of the ring, one "empty" each, one for parameters,
        and in a cluster one for the partial sums of each consumer."""
        exchanged = 0
        if self.config.split > 1:
            exchanged = self.config.split * self.exchange_pixels * self.config.consumers * 128 * 16
        return self.exchange_base + exchanged

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.barrier_base + self.barrier_bytes

    @property
    def barrier_bytes(self) -> int:
        """Bytes of the barriers."""
        exchanged = 8 * self.config.consumers if self.config.split > 1 else 0
        return ceil_div(16 * self.config.ring + 8 + exchanged, 16) * 16

    @property
    def exchanged_bytes(self) -> int:
        """Partial sums that a consumer warpgroup receives from the cluster's other blocks, in bytes."""
        return (self.config.split - 1) * self.exchange_pixels * 128 * 16

    @property
    def copies(self) -> int:
        """16-byte loads of one producer thread for one part."""
        return ceil_div(self.columns_loaded * self.channels, 16)

    def copy_place(self, turn: int, unit: Index) -> tuple[Index, Index]:
        """Channel block and loaded column of a producer thread's load: ``unit`` is the thread's group of 8 lanes
        (0 to 15); groups go along the channel blocks first, as memory does."""
        if 16 % self.channels == 0:
            return unit % self.channels, unit // self.channels + turn * (16 // self.channels)
        if self.channels % 16 == 0:
            return unit + turn % (self.channels // 16) * 16, turn // (self.channels // 16)
        return (unit + turn * 16) % self.channels, (unit + turn * 16) // self.channels

    @property
    def descriptor_high(self) -> int:
        """Upper word of a B descriptor: bytes/16 from one pixel's fragment to the next, and the swizzle mode."""
        return self.cols.pixel_step * PIXEL_BYTES // 16 | (3 << 30 if self.config.swizzle else 0)

    @property
    def descriptor_low(self) -> int:
        """Lower word of a B descriptor without the address: bytes/16 from one half of K to the other."""
        return (1 if self.config.swizzle else 128 // 16) << 16

    # ---- registers ----------------------------------------------------------------------------------------------

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a consumer thread."""
        return self.config.tile_rows * self.config.tile_width * 4

    @property
    def producer_overhead(self) -> int:
        """Registers of a producer thread beside the words on their way; more where each tap has its own edges."""
        return 48 if self.lowered else 32

    @property
    def registers(self) -> tuple[int, int]:
        """Registers of a consumer and of a producer thread (PTX ISA, setmaxnreg: multiples of 8, 24 to 256).

        Together they may not exceed what the block was launched with, or setmaxnreg waits forever.
        """
        parts = self.config.threads // 128
        granted = self.arch.registers_per_sm // self.config.blocks // 128 // parts // 8 * 8
        if granted >= 240:
            return 255, 255
        if self.config.at_once:
            return granted, granted
        loaded = ceil_div(4 * self.copies * self.config.load_ahead, 8) * 8
        producer = min(max(self.producer_overhead + loaded, 56), granted)
        return min((granted * parts - producer) // self.config.consumers // 8 * 8, 240), producer

    # ---- launch -------------------------------------------------------------------------------------------------

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks of the launch: channel tiles and within them cluster ranks; groups, segments and column tiles (last
        fastest)."""
        c = self.config
        return self.filter_blocks * c.split, self.workload.batch_groups * c.segments * self.x_tiles

    @property
    def grid_blocks(self) -> int:
        """All blocks of the launch."""
        return self.grid[0] * self.grid[1]

    @property
    def weight_form(self) -> str:
        """How :func:`subbyte.data.prepare_warpgroup_weights` must arrange the weights."""
        c = self.config
        order = "taps" if self.lowered else "rows" if c.keep_rows else "groups"
        return f"warpgroup-{c.split}-{c.channel_groups}-{order}-{self.padded_tiles}"

    @property
    def padded_tiles(self) -> int:
        """Tiles of 64 output channels with those that only fill up the last block."""
        return self.filter_blocks * self.config.groups_m * self.config.filter_passes

    def fragment_word(self, tile: Index, rank: Index) -> Index:
        """First weight word of a tile of 64 output channels and a rank of the cluster."""
        return (tile * self.config.split + rank) * (self.run * self.tap_rows * FRAGMENT_WORDS)

    @property
    def packed(self) -> bool:
        """Activations and outputs are in NHWCnc."""
        return self.config.layout == "nhwcnc"

    @property
    def block_words(self) -> int:
        """Words from one block of 32 channels of a pixel to the next: those of 8 images, or of one."""
        return 32 if self.packed else 4

    def image_words(self, pixels: int, blocks: int) -> int:
        """Words from one image of a group to the next, in a tensor of ``pixels`` with ``blocks`` of 32 channels."""
        return 4 if self.packed else pixels * blocks * 4

    def output_word(self, group: Index, row: Index, col: Index, block: Index, image: Index) -> Index:
        """First of the four words of 32 output channels of one image's pixel."""
        (_, width), blocks = self.output_size, self.workload.filter_blocks
        pixels = self.workload.p * self.workload.q
        place = ((row * width + col) * blocks + block) * self.block_words
        return group * (pixels * blocks * 32) + place + image * self.image_words(pixels, blocks)

    @property
    def parameter_form(self) -> str:
        """Form of the requantization parameters."""
        return f"float{self.atom.scale_log2}" if self.requant == "fixed" else "general"

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w = self.workload
        images = w.batch_groups * BATCH_GROUP
        packed = images * w.p * w.q * w.filter_blocks * 4
        arguments = [Argument("A", "uint32", (images * w.h * w.w * w.channel_blocks * 4,), "in", self.config.layout)]
        if self.output == "int4":
            arguments.append(Argument("Out", "uint32", (packed,), "out", self.config.layout))
            arguments.append(Argument("Prm", "int32", (3 * w.filter_blocks * 32,), "in", self.parameter_form))
        else:
            arguments.append(Argument("Out", "int32", (packed * 8,), "out", self.config.layout))
        weights = self.padded_tiles * self.config.split * self.run * self.tap_rows * FRAGMENT_WORDS
        arguments.append(Argument("Wt", "uint32", (weights,), "in", self.weight_form))
        return Launch(
            "conv_kernel", (*self.grid, 1), (self.config.threads, 1, 1), self.shared_bytes, tuple(arguments),
            self.config.split, bool(self.config.overlap),
        )  # fmt: skip

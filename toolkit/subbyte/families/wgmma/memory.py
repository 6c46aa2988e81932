"""The layout and size of a wgmma kernel's shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.families.shared.once import once
from subbyte.families.wgmma.channels import WgmmaChannels
from subbyte.families.wgmma.geometry import Index
from subbyte.families.wgmma.listed import LISTED_WORDS
from subbyte.workload.conv import ceil_div
from subbyte.workload.precision import SUMS

PIXEL_BYTES = 256
"""Bytes of shared memory per staged pixel and 32-channel block: 8 images of 32 signed bytes."""
FRAGMENT_WORDS = 512
"""32-bit words of one weight fragment: 4 for each thread of a warpgroup."""
FRAGMENT_BYTES = 4 * FRAGMENT_WORDS
SPARSE_WORDS = 384
"""The same for 2:4 weights: 2 words of values per thread, followed by 1 word of metadata per thread."""
SPARSE_VALUES = 256
"""The number of these that hold values."""
PACKING_ROWS, PACKING_PITCH = 32, 20
"""Rows of a warp's shared memory for packing (one for each image of four pixels) and words from one to the next: 16
values, plus padding that keeps both the writing and the reading lanes on different banks."""
COPY_BYTES = 2048
"""Bytes of one load by all threads of a producer: 16 each."""
GROUP_PIXELS = 8
"""Pixels of 4-bit values that the epilogue moves through shared memory with one instruction."""
GROUP_BYTES = 64 * GROUP_PIXELS
"""Bytes of these pixels: a warp's 16 channels of 8 images."""


@dataclass(frozen=True)
class WgmmaMemory(WgmmaChannels):
    """The part of a :class:`~subbyte.families.wgmma.plan.WgmmaPlan` about shared memory."""

    @once
    def column_bytes(self) -> int:
        """Bytes of one staged column and 32-channel block: a pixel of every group of images."""
        return self.knobs.image_groups * PIXEL_BYTES

    @once
    def column_step(self) -> int:
        """Bytes from one staged column to the next: those of one block of channels or, for 2:4 weights, whose
        instructions take two, of all blocks of the stage."""
        return self.column_bytes * (self.kept_channels if self.knobs.sparse else 1)

    @property
    def block_step(self) -> int:
        """Bytes from one block of 32 channels of a stage to the next."""
        return PIXEL_BYTES if self.knobs.sparse else self.pitch * self.column_bytes

    @property
    def row_planes(self) -> int:
        """Parts of a staged row that follow one another, each with all columns."""
        return 1 if self.knobs.sparse else self.channels

    @property
    def fragment_words(self) -> int:
        """32-bit words of one weight fragment."""
        return SPARSE_WORDS if self.knobs.sparse else LISTED_WORDS if self.knobs.listed else FRAGMENT_WORDS

    @property
    def fragment_registers(self) -> int:
        """Registers of a thread for a fragment before it is unpacked; for a listed one including the places of its
        blocks."""
        return 3 if self.knobs.sparse else 6 if self.knobs.listed else 4

    @property
    def held_words(self) -> int:
        """Registers of a thread for weights before they are unpacked."""
        return self.fragment_registers * self.held_fragments

    @property
    def thread_words(self) -> int:
        """Words of values of a fragment that a thread loads at once."""
        return 2 if self.knobs.sparse else 4

    @once
    def columns_read(self) -> int:
        """Staged columns that the descriptors of one row reach."""
        return (self.width_covered - 1) * self.cols.pixel_step + (self.tap_cols - 1) * self.cols.tap_step + 1

    @property
    def columns_needed(self) -> int:
        """Of those, the columns that outputs inside the image need; the others may hold any value."""
        if self.x_tiles > 1:
            return self.columns_read
        return (self.output_size[1] - 1) * self.cols.pixel_step + (self.tap_cols - 1) * self.cols.tap_step + 1

    @property
    def left_zeros(self) -> int:
        """Staged columns left of the image."""
        return self.col_range[0]

    @once
    def columns_loaded(self) -> int:
        """The most columns of a stage that come from memory."""
        first, last = self.col_range
        if self.x_tiles == 1:
            return min(last, self.columns_needed - 1) - first + 1
        return min(self.columns_read, last - first + 1)

    @property
    def least_columns(self) -> int:
        """The fewest columns of a stage that come from memory."""
        if self.x_tiles == 1:
            return self.columns_loaded
        step, last = self.width_covered * self.cols.pixel_step, self.col_range[1]
        tiles = range(self.x_tiles)
        return min(min(self.columns_read, last + 1 - i * step) - (0 if i else self.left_zeros) for i in tiles)

    @property
    def right_zeros(self) -> int:
        """Columns at the right end of a row that some block must fill with zeros."""
        if self.x_tiles == 1:
            trailing = self.columns_needed - self.left_zeros - self.columns_loaded
            return max(0, trailing - self.left_zeros)
        last_tile = (self.x_tiles - 1) * self.width_covered * self.cols.pixel_step
        beyond = self.columns_read - (self.col_range[1] - last_tile + 1)
        return max(0, min(beyond, self.columns_read - self.left_zeros))

    @once
    def pitch(self) -> int:
        """Columns from one 32-channel block of a stage to the next."""
        if self.x_tiles == 1:
            return self.left_zeros + self.columns_loaded + self.right_zeros
        return self.columns_read

    @once
    def buffer_bytes(self) -> int:
        """Bytes of one stage buffer."""
        return self.stage_rows * self.row_bytes + (self.slack_columns if self.separate else 0) * self.column_step

    @once
    def row_bytes(self) -> int:
        """Bytes from one row of a stage to the next."""
        return self.kept_channels * self.pitch * self.column_bytes

    @once
    def stage_rows(self) -> int:
        """Rows that a stage buffer has room for."""
        return max(self._rows_of_stages) if self.knobs.stage_per_iteration else 1

    @property
    def least_stage_rows(self) -> int:
        """The fewest rows in any stage."""
        return min(self._rows_of_stages) if self.knobs.stage_per_iteration else 1

    @once
    def _rows_of_stages(self) -> tuple[int, ...]:
        """Image rows of a stage with ``stage_per_iteration``, for every tile iteration of all segments."""
        step, taps = self.rows.pixel_step, (self.tap_rows - 1) * self.rows.tap_step
        first, last = self.row_range
        found = []
        for segment in range(self.knobs.segments):
            begin, end = self.segment_start(segment), self.segment_end(segment)
            for row in range(begin, end, self.rows_together):
                behind = min(row + self.rows_together, end)
                found.append(min((behind - 1) * step + taps, last) - max(row * step, first) + 1)
        return tuple(found)

    @once
    def slack_columns(self) -> int:
        """Columns after a stage buffer that a descriptor can reach."""
        return max(0, self.columns_read - self.pitch)

    @once
    def separate(self) -> bool:
        """Whether every stage buffer has room after it for the columns that its last descriptors reach beyond it.

        If shared memory has no room, these columns are in the next stage buffer. Data read there only affects outputs
        outside the image, which are not stored.
        """
        pipeline = self.stages * (self.stage_rows * self.row_bytes + self.slack_columns * self.column_step)
        return pipeline + self._behind_pipeline <= self.arch.shared_per_block

    @property
    def _behind_pipeline(self) -> int:
        """Bytes of shared memory after the pipeline."""
        behind = 4 * (3 + bool(self.zero_point)) * self.parameter_channels + self.weight_bytes + self.packing_bytes
        return behind + self.zero_bytes + self.exchange_bytes + self.barrier_bytes + self.copied_bytes

    @once
    def parameter_base(self) -> int:
        """Byte where the requantization parameters of the block's output channels begin."""
        return self.stages * self.buffer_bytes + (0 if self.separate else self.slack_columns * self.column_step)

    @property
    def parameter_channels(self) -> int:
        """Output channels whose parameters a block keeps."""
        return self.filters * self.knobs.m_iterations if self.kept_rows else 0

    @property
    def kept_rows(self) -> int:
        """Words that a block keeps per output channel: its parameters, and the zero point's contribution to its
        sums."""
        return (self.parameter_rows if self.output != SUMS else 0) + bool(self.zero_point)

    @property
    def parameter_loads(self) -> int:
        """Words of parameters that one producer thread loads."""
        return ceil_div(self.kept_rows * self.parameter_channels, 128)

    @once
    def weight_base(self) -> int:
        """Byte where the weights of the block begin."""
        return self.parameter_base + 4 * self.kept_rows * self.parameter_channels

    @property
    def weight_bytes(self) -> int:
        """Bytes of shared memory for weights: all weights of a block that gets them by bulk copies, else none."""
        return self.knobs.consumers_m * self.fragments * FRAGMENT_BYTES if self.knobs.multicast else 0

    @property
    def fragments(self) -> int:
        """Weight fragments of a tile of 64 output channels and a rank of the cluster."""
        return self.run * self.workload.r

    @once
    def packing_bytes(self) -> int:
        """Bytes of shared memory through which the consumers' warps transpose packed outputs from channels to images,
        or without register-level packing int32 values."""
        config = self.knobs
        if self.output == SUMS:
            return 0
        if not config.register_packing:
            return config.consumers * 4 * PACKING_ROWS * PACKING_PITCH * 4
        width, rows = (self.row_pixels, config.tile_rows) if config.cluster_split_k == 1 else (self.exchange_pixels, 1)
        return config.consumers * 4 * rows * ceil_div(width, self.group_pixels) * GROUP_BYTES

    @property
    def group_pixels(self) -> int:
        """Pixels that the epilogue moves through shared memory with one instruction."""
        return GROUP_PIXELS // self.output_parts

    @property
    def packing_base(self) -> int:
        """Byte where this area begins."""
        return self.weight_base + self.weight_bytes

    @once
    def exchange_base(self) -> int:
        """Byte where the partial sums of the cluster's other blocks arrive."""
        return self.packing_base + self.packing_bytes

    @property
    def exchange_pixels(self) -> int:
        """Pixels of a tile iteration (of each warpgroup) that one block of the cluster finishes."""
        return self.knobs.tile_rows * self.row_pixels // self.knobs.cluster_split_k

    @once
    def exchange_bytes(self) -> int:
        """Bytes of shared memory for them."""
        if self.knobs.cluster_split_k == 1:
            return 0
        return self.knobs.cluster_split_k * self.exchange_pixels * self.knobs.consumers * 128 * 16

    @property
    def barrier_base(self) -> int:
        """Byte where the barriers begin: one "full" and one "empty" for each stage buffer, one for parameters,
        in a cluster one for the partial sums of each consumer, and one for each chunk of bulk-copied weights."""
        return self.exchange_base + self.exchange_bytes

    @once
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.copied_base + self.copied_bytes

    @property
    def copied_base(self) -> int:
        """Byte where the stages that are copied ahead, packed, begin."""
        return self.zero_base + self.zero_bytes

    @once
    def copied_bytes(self) -> int:
        """Bytes of shared memory for stages that are copied ahead: a place for each load of a producer thread."""
        return 0 if self.direct else self.knobs.copies_ahead * self.copies * COPY_BYTES

    @property
    def direct(self) -> bool:
        """Whether stages are copied straight into their buffers: those of bytes, which are not unpacked."""
        return self.bytes_in and self.knobs.copies_ahead > 0

    @property
    def zero_base(self) -> int:
        """Byte where a pixel of zeros begins."""
        return self.barrier_base + self.barrier_bytes

    @property
    def zero_bytes(self) -> int:
        """Bytes of a pixel of zeros that replaces all pixels of rows outside the image, which a list's blocks may
        read."""
        return PIXEL_BYTES if self.knobs.listed and self.meets_edges else 0

    @once
    def barrier_bytes(self) -> int:
        """Bytes of the barriers."""
        exchanged = 8 * self.knobs.consumers if self.knobs.cluster_split_k > 1 else 0
        counted = 16 * self.stages + 8 + exchanged + 8 * self.weight_chunks
        return ceil_div(counted, 16) * 16

    @property
    def exchanged_bytes(self) -> int:
        """Partial sums that a consumer warpgroup receives from the cluster's other blocks, in bytes."""
        return (self.knobs.cluster_split_k - 1) * self.exchange_pixels * 128 * 16

    @once
    def copies(self) -> int:
        """16-byte loads of one producer thread for one stage."""
        return self.stage_rows * self.row_copies

    @property
    def row_copies(self) -> int:
        """16-byte loads of one producer thread for one row of a stage."""
        return ceil_div(self.columns_loaded * self.knobs.image_groups * self.loaded_blocks, 16)

    def copy_place(self, load: int, unit: Index) -> tuple[Index, Index]:
        """Block of memory and loaded column for load number ``load`` of a producer thread: ``unit`` is the thread's
        group of 8 lanes (0 to 15); groups cover the channel blocks first, in memory order."""
        blocks = self.loaded_blocks
        if 16 % blocks == 0:
            return unit % blocks, unit // blocks + load * (16 // blocks)
        if blocks % 16 == 0:
            return unit + load % (blocks // 16) * 16, load // (blocks // 16)
        return (unit + load * 16) % blocks, (unit + load * 16) // blocks

    @property
    def evenly_apart(self) -> bool:
        """Whether a thread's loads of a stage are at constant distances, and so are its stores."""
        together = 16 // self.loaded_blocks
        if self.knobs.flatten or self.knobs.flat_batch or self.lowered or self.odd_part:
            return False
        if self.loaded_blocks % 16 == 0:
            return True
        return 16 % self.loaded_blocks == 0 and together % self.knobs.image_groups == 0

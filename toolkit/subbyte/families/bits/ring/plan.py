"""The plan of a kernel with a ring of stages: the contents and places of stages, and which block computes what.

All pixels of a layer of single pixels (a matrix product) form one row. A block multiplies 8 pixels for each of its
warpgroups by its output channels. The depth is divided into stages: ``depth`` blocks of 128 channels of every pixel,
contiguous in memory, and the matching weights. Blocks are persistent, and take the next tile when they have finished
one. Blocks of a cluster are neighbours: those with the same output channels each copy a share of the weights and
multicast it to all of them; those with the same pixels do the same with the activations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from subbyte.device.launch import Launch
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.bits.tiles import CORE_BYTES, PIECE_BYTES, TILE_PIXELS
from subbyte.families.shared.flat_view import flat_view
from subbyte.workload.conv import ConvWorkload, ceil_div

MULTIPROCESSORS = 132
"""Multiprocessors of an H200, each with room for one block, also in clusters of two."""
CLUSTER_MULTIPROCESSORS = 120
"""Multiprocessors on which clusters of four or eight fit, according to an H200 (cuOccupancyMaxActiveClusters)."""
BAND = 8
"""Neighbouring pixel tiles that blocks take before they move on to the next output channels, so that their data stays
in the L2 cache."""
COPIER_REGISTERS, MOST_REGISTERS = 24, 240
"""Registers per thread: least and most for which ``setmaxnreg`` is used here (PTX ISA: 24 to 256, multiples of 8)."""
FRAGMENT_WORDS = 4
"""Registers per thread for the activations of an instruction."""


@dataclass(frozen=True)
class RingPlan(BitsPlan):
    """Everything about one kernel with a ring that is known before its code is generated."""

    config: RingConfig

    # ---- tiles ----------------------------------------------------------------------------------------------------

    @cached_property
    def view(self) -> ConvWorkload:
        """The layer with all pixels of all images in one row."""
        flat = flat_view(self.workload)
        return replace(flat, h=1, w=flat.h * flat.w)

    @property
    def flattened(self) -> bool:
        """Whether pixels are arranged in another row than the layer's."""
        return self.view != self.workload

    @cached_property
    def border_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Always none: nothing lies outside the image."""
        return (0,), (0,)

    @property
    def block_pixels(self) -> int:
        """Pixels per block, of 8 images each."""
        return self.config.consumers * TILE_PIXELS

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per block."""
        return 1, self.block_pixels

    @property
    def cluster(self) -> int:
        """Blocks per cluster."""
        return self.config.share_weights * self.config.share_pixels

    @property
    def pixel_tiles(self) -> int:
        """Cluster tiles along the pixels."""
        return ceil_div(self.view.w, self.block_pixels * self.config.share_weights)

    @property
    def channel_tiles(self) -> int:
        """Cluster tiles along the output channels."""
        return ceil_div(self.slices, self.config.share_pixels)

    @property
    def clusters(self) -> int:
        """Clusters of the launch: all of them run at the same time."""
        room = (MULTIPROCESSORS if self.cluster <= 2 else CLUSTER_MULTIPROCESSORS) // self.cluster
        return min(room, self.pixel_tiles * self.channel_tiles)

    @property
    def turns(self) -> int:
        """Tiles that a cluster computes, one after the other."""
        return ceil_div(self.pixel_tiles * self.channel_tiles, self.clusters)

    @property
    def pixels_per_row(self) -> int:
        """Pixels of all tiles, including those beyond the last one."""
        return self.pixel_tiles * self.config.share_weights * self.block_pixels

    @property
    def ones(self) -> int:
        """Columns of ones: none, the activation bits are counted in registers."""
        return 0

    # ---- stages ---------------------------------------------------------------------------------------------------

    @property
    def tile_stages(self) -> int:
        """Stages per tile."""
        return ceil_div(self.channel_blocks, self.config.depth)

    def stage_pieces(self, last: bool) -> int:
        """Blocks of 128 channels per stage; the last stage of a tile may have fewer."""
        return self.channel_blocks - (self.tile_stages - 1) * self.config.depth if last else self.config.depth

    def stage_steps(self, last: bool) -> int:
        """Instructions per stage and plane of activations."""
        return ceil_div(self.stage_pieces(last), 2)

    def pixel_stage_bytes(self, last: bool) -> int:
        """Bytes of a pixel in a stage."""
        return self.stage_pieces(last) * self.planes * CORE_BYTES

    def weight_stage_bytes(self, last: bool) -> int:
        """Bytes of the weights of a stage."""
        return self.stage_steps(last) * 2 * self.n * PIECE_BYTES

    @property
    def fragments(self) -> int:
        """Registers per thread for the activations of a stage."""
        return self.stage_steps(False) * self.planes * FRAGMENT_WORDS

    # ---- shared memory --------------------------------------------------------------------------------------------

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: activations, then weights."""
        return self.block_pixels * self.pixel_stage_bytes(False) + self.weight_stage_bytes(False)

    @property
    def weight_base(self) -> int:
        """Byte of a stage where its weights begin."""
        return self.block_pixels * self.pixel_stage_bytes(False)

    @property
    def tables(self) -> int:
        """Buffers for thresholds: for the tiles whose stages may be in the ring, and for the one before,
        whose sums may still be compared."""
        return 1 + ceil_div(self.config.stages, self.tile_stages)

    @property
    def table_base(self) -> int:
        """Byte where the tables begin."""
        return self.config.stages * self.stage_bytes

    @property
    def barrier_base(self) -> int:
        """Byte where the barriers begin: one per stage that it is full, then one per stage that it is empty."""
        return self.table_base + self.tables * 4 * self.table_words

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return ceil_div(self.barrier_base + 16 * self.config.stages, 16) * 16

    # ---- registers ------------------------------------------------------------------------------------------------

    @property
    def threads(self) -> int:
        """Threads per block: the consumers, and a copying warpgroup."""
        return 128 * (self.config.consumers + 1)

    @property
    def moves_registers(self) -> bool:
        """Whether the copying warpgroup gives registers to the others; a single consumer already has as many as it can
        use."""
        return self.config.consumers > 1

    @property
    def granted(self) -> int:
        """Registers per consumer thread, including those that the copying warpgroup gives away."""
        if not self.moves_registers:
            return MOST_REGISTERS
        launched = self.arch.registers_per_sm // self.threads // 8 * 8
        left = launched * self.threads - 128 * COPIER_REGISTERS
        return min(left // (128 * self.config.consumers) // 8 * 8, MOST_REGISTERS)

    @property
    def kept(self) -> int:
        """Table entries that stay in registers: none, since tiles differ in their output channels."""
        return 0

    # ---- launch ---------------------------------------------------------------------------------------------------

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        plain = super().launch
        return replace(plain, grid=(self.clusters * self.cluster, 1, 1), cluster=self.cluster)

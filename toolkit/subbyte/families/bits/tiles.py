"""Tiles of output pixels in a kernel on one-bit products, and the input rows that they read.

M = 64: 8 pixels of an output row times 8 images, directly from the input rows as stored in memory: the 8
images' 128 bits of a pixel's channels are a core matrix of wgmma. N: output channels times planes of the weights, then
columns of ones that count the activation bits. K = 256: two pieces of 128 channels, at any distance from each other,
of one tap or of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.pixel_blocks import blocked
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.shared.bit_sizes import BitSizes
from subbyte.families.shared.flat_view import flat_view
from subbyte.numerics.bit_products import NOTHING as NOTHING_BEYOND
from subbyte.numerics.bit_products import BitCode, BitProducts, bit_products
from subbyte.numerics.fusion import NOTHING, Fusion
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS
from subbyte.workload.precision import SUMS

PIECE_BYTES = 16
"""Bytes of 128 bits of one image: a row of a core matrix."""
CORE_BYTES = BATCH_GROUP * PIECE_BYTES
TILE_PIXELS = 8
"""Pixels per instruction: M = 64."""
PAIR_CHANNELS = BLOCK_BITS // 2
"""Channels of a pixel if two rows share a block."""
LINE_BITS = 4
"""Bits of the codes that one multiplication gives."""


@dataclass(frozen=True)
class BitsTiles(BitSizes):
    """Quantities derived from the workload, the schedule and the output. Index functions take Python or TIRx
    integers."""

    workload: ConvWorkload
    config: BitsConfig | RingConfig
    arch: Arch
    output: str
    clip: tuple[int, int] = (0, 0)
    requant: str = "fixed"

    @cached_property
    def view(self) -> ConvWorkload:
        """The layer as the kernel sees it: strided pixels with few channels become blocks of pixels; pixels whose
        windows contain no neighbours form one long row, unless they are pooled."""
        return flat_view(self._seen) if self._flat else self._seen

    @property
    def _seen(self) -> ConvWorkload:
        return blocked(self.workload) if self.whole_values else self.workload

    @property
    def _flat(self) -> bool:
        return not (self.config.paired_rows or self.fusion.pool > 1)

    @property
    def flattened(self) -> bool:
        """Whether all pixels of all images are arranged in other rows than the layer's."""
        return self._flat and flat_view(self._seen) != self._seen

    @cached_property
    def fusion(self) -> Fusion:
        """Operations fused between sums and output."""
        return Fusion.of(self.output)

    @property
    def by_line(self) -> bool:
        """Whether four-bit codes come from one multiplication; thresholds not on a line are compared (``requant``
        "general")."""
        plain = self.fusion == NOTHING and self.output != SUMS
        return plain and self.requant == "fixed" and self.output_planes == LINE_BITS

    # ---- operands -----------------------------------------------------------------------------------------------

    @property
    def whole_values(self) -> bool:
        """Whether activations and the weights they are multiplied by are bytes."""
        return bool(self.config.whole_values)

    @cached_property
    def form(self) -> BitProducts:
        """How sums of products are computed: from bit counts, or from the products themselves."""
        form = bit_products(self.workload.precision)
        if not self.whole_values:
            return form
        one = BitCode(1, (1,), 0)
        return BitProducts(form.precision, one, one, 1, 0, 0, 0, 0, NOTHING_BEYOND)

    @property
    def weight_planes(self) -> int:
        """Bits of a weight that are multiplied separately."""
        return 1 if self.whole_values else super().weight_planes

    @property
    def planes(self) -> int:
        """Bits of an activation that are multiplied separately."""
        return 1 if self.whole_values else super().planes

    @property
    def channel_blocks(self) -> int:
        """Pieces of a pixel: 128 input channels of a plane, or 16 whole values."""
        return ceil_div(self.view.c, PIECE_BYTES) if self.whole_values else super().channel_blocks

    @property
    def border(self) -> str:
        """How pixels outside the image are counted."""
        return self.form.border

    @property
    def paired_rows(self) -> bool:
        """Whether two input rows share the 128 bits of a block of channels."""
        return bool(self.config.paired_rows) and self.view.c <= PAIR_CHANNELS and not self.whole_values

    @property
    def paired_output(self) -> bool:
        """Whether two output rows share them."""
        return self.output != SUMS and bool(self.config.paired_rows) and self.view.k <= PAIR_CHANNELS

    @property
    def pixel_bytes(self) -> int:
        """Bytes of a pixel of 8 images."""
        return self.channel_blocks * self.planes * CORE_BYTES

    # ---- tiles --------------------------------------------------------------------------------------------------

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per block."""
        return self.config.tile_rows, min(self.view.q, self.row_tiles * TILE_PIXELS)

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return self.config.channels

    @property
    def out_rows(self) -> int:
        """Rows of the output, pooled or not."""
        return self.view.p // self.fusion.pool

    @property
    def out_columns(self) -> int:
        """Columns of the output."""
        return self.view.q // self.fusion.pool

    @property
    def slices(self) -> int:
        """Blocks that share an input, each with different output channels."""
        return ceil_div(self.view.k, self.config.channels)

    @property
    def segments(self) -> int:
        """Blocks along the output rows."""
        return ceil_div(self.view.p, self.config.tile_rows)

    @property
    def row_tiles(self) -> int:
        """Instruction tiles in a block's part of an output row, if tiles end with the row."""
        return ceil_div(ceil_div(self.view.q, TILE_PIXELS), self.config.row_parts)

    @property
    def tiles(self) -> int:
        """Instruction tiles per block."""
        if not self.config.run_on:
            return self.config.tile_rows * self.row_tiles
        return ceil_div((self.config.tile_rows - 1) * self.pitch + self.view.q, TILE_PIXELS)

    @property
    def turns(self) -> int:
        """Turns of all warpgroups of a block: each multiplies vertically adjacent tiles of ``turn_rows`` rows."""
        return ceil_div(self.tiles, self.config.turn_rows)

    @property
    def pixels_per_row(self) -> int:
        """Distance between the first output pixels of consecutive rows, in pixels of the instruction."""
        return self.pitch if self.config.run_on else self.row_tiles * TILE_PIXELS

    # ---- input rows in shared memory ------------------------------------------------------------------------------

    @property
    def pitch(self) -> int:
        """Pixels from one staged row to the next. The zeros after a row are those before the next one; if tiles end
        with a row, the pitch is as wide as its last tile reads."""
        w = self.view
        if self.config.run_on:
            return w.w + w.pad
        last = (self.row_tiles * TILE_PIXELS - 1) * w.stride + (w.s - 1) * w.dilation + 1
        return max(w.w + w.pad, last) if self.config.row_parts == 1 else last

    @property
    def image_rows(self) -> int:
        """Rows of the stored input: pairs, or single ones."""
        return ceil_div(self.view.h, 2) if self.paired_rows else self.view.h

    @property
    def window_rows(self) -> int:
        """Stored rows that an output row reads."""
        w = self.view
        span = (w.r - 1) * w.dilation + 1
        return max(ceil_div(span + parity, 2) for parity in self.parities) if self.paired_rows else span

    @property
    def parities(self) -> tuple[int, ...]:
        """Which of two paired rows the first row of a window can be: each needs a variant of the weights."""
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
        """Pixels after the last staged row that tiles read."""
        w = self.view
        if not self.config.run_on:
            return 0
        end = self.tiles * TILE_PIXELS + (w.r - 1) * w.dilation * self.pitch + (w.s - 1) * w.dilation
        return max(0, end - self.staged_rows * self.pitch)

    @property
    def rows_bytes(self) -> int:
        """Bytes of the staged rows."""
        return (self.staged_rows * self.pitch + self.slack) * self.pixel_bytes

    def stored_row(self, row: Any) -> Any:
        """The stored row that contains an image row."""
        half = (self.view.pad + 1) // 2  # rows above the image are negative
        return (row + 2 * half) // 2 - half if self.paired_rows else row

    @property
    def rows_inside(self) -> bool:
        """Whether every staged row of every block is inside the image."""
        w = self.view
        last = (self.segments * self.config.tile_rows - 1) * w.stride + (w.r - 1) * w.dilation
        return w.pad == 0 and last < w.h and not self.paired_rows

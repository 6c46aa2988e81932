"""The schedule of a kernel whose warps multiply fragments of bit planes: the knobs that both kinds share."""

from __future__ import annotations

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import choice, flag, knob, switch, whole

LAYOUTS = ("nhwcnc", "nhwc")
STAGINGS = ("shared", "direct")
KNOBS = ("blk_row_warps", "blk_col_warps", "warp_row_tiles", "warp_col_tiles", "chunk", "reorder_inner")
"""What spaces vary; the knobs are named like the mma family's in the paper (Choi et al. 2022, section 4.1)."""


@configuration
class PlaneConfig(Configuration):
    """A schedule: the rectangle of pixels and channels of a block and of its warps, and what is staged together."""

    blk_row_warps: int = knob("brw", whole(), "warps of a block along pixels", default=2, always=True)
    blk_col_warps: int = knob("bcw", whole(), "warps of a block along output channels", default=2, always=True)
    warp_row_tiles: int = knob("wrt", whole(), "pixels (8 images each) of one warp", default=4, always=True)
    warp_col_tiles: int = knob("wct", whole(4), "8-channel tiles of one warp, a multiple of 4", default=4, always=True)
    chunk: int = knob("ch", whole(), "blocks of 128 input channels staged together", default=1, always=True)
    reorder_inner: int = knob(
        "ri", flag(), "0 = channel chunk outermost, all kernel rows staged; 1 = kernel row outermost, one staged",
        default=1, always=True,
    )  # fmt: skip
    tile_height: int = knob("th", whole(0), "pixel rows of the block tile; 0 = chosen", default=0)
    stages: int = knob("st", whole(), "shared buffers in flight", default=2)
    staging: str = switch(
        "", choice(*STAGINGS), "operands go through shared memory, or direct from global memory into registers",
        default="shared",
    )  # fmt: skip
    layout: str = switch(
        "", choice(*LAYOUTS), "of activations and outputs: blocks of 8 images x 128 bits, or an image's pixels",
        default="nhwcnc",
    )  # fmt: skip

    @property
    def pixels(self) -> int:
        """Output pixels of the block tile (for each of the 8 images of a group)."""
        return self.blk_row_warps * self.warp_row_tiles

    @property
    def columns(self) -> int:
        """Output channels of the block tile."""
        return 8 * self.blk_col_warps * self.warp_col_tiles

    @property
    def threads(self) -> int:
        """Threads per block."""
        return 32 * self.blk_row_warps * self.blk_col_warps

"""A schedule of a convolution on ``mma.sync``: the paper's six knobs, five that extend them, three switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subbyte.device.atoms import ATOMS as MMA_ATOMS
from subbyte.renamed import former_name
from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import choice, flag, knob, switch, whole

DUPLICATE_AWARE = ("none", "shared", "full")
LAYOUTS = ("nhwc", "nhwcnc")
ATOMS = ("auto", *MMA_ATOMS)


@configuration
class MmaConfig(Configuration):
    """A schedule of a kernel on ``mma.sync``. The first six knobs are the paper's (Choi et al. 2022, section 4.1).

    The knobs of the extended space follow them, then the switches and the matrix instruction.
    """

    blk_row_warps: int = knob("brw", whole(), "warps of a block along pixels", default=1, always=True)
    blk_col_warps: int = knob("bcw", whole(), "warps of a block along output channels", default=2, always=True)
    warp_row_tiles: int = knob("wrt", whole(), "pixels (8 images each) of one warp", default=4, always=True)
    warp_col_tiles: int = knob("wct", whole(), "8-channel tiles of one warp", default=4, always=True)
    chunk: int = knob("ch", whole(), "blocks of 32 input channels staged together", default=1, always=True)
    reorder_inner: int = knob(
        "ri",
        flag(),
        "0 = channel chunk outermost, all kernel rows staged; 1 = kernel row outermost, one staged",
        default=0,
        always=True,
    )
    tile_height: int = knob("th", whole(0), "pixel rows of the block tile; 0 = chosen", default=0)
    stages: int = knob("st", whole(), "shared buffers in flight", default=2)
    split_channels: int = knob(
        "sp",
        whole(),
        "intra-block split-K: groups of warps that share the input channels of one tile and add up in shared memory",
        default=1,
    )
    min_blocks: int = knob(
        "mb",
        whole(0),
        "blocks per multiprocessor the compiler keeps registers free for, which caps them; 0 = no cap",
        default=0,
    )
    unroll: int = knob("un", whole(), "32-channel blocks unrolled in the main loop", default=1)
    duplicate_aware: str = switch(
        "dup.",
        choice(*DUPLICATE_AWARE[::-1]),
        "each datum once in shared memory and in registers (full), only in shared memory (shared), or the lowered tile",
        default="full",
    )
    register_packing: bool = switch(
        "rp", choice(True, False), "pack int4 words in registers, not in shared memory", default=True
    )
    layout: str = switch("", choice(*LAYOUTS[::-1]), "of activations and outputs in memory", default="nhwcnc")
    atom: str = knob(
        "", choice(*ATOMS), "the matrix instruction; auto = the default of the architecture", default="auto"
    )

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
        return 32 * self.blk_row_warps * self.blk_col_warps * self.split_channels


KNOBS = ("blk_row_warps", "blk_col_warps", "warp_row_tiles", "warp_col_tiles", "chunk", "reorder_inner")
"""The six knobs of the paper, in its order (the first varies fastest in a configuration's index)."""
SWITCHES = ("duplicate_aware", "register_packing", "layout")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Supports a name from earlier versions."""
        return former_name(__name__, name)

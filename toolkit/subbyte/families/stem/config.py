"""The schedule of a kernel for few input channels."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import flag, knob, whole

TILE_PIXELS = 8
"""Output pixels, of 8 images each, that form the 64 rows of an instruction."""


@configuration
class StemConfig(Configuration):
    """A schedule of the stem family (wgmma s8, sm_90a): pixels are the rows of an instruction, output channels its
    columns, and both operands come from shared memory. A tile is 8 output pixels of one output row, for 8 images; a
    turn is a group of output rows in a segment. Each warpgroup writes and multiplies the windows of its own
    turns."""

    prefix: ClassVar[str] = "stem-"

    turn_rows: int = knob(
        "rw", whole(1, 8), "output rows of a turn: 1, 2, 4 or 8; input rows that they share are read once",
        default=2, always=True,
    )  # fmt: skip
    together: int = knob(
        "tg", whole(1, 4), "output rows of them whose tiles a warpgroup sums up together: 1, 2 or 4", default=1,
        always=True,
    )  # fmt: skip
    filters: int = knob(
        "oc", whole(32, 128), "output channels of a block, and of an instruction: 32, 64, 96 or 128", default=64,
        always=True,
    )  # fmt: skip
    consumers: int = knob("co", whole(1, 8), "warpgroups of a block, which share weights", default=1, always=True)
    segments: int = knob("sg", whole(), "parts of an output row, each a turn of its own", default=1, always=True)
    turns: int = knob(
        "tu", whole(1, 256), "turns of a warpgroup, one after the other: down a segment, then on with the next one",
        default=1, always=True,
    )  # fmt: skip
    ahead: int = knob(
        "ah", flag(), "1 = the words of a turn are read while the turn before it is multiplied", default=0
    )
    buffers: int = knob(
        "bu", whole(1, 2), "turns of a warpgroup whose windows have room: with 1 its warps wait for each other at the "
        "end of a turn", default=1,
    )  # fmt: skip
    behind: int = knob(
        "be", flag(), "1 = the next tile is multiplied behind a tile's requantization, where an int4 output needs no "
        "more than a multiply-add", default=0,
    )  # fmt: skip
    held_weights: int = knob(
        "hw", flag(), "1 = weights stay in registers: 64 output channels are the rows of an instruction, pixels its "
        "columns, and it reads half as much shared memory; results change places between lanes", default=0,
    )  # fmt: skip
    wide: int = knob(
        "wi", flag(), "1 = an instruction has 16 output pixels as its columns, not 8, where weights stay in registers",
        default=0,
    )  # fmt: skip
    streamed: int = knob(
        "st", flag(), "1 = results are the first that the L2 gives up (st.global.cs), where weights stay in registers",
        default=0,
    )  # fmt: skip
    min_blocks: int = knob(
        "mb", whole(1, 8), "blocks of a multiprocessor that the compiler keeps registers free for", default=1
    )
    dependent_launch: int = knob("pdl", flag(), "1 = may start before the kernel before it has ended", default=1)

    @property
    def pixels(self) -> int:
        """Output pixels of an instruction, of 8 images each."""
        return TILE_PIXELS * (1 + self.wide)

    @property
    def threads(self) -> int:
        """Threads per block."""
        return 128 * self.consumers

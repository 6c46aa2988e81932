"""How to schedule a kernel for few input channels."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import flag, knob, whole

TILE_PIXELS = 8
"""Output pixels, of 8 images each, that are the 64 rows of an instruction."""


@configuration
class StemConfig(Configuration):
    """A schedule of the stem family (wgmma s8, sm_90a): pixels are the rows of an instruction, and its operand comes
    from registers; output channels are its columns. A tile is 8 output pixels of one output row, for 8 images."""

    prefix: ClassVar[str] = "stem-"

    tile_rows: int = knob(
        "tr", whole(1, 4), "output rows whose tiles a warpgroup sums up together: 1, 2 or 4; input rows that they "
        "share are read and unpacked once", default=2, always=True,
    )  # fmt: skip
    filters: int = knob(
        "oc", whole(32, 128), "output channels of a block, and of an instruction: 32, 64, 96 or 128", default=64,
        always=True,
    )  # fmt: skip
    consumers: int = knob("co", whole(1, 8), "warpgroups of a block, which take tiles in turn", default=4, always=True)
    segments: int = knob("sg", whole(), "blocks that share an output row", default=1, always=True)
    turns: int = knob(
        "tu", whole(1, 64), "groups of tile_rows output rows that a block computes one after the other; from 2 on the "
        "next one's input is copied meanwhile", default=1,
    )  # fmt: skip
    min_blocks: int = knob(
        "mb", whole(1, 8), "blocks of a multiprocessor that the compiler keeps registers free for", default=1
    )
    dependent_launch: int = knob("pdl", flag(), "1 = may start before the kernel before it has ended", default=1)

    @property
    def threads(self) -> int:
        """Of a block."""
        return 128 * self.consumers

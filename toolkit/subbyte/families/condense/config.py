"""The schedule of a kernel that skips the zeros it finds."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import flag, knob, whole

ROW_PIXELS = 4
"""Pixels of 8 images each that form the 32 rows of a tile."""
PANEL = 32
"""Columns in a panel of weights: those in the 16-byte row of one position of K."""


@configuration
class CondenseConfig(Configuration):
    """A schedule of the condense family (m16n8k32 on int8, sm_80 and later).

    A tile is 32 rows by ``tile_columns``; a lane takes every 32nd position of K, or two lanes together every 16th, and
    processes those where neither side is all zeros. PIT (arXiv 2301.10936) gathers tiles in the same sense.
    """

    prefix: ClassVar[str] = "cd-"
    skips_zeros: ClassVar[bool] = True

    row_warps: int = knob("rw", whole(1, 8), "warps of a block along rows, 32 rows each", default=4, always=True)
    col_warps: int = knob("cw", whole(1, 8), "warps of a block along columns", default=4, always=True)
    panels: int = knob("pn", whole(1, 4), "panels of 32 columns of a warp", default=2, always=True)
    chunk: int = knob("ch", whole(1, 32), "blocks of 32 positions of K staged together", default=16, always=True)
    column_tiles: int = knob(
        "ct", whole(1, 4), "8-column tiles whose zeros are looked at together: 1, 2 or 4", default=2, always=True
    )
    ahead: int = knob(
        "ah", flag(), "1 = the next chunk's weights are loaded meanwhile, into a second buffer; 0 = after it", default=1
    )
    sharing: int = knob(
        "sh", whole(1, 2), "2 = two lanes share the positions of both, each takes every second live one; 1 = none does",
        default=2,
    )  # fmt: skip
    fetch_ahead: int = knob(
        "fa", flag(), "1 = the fragments of the next step are gathered before this one is multiplied; 0 = after it",
        default=0,
    )  # fmt: skip
    min_blocks: int = knob(
        "mb", whole(0, 4), "blocks of a multiprocessor that registers are kept free for; 0 = any number", default=0
    )

    @property
    def tile_columns(self) -> int:
        """Columns whose zeros are examined together."""
        return 8 * self.column_tiles

    @property
    def warps(self) -> int:
        """Warps per block."""
        return self.row_warps * self.col_warps

    @property
    def threads(self) -> int:
        """Threads per block."""
        return 32 * self.warps

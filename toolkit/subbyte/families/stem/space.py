"""The knobs and values that the space of a layer varies."""

from __future__ import annotations

from subbyte.families.stem.strings import ROWS_TOGETHER, strings
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div

KIND = "stem"
KNOBS = (
    "turn_rows", "filters", "consumers", "segments", "turns", "ahead", "behind", "held_weights", "wide", "streamed",
    "min_blocks",
)  # fmt: skip
"""The knobs that the space varies. Of the others, two buffers of windows and sums of several rows together are for a
fixed field to try."""
MOST_SEGMENTS = 14
KEPT_BYTES = 50 << 20
"""Outputs that the L2 keeps for the next launch: larger ones may be streamed."""
CHANNELS = (64, 96, 128)
"""Output channels of a block; 32 where none of these divide a layer's."""


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """The value lists for a layer. Segments are those of equal length, or almost, if there are not three such."""
    units, rows = strings(workload).units, ceil_div(workload.p, ROWS_TOGETHER) * ROWS_TOGETHER
    parts = range(1, min(units, MOST_SEGMENTS) + 1)
    segments = [count for count in parts if units % count == 0]
    if len(segments) < 3:
        segments = [count for count in parts if ceil_div(units, ceil_div(units, count)) == count]
    filters = [count for count in CHANNELS if workload.padded_filters % count == 0] or [32]
    held = (0, 1) if 64 in filters else (0,)
    turn_rows = (1, 2, 4, 8) if rows % 8 == 0 else (1, 2, 4)
    outputs = workload.batch_groups * BATCH_GROUP * workload.p * workload.q * workload.padded_filters // 2
    streamed = held if outputs > KEPT_BYTES else (0,)
    turns = (1, 2, 3, 4, 6, 8, 12, 16, 24, 48)
    lists = turn_rows, tuple(filters), (1, 3), tuple(segments), turns, (0, 1), (0, 1)
    return dict(zip(KNOBS, (*lists, held, held, streamed, (1, 2, 3, 4)), strict=True))

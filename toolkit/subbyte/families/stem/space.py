"""The knobs and values that the space of a layer varies."""

from __future__ import annotations

from subbyte.families.stem.strings import strings
from subbyte.workload.conv import ConvWorkload, ceil_div

KIND = "stem"
KNOBS = ("turn_rows", "filters", "consumers", "segments", "turns", "ahead", "buffers", "behind")
"""The knobs that the space varies."""
MOST_SEGMENTS = 14


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """The value lists for a layer; only segments that divide evenly are offered."""
    units = strings(workload).units
    parts = range(1, min(units, MOST_SEGMENTS) + 1)
    segments = [count for count in parts if ceil_div(units, ceil_div(units, count)) == count]
    turns = (1, 2, 3, 4, 6, 8, 12, 24, 48)
    lists = (1, 2, 4), (32, 64, 96, 128), (1, 3, 4), tuple(segments), turns, (0, 1), (1, 2), (0, 1)
    return dict(zip(KNOBS, lists, strict=True))

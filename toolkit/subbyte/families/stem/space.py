"""What the space of a layer varies."""

from __future__ import annotations

from subbyte.families.stem.strips import strips
from subbyte.workload.conv import ConvWorkload, ceil_div

KIND = "stem"
KNOBS = ("tile_rows", "filters", "consumers", "segments", "turns")
"""What the space varies."""
MOST_SEGMENTS = 8


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """What the space offers for a layer: of segments those that are shared out evenly."""
    units = strips(workload).units
    parts = range(1, min(units, MOST_SEGMENTS) + 1)
    segments = [count for count in parts if ceil_div(units, ceil_div(units, count)) == count]
    lists = (1, 2, 4), (32, 64, 96, 128), (1, 2, 3, 4, 6, 7, 8), tuple(segments), (1, 2, 3, 4, 7, 8, 14)
    return dict(zip(KNOBS, lists, strict=True))

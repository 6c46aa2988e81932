"""The knobs and values that the space of a layer varies."""

from __future__ import annotations

from subbyte.families.image.rules import WIDTHS
from subbyte.workload.conv import ConvWorkload

KIND = "wgmma-image"
KNOBS = ("pixels", "filter_warpgroups", "channel_warpgroups", "cluster_split_k", "in_flight")
"""The knobs that the space varies."""


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """The value lists for a layer."""
    places = workload.p * (workload.q + workload.s)
    pixels = tuple(n for n in WIDTHS if n <= min(128, max(8, places + 8)))
    return dict(zip(KNOBS, (pixels, (1, 2), (1, 2, 4), (1, 2, 4, 8), (1, 2, 4)), strict=True))

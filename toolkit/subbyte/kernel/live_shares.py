"""Block-sparse weights with a fraction of live blocks between the measured ones: one kernel takes any live list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from subbyte.families.registry import config_from_dict
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload.operand import BLOCKS

Sides = dict[bool, tuple[float, Configuration]]
"""Time in microseconds and configuration of the kernel that skips zeros (True) and of its dense twin."""


def between_shares(
    workload: ConvWorkload, recorded: Mapping[str, Mapping[str, Any]]
) -> list[tuple[Configuration, str]]:
    """Configurations for a fraction of live blocks that was not measured, the one expected to be faster first, each
    with what was measured of it; none for other weights, or if no larger fraction was measured.

    The kernel that skips zeros is the best one at the next larger fraction; its expected time is interpolated linearly
    between that fraction and the next smaller one.
    """
    types = workload.precision
    percent = types.weights.live_percent
    if percent is None:
        return []
    known = {}
    for other in range(101):
        weights = replace(types.weights, sparsity=f"{BLOCKS}:{other / 100:g}")
        entry = recorded.get(replace(workload, precision=replace(types, weights=weights)).spec)
        if entry is not None and len(sides := _sides(entry)) == 2:
            known[other] = sides
    upper = min((other for other in known if other >= percent), default=None)
    lower = max((other for other in known if other <= percent), default=None)
    if upper is None:
        return []
    (most, skipping), (needed, dense) = known[upper][True], known[upper][False]
    least = most if lower is None or lower == upper else known[lower][True][0]
    share = 1.0 if lower is None or lower == upper else (percent - lower) / (upper - lower)
    measured = f"{most:.2f} us measured at {upper} % live blocks"
    if least != most:
        measured = f"{least:.2f} us measured at {lower} % and {measured}"
    found = [
        (least + share * (most - least), skipping, f"it skips blocks of zeros: {measured}, {needed:.2f} us dense"),
        (needed, dense, f"it multiplies zeros too: {needed:.2f} us measured, kernels that skip them {measured}"),
    ]
    found.sort(key=lambda one: one[0])
    return [(config, text) for _, config, text in found]


def _sides(entry: Mapping[str, Any]) -> Sides:
    """Both sides of a record, if it has both."""
    several = [entry, *(one for one in entry.values() if isinstance(one, dict) and "microseconds" in one)]
    made = [(float(one["microseconds"]), config_from_dict(one["config"])) for one in several]
    return {config.skips_zeros: (time, config) for time, config in sorted(made, key=lambda one: -one[0])}

"""From times at several densities to the density above which dense is faster, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log
from statistics import median
from typing import Any

import numpy as np

DRAWS = 1000
LEAST = 1e-6
"""Smaller densities are raised to this one before taking logarithms."""


def crossing(densities: Sequence[float], gains: Sequence[float]) -> float | None:
    """The density at which a gain (dense time over the other's) is 1: interpolated linearly in logarithms between two
    neighbouring densities with gains above and below 1; the sparsest such point. None if all gains are on one side."""
    points = sorted(zip(densities, gains, strict=True))
    for (low, above), (high, below) in pairwise(points):
        if above >= 1 > below:
            share = log(above) / (log(above) - log(below))
            left, right = log(max(low, LEAST)), log(max(high, LEAST))
            return exp(left + share * (right - left))
    return None


def break_even(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The density below which skipping pays, from the fastest skipping and the fastest dense side at every density,
    with the 95 % interval of a bootstrap over the rounds. ``value`` is None if one side always wins, and ``always``
    says which. None for a record without both sides."""
    rows = [row for row in record["rows"] if "sides" in row]
    pairs = []
    for row in rows:
        best = [_fastest(row, record[which]) for which in ("skipping", "dense")]
        if None not in best:
            pairs.append((row["density"], *best))
    if not pairs:
        return None
    densities = [one[0] for one in pairs]
    rounds = [
        [dense / skips for skips, dense in zip(row["sides"][ours]["samples"], row["sides"][other]["samples"],
                                               strict=True)]
        for row, (_, ours, other) in zip(_with(rows, densities), pairs, strict=True)
    ]  # fmt: skip
    gains = [median(one) for one in rounds]
    value = crossing(densities, gains)
    draw = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS if value is not None else 0):
        again = [float(np.median(draw.choice(one, len(one)))) for one in rounds]
        if (one := crossing(densities, again)) is not None:
            found.append(one)
    low, high = (float(x) for x in np.percentile(found, (2.5, 97.5))) if found else (None, None)
    always = None if value is not None else ("dense" if max(gains) < 1 else "skipping" if min(gains) >= 1 else "mixed")
    gained = [
        {"density": density, "gain": gain, "skipping": ours, "dense": other}
        for (density, ours, other), gain in zip(pairs, gains, strict=True)
    ]
    return {"value": value, "low": low, "high": high, "always": always, "gains": gained}


def _fastest(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    right = [name for name in names if name in row["sides"] and not row["sides"][name]["wrong"]]
    return min(right, key=lambda name: row["sides"][name]["microseconds"]) if right else None


def _with(rows: Sequence[Mapping[str, Any]], densities: Sequence[float]) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["density"] in densities]

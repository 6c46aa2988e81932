"""The maps of every two knobs, as the browser draws them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from subbyte.analysis.landscape_view import LandscapeMap, landscape_map
from subbyte.records.landscape import Landscape


def all_maps(landscape: Landscape, names: list[str]) -> dict[str, dict[str, list[Any]]]:
    """The map of every two knobs, by 'x|y'."""
    return {f"{a}|{b}": _columns(landscape_map(landscape, a, b)) for a, b in combinations(names, 2)}


def _columns(found: LandscapeMap) -> dict[str, list[Any]]:
    """A map's cells row by row, in columns: what the browser draws."""
    cells = [cell for row in found.cells for cell in row]
    short = [(None, None) if c.best is None or c.median is None else (c.best, c.median) for c in cells]
    return {
        "best": [best and float(f"{best:.4g}") for best, _ in short],
        "median": [median and float(f"{median:.4g}") for _, median in short],
        "measured": [cell.measured for cell in cells],
        "refused": [cell.refused for cell in cells],
        "index": [cell.index for cell in cells],
        "reason": [cell.reason for cell in cells],
    }


def as_text(points: dict[str, Any]) -> dict[str, Any]:
    """The columns as text, which is a third of their size as lists: the indices as differences, no time as "-"."""
    if not points:
        return {}
    steps = [now - before for before, now in zip([0, *points["index"]], points["index"], strict=False)]
    times = ("-" if time is None else f"{time:g}" for time in points["time"])
    columns = {"index": steps, "time": times, "reason": points["reason"]}
    return {**points, "digits": "".join(points["digits"]),
            **{name: " ".join(map(str, column)) for name, column in columns.items()}}  # fmt: skip

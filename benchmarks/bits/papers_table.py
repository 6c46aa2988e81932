"""Print records of ``papers``: a table for each experiment, with the fastest kernel of each side.

A kernel's time is the slower of its two medians; of those that are not exact none counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.command import answering, parser_of

Times = dict[str, dict[str, float]]
"""Microseconds by side and point."""


def fastest(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """By experiment, side and point: the fastest exact kernel that was timed twice, with its ``time``."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        if row.get("wrong") != 0 or "second" not in row:
            continue
        key = row["experiment"], row["side"], row["point"]
        time = max(row["microseconds"], row["second"])
        if key not in found or time < found[key]["time"]:
            found[key] = {**row, "time": time}
    return found


def by_side(rows: Sequence[Mapping[str, Any]], experiment: str) -> Times:
    """The times of an experiment."""
    times: Times = {}
    for (name, side, point), row in fastest(rows).items():
        if name == experiment:
            times.setdefault(side, {})[point] = row["time"]
    return times


def table_of(times: Times) -> str:
    """Sides below each other, points beside each other."""
    points = list(dict.fromkeys(point for row in times.values() for point in row))
    lines = [f"| us | {' | '.join(points)} |", "| --- |" + " --- |" * len(points)]
    for side, row in times.items():
        cells = (f"{row[point]:.2f}" if point in row else "-" for point in points)
        lines.append(f"| {side} | {' | '.join(cells)} |")
    return "\n".join(lines)


def apart(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """How far the two medians of a kernel lie apart, as a share of the first; ascending."""
    pairs = ((row["microseconds"], row["second"]) for row in rows if "second" in row)
    return sorted(abs(second / first - 1) for first, second in pairs)


@answering
def main(arguments: Sequence[str]) -> int:
    """Print them."""
    parser = parser_of("bits papers-table", __doc__)
    parser.add_argument("records", type=Path, nargs="+")
    asked = parser.parse_args(arguments)
    rows = [row for path in asked.records for row in json.loads(path.read_text(encoding="utf-8"))["sides"]]
    for experiment in dict.fromkeys(row["experiment"] for row in rows):
        print(f"{experiment}\n\n{table_of(by_side(rows, experiment))}\n")
    differences = apart(rows)
    compared = [row for row in rows if "wrong" in row]
    print(f"{len(compared)} outputs compared, {sum(1 for row in compared if row['wrong'])} wrong; "
          f"{len(rows) - len(compared)} sides without a result")  # fmt: skip
    if differences:
        print(f"medians of two timings: {differences[len(differences) // 2]:.1%} apart, at most {differences[-1]:.1%}")
    return 0

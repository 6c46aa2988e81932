"""Print the table of a record: python benchmarks/operands table RECORD.json"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.operands.build import BYTES, SIDES
from benchmarks.shared.command import answering, parser_of

FORMER = {name: f"{name} (mma)" for name in BYTES}
"""Sides of records from before there were two families for them."""


@answering
def main(arguments: Sequence[str]) -> int:
    """Print it."""
    parser = parser_of("operands table", __doc__)
    parser.add_argument("record", type=Path)
    record = json.loads(parser.parse_args(arguments).record.read_text(encoding="utf-8"))
    print(table(record))
    return 0


def table(record: dict[str, Any]) -> str:
    """Microseconds of the plain layer (the slower run's median), then of each side its quotient by the plain one, the
    median over all rounds of both runs, and how far the runs' own medians are apart."""
    for one in (one for layer in record["layers"] for one in layer["sides"]):
        one["side"] = FORMER.get(one["side"], one["side"])
    timed = {one["side"] for layer in record["layers"] for one in layer["sides"]}
    names = [name for name in SIDES if name in timed]  # older records have fewer
    lines = ["| layer | " + " | ".join([f"{names[0]}, us", *names[1:]]) + " |", "| --- |" + " ---: |" * len(names)]
    for layer in record["layers"]:
        sides = {one["side"]: one for one in layer["sides"]}
        plain = sides[names[0]]
        others = (sides[name] for name in names[1:])
        beside = [_cell(one["samples"], plain["samples"]) if one["wrong"] == 0 else "wrong" for one in others]
        cells = [f"{plain['us']:.2f}", *beside]
        lines.append(f"| {layer['layer']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(samples: list[list[float]], plain: list[list[float]]) -> str:
    runs = [median(a / b for a, b in zip(run, beside, strict=True)) for run, beside in zip(samples, plain, strict=True)]
    return f"{sum(runs) / len(runs):.2f} ({min(runs):.3f}, {max(runs):.3f})"

"""Print the fastest kernel of each cell of a record of ``measure``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bits.texts import BATCHES, PRECISIONS, STAGES
from benchmarks.shared.command import answering, parser_of


def best(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fastest exact kernel of each cell: by the slower of its two medians, among those that have two if any has."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for one in record["kernels"]:
        if not one["wrong"]:
            time = max(one["microseconds"], one.get("second", one["microseconds"]))
            cells.setdefault(one["cell"], []).append({**one, "time": time})
    return {
        cell: min([one for one in found if "second" in one] or found, key=lambda one: float(one["time"]))
        for cell, found in cells.items()
    }


@answering
def main(arguments: Sequence[str]) -> int:
    """Print it."""
    parser = parser_of("bits table", __doc__)
    parser.add_argument("record", type=Path)
    asked = parser.parse_args(arguments)
    found = best(json.loads(asked.record.read_text(encoding="utf-8")))
    print("| us | " + " | ".join(f"stage {stage} @{batch}" for stage in STAGES for batch in BATCHES) + " |")
    print("| --- |" + " --- |" * (len(STAGES) * len(BATCHES)))
    for bits in PRECISIONS:
        cells = [found.get(f"resnet50.stage{stage}@{batch}:{bits}") for stage in STAGES for batch in BATCHES]
        print(f"| {bits} | " + " | ".join("-" if one is None else f"{one['time']:.2f}" for one in cells) + " |")
    return 0

"""Print the fastest kernel of each cell of a record of ``measure``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bits.texts import BATCHES, PRECISIONS, STAGES
from benchmarks.shared.command import answering, parser_of


def best(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fastest exact kernel of each cell: by the slower of its two medians, where it has two."""
    found: dict[str, dict[str, Any]] = {}
    for one in record["kernels"]:
        time = max(one["microseconds"], one.get("second", one["microseconds"]))
        known = found.get(one["cell"])
        if not one["wrong"] and (known is None or ("second" in one and time < known["time"])):
            found[one["cell"]] = {**one, "time": time}
    return found


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

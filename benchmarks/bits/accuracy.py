"""Measure accuracy by the bits of weights and activations, on scikit-learn's digits (APNN-TC's accuracy table).

Small perceptrons are trained with a straight-through estimator, each several times from other weights, and evaluated as
integers on the fifth of the images that no training saw. To expect: more bits of either side never cost accuracy beyond
what seeds do, and real numbers are the upper end. Which is so is in the record. No GPU.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.shared.command import answering, parser_of
from subbyte.files import write_file
from subbyte.networks.training import float_accuracy, train

BITS = (1, 2, 3, 4)
NARROW, WIDE = (32,), (256, 256)
FEW = ("w1a1", "w1a2", "w2a2", "w4a4")
"""What the wide network is trained in."""
EXPECTED = "accuracy rises with p and with q, or stays; float is highest"


def measured(data: str, widths: tuple[int, ...], precisions: Sequence[str], seeds: int) -> list[dict[str, Any]]:
    """A row for float and for each precision, with the accuracy of every seed."""
    rows: list[dict[str, Any]] = []
    for bits in ("float", *precisions):
        if bits == "float":
            found, differing = [float_accuracy(data, widths=widths, seed=seed) for seed in range(seeds)], 0
        else:
            runs = [train(data, bits, widths=widths, seed=seed) for seed in range(seeds)]
            found, differing = [run.accuracy for run in runs], sum(run.differing for run in runs)
        rows.append({"bits": bits, "accuracies": found, "mean": fmean(found), "differing": differing})
        print(f"{'-'.join(map(str, widths)):>9} {bits:6} {fmean(found):.3f}  {min(found):.3f} to {max(found):.3f}")
    return rows


def falls(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Where one bit more of one side is worse on average by more than the seeds of either are apart."""
    known = {row["bits"]: row for row in rows}
    found = []
    for bits, row in known.items():
        if bits == "float":
            continue
        p, q = int(bits[1]), int(bits[3])
        more = [wider for wider in (f"w{p + 1}a{q}", f"w{p}a{q + 1}") if wider in known]
        worse = [wider for wider in more if max(known[wider]["accuracies"]) < min(row["accuracies"])]
        found += [f"{bits} to {wider}" for wider in worse]
    return found


@answering
def main(arguments: Sequence[str]) -> int:
    """Train and write."""
    parser = parser_of("bits accuracy", __doc__)
    parser.add_argument("out", type=Path, help="a JSON file")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each precision (default 5)")
    asked = parser.parse_args(arguments)
    pairs = [f"w{p}a{q}" for p in BITS for q in BITS]
    networks = []
    for widths, precisions in ((NARROW, pairs), (WIDE, FEW)):
        rows = measured("digits", widths, precisions, asked.seeds)
        highest = max(row["mean"] for row in rows)
        networks.append(
            {"hidden": widths, "rows": rows, "falls": falls(rows), "float_highest": rows[0]["mean"] == highest}
        )
    record = {"schema": 1, "experiment": "A6", "date": f"{datetime.now(UTC):%Y-%m-%d}", "data": "digits",
              "command": f"python benchmarks/bits accuracy --seeds {asked.seeds}", "expected": EXPECTED,
              "networks": networks}  # fmt: skip
    write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return 0

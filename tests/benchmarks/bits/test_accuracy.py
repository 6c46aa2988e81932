"""The record of accuracy by bits, and how it is judged."""

from __future__ import annotations

import json

from benchmarks.bits.accuracy import BITS, EXPECTED, falls
from benchmarks.shared.command import RESULTS


def test_a_fall_is_where_every_seed_is_worse() -> None:
    def row(bits: str, *found: float) -> dict:
        return {"bits": bits, "accuracies": list(found)}

    assert falls([row("float", 0.9), row("w1a1", 0.8, 0.9), row("w1a2", 0.7, 0.85), row("w2a1", 0.7, 0.75)]) == [
        "w1a1 to w2a1"
    ]


def test_the_record_has_all_pairs_and_no_differing_prediction() -> None:
    record = json.loads((RESULTS / "bits/accuracy-digits-2026-11-23.json").read_text())
    narrow, wide = record["networks"]
    assert record["expected"] == EXPECTED
    assert [row["bits"] for row in narrow["rows"]] == ["float", *(f"w{p}a{q}" for p in BITS for q in BITS)]
    for one in (narrow, wide):
        assert one["falls"] == falls(one["rows"]) == []
        assert one["float_highest"]
        assert all(row["differing"] == 0 and len(row["accuracies"]) == 5 for row in one["rows"])

"""The latency benchmark without a browser: its cases, its arithmetic, and the records it wrote."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

import subbyte_widgets
from benchmarks.views import latency
from benchmarks.views.cases import CASES, SIX
from subbyte_widgets._base import View

ROOT = Path(__file__).resolve().parents[3]

RECORDS = sorted((ROOT / "benchmarks/results").glob("latency-*.json"))
VIEW = {"view": "map", "size": "large", "control": "key", "kB to draw": 399.0, "kB per step": 1.5, "median ms": 20.0,
        "p95 ms": 40.0, "steps ms": [20.0]}  # fmt: skip
RECORD = {"views": [VIEW], "six views": {"views": ["map"], "seconds": [1.0, 1.2], "median s": 1.1, "kB": 900}}


def test_every_view_is_measured() -> None:
    exported = {name: getattr(subbyte_widgets, name) for name in subbyte_widgets.__all__}
    drawn = {name for name, one in exported.items() if isinstance(one, type) and issubclass(one, View)}
    shown = " ".join(case.show for case in CASES)
    assert not [name for name in drawn if f"= {name}(" not in shown]
    assert set(SIX) <= {case.name for case in CASES}
    assert len(SIX) == 6


def test_the_95th_percentile() -> None:
    assert latency.p95([float(n) for n in range(1, 101)]) == 95
    assert latency.p95([3.0]) == 3


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [("median ms", 51.0, "median ms, at most 50"), ("p95 ms", 101.0, "p95 ms, at most 100"),
     ("kB to draw", 401.0, "kB to draw, at most 400")],
)  # fmt: skip
def test_a_missed_goal_is_named(place: str, value: float, words: str) -> None:
    assert not latency.missed(RECORD)
    slow = deepcopy(RECORD)
    slow["views"][0][place] = value  # type: ignore[index]
    assert words in " ".join(latency.missed(slow))


def test_six_slow_views_are_named() -> None:
    slow = deepcopy(RECORD)
    slow["six views"]["median s"] = 2.1  # type: ignore[call-overload]
    assert latency.missed(slow) == ["six views: 2.1 s, at most 2"]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_committed_record_says_where_it_was_measured_and_is_shown(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads(path.read_text())
    assert record["machine"]["cores"] >= 1
    assert set(record["load average"]) == {"before", "after"}
    assert {view["view"] for view in record["views"]} <= {case.name for case in CASES}
    assert latency.main(["--show", str(path)]) == 0
    shown = capsys.readouterr().out
    for view in record["views"]:
        assert f"| {view['view']} |" in shown

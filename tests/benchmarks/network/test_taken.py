"""The fastest kernels of records: those that two of them have, where they beat what is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.network import taken

CELL = "n8h224w224c3k64r7s7p3u2"
FAST, SLOW, ONCE = "stem-rw4-tg1-oc32-co1-sg7-tu1", "stem-rw2-tg1-oc64-co1-sg7-tu1", "stem-rw1-tg1-oc64-co1-sg7-tu1"


def record(path: Path, times: dict[str, float], form: str = taken.FORMAT) -> Path:
    kernels: list[dict[str, Any]] = [{"cell": CELL, "config": key, "microseconds": us} for key, us in times.items()]
    kernels.append({"cell": CELL, "config": ONCE, "reason": "wrong"})
    path.write_text(json.dumps({"format": form, "gpu": {"name": "H200"}, "kernels": kernels}), encoding="utf-8")
    return path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "kernel").mkdir()
    known = {CELL: {"config": {}, "microseconds": 18.0, "warp": {"config": {}}}}
    (tmp_path / "kernel/best.json").write_text(json.dumps(known), encoding="utf-8")
    return tmp_path


def take(package: Path, *records: Path) -> int:
    return taken.main([*map(str, records), "--generator", "1a2b3c4", "--package", str(package)])


def test_the_slower_time_of_the_fastest_that_two_records_have_is_taken(package: Path) -> None:
    one = record(package / "one.json", {FAST: 5.0, SLOW: 5.1, ONCE: 4.0})
    assert take(package, one, record(package / "two.json", {FAST: 5.4, SLOW: 5.2})) == 0
    found = json.loads((package / "kernel/best.json").read_text(encoding="utf-8"))[CELL]
    assert (found["microseconds"], found["config"]["turn_rows"], found["warp"]) == (5.2, 2, {"config": {}})
    assert found["source"] == "benchmarks/results/warpgroup/two.json"


def test_what_is_known_stays_unless_it_is_beaten_by_more_than_noise(package: Path) -> None:
    one, two = (record(package / f"{name}.json", {FAST: 17.9}) for name in "ab")
    assert take(package, one, two) == 0
    assert json.loads((package / "kernel/best.json").read_text(encoding="utf-8"))[CELL]["microseconds"] == 18.0


def test_other_records_and_single_runs_are_refused(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = record(package / "one.json", {FAST: 5.0})
    assert take(package, one) != 0
    assert "measure the fastest again" in capsys.readouterr().err
    assert take(package, one, record(package / "two.json", {FAST: 5.0}, "else")) != 0
    assert "two.json: no record of" in capsys.readouterr().err

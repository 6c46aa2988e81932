"""Gains of software from zeros: every kind of record is read by one function, break-even where a line crosses 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from subbyte import sparse
from subbyte.errors import BrokenRecord, InvalidInput

RECORDS = Path(__file__).parents[3] / "benchmarks/results/sparse"
DEVICE = {"name": "NVIDIA H200"}


def written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def side(microseconds: float, wrong: int = 0) -> dict[str, Any]:
    return {"microseconds": microseconds, "samples": [microseconds] * 3, "wrong": wrong}


@pytest.fixture
def several(tmp_path: Path) -> list[Path]:
    """A record of each kind."""
    cell = "resnet50.stage3@256:w4a4:signed-blocks{}.signed"
    blocks = {
        "gpus": [DEVICE], "kernels": [{"cell": cell.format(50), "config": "wrong", "wrong": 3, "refused": None}],
        "rounds": [
            {"cell": cell.format(75), "config": "a", "dense": False, "ratio": 0.5},
            {"cell": cell.format(50), "config": "wrong", "dense": False, "ratio": 9.0},
            {"cell": cell.format(50), "config": "a", "dense": False, "ratio": 1.5},
            {"cell": cell.format(50), "config": "b", "dense": False, "ratio": 2.0},
            {"cell": cell.format(50), "config": "d", "dense": True, "ratio": 1.0},
        ],
    }  # fmt: skip
    compact = {"format": "subbyte-compact", "gpu": DEVICE, "cells": [{"cell": "resnet50.stage3@256", "runs": [
        {"sides": [{"kept": 1.0, "samples": [4.0, 4.4]}, {"kept": 0.5, "samples": [2.0, 2.0]}]}]}]}  # fmt: skip
    densities = {"kind": "densities", "records": [{
        "device": DEVICE, "workload": "gemm4096", "skipping": ["c", "cheat"], "dense": ["d"],
        "rows": [{"density": 0.1, "sides": {"c": side(8.0), "cheat": side(1.0, 5), "d": side(4.0)}}],
    }]}  # fmt: skip
    found = {"blocks": blocks, "compact": compact, "densities": densities}
    return [written(tmp_path, f"{name}.json", content) for name, content in found.items()]


def test_every_kind_of_record_is_read(several: list[Path]) -> None:
    found = sparse.read_software(RECORDS / "stages-h200-2026-11-23.json", *several)
    gains = {(one.path, one.layer, one.weights): one.speedup for one in found.gains}
    assert gains["blocks", "resnet50.stage3@256", 0.5] == 2.0  # the fastest right one
    assert gains["compact", "resnet50.stage3@256", 0.25] == pytest.approx(2.1)
    assert gains["condense", "gemm4096", 0.1] == 0.5
    assert gains["2:4", "resnet50.stage4@256", 0.5] > 1.5
    level = found.break_even("blocks", "resnet50.stage3@256")
    assert level == pytest.approx((0.5 * 0.75) ** 0.5)  # twice as fast and half as fast: the middle in logarithms
    assert found.break_even("condense", "gemm4096") is None
    (line,) = found.break_evens()
    assert (line.path, line.points[0]) == ("blocks", (1.0, pytest.approx(level)))
    assert {one.path for one in found.bars("resnet50.stage3")} == {"2:4", "blocks"}


def test_zeros_of_both_sides_pay_at_a_pair_of_densities(tmp_path: Path) -> None:
    """Even where the first row is of operands without zeros."""
    sides = {1.0: (8.0, 4.0), 0.1: (6.0, 4.0), 0.01: (2.0, 4.0)}
    rows = [{"density": one, "sides": {"c": side(own), "d": side(dense)}} for one, (own, dense) in sides.items()]
    record = {"device": DEVICE, "workload": "gemm4096", "skipping": ["c"], "dense": ["d"], "rows": rows}
    found = sparse.read_software(written(tmp_path, "d.json", {"kind": "densities", "records": [record]}))
    (line,) = found.break_evens()
    level = found.break_even("condense", "gemm4096")
    assert line.points == ((level, level),)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="give records"):
        sparse.read_software(tmp_path / "absent.json")
    with pytest.raises(BrokenRecord, match="damaged"):
        sparse.read_software(written(tmp_path, "other.json", {"rounds": 3}))
    with pytest.raises(BrokenRecord, match="im2col"):
        sparse.read_lowering(written(tmp_path, "lowering.json", {"rows": [{}]}))


def test_lowering_is_over_dense(tmp_path: Path) -> None:
    times = {"dense": 2.0, "bitmap": 3.0, "csr_warp": 8.0, "csr_thread": 40.0}
    rows = [{"cell": "a", "sparsity": 0.5, "kernel": kernel, "microseconds": us} for kernel, us in times.items()]
    one = sparse.read_lowering(written(tmp_path, "im2col.json", {"gpu": DEVICE, "rows": rows}))
    assert one.rows == ((50.0, 1.5, 4.0, 20.0),)
    assert one.values["csr_thread_at_worst"] == 20.0
    rows += [{**row, "cell": cell, "microseconds": 2.0} for row in rows for cell in "bc"]
    several = sparse.read_lowering(written(tmp_path, "several.json", {"gpu": DEVICE, "rows": rows}))
    assert several.rows == ((50.0, 1.0, 1.0, 1.0),)  # the median of three layers
    assert several.values == {"csr_thread_at_worst": 20.0, "bitmap_at_worst": 1.5}  # of the worst one

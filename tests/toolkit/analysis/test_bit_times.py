"""Times by pairs of planes and by the distance of rows, as records of runs have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from subbyte.analysis.bit_times import read_plane_times, read_stride_times
from subbyte.errors import BrokenRecord, InvalidInput

DEVICE = {"name": "Test GPU", "sms": 1}


def side(name: str, first: float, second: float | None, **more: Any) -> dict[str, Any]:
    timed = {} if second is None else {"second": second}
    row = {"experiment": "A5", "point": "64", "side": name, "layer": f"gemm64x64x64:{name[:4]}", "output": "uint2"}
    return {**row, "wrong": 0, "microseconds": first, **timed, **more}


def written(path: Path, sides: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"schema": 1, "device": DEVICE, "date": "2026-11-23", "sides": sides}))
    return path


def test_times_follow_the_pairs_of_planes(tmp_path: Path) -> None:
    """The fastest exact kernel that was timed twice counts, by its slower median; sums are not on the line."""
    sides = [side("w1a1", 3.0, 2.0), side("w1a1", 2.5, None), side("w1a1", 9.0, 9.0), side("w1a1", 1.0, 1.0, wrong=4),
             side("w1a2", 4.0, 5.0), side("w1a2, mma", 7.0, 7.0), side("w2a2", 9.0, 9.0),
             side("w1a8", 40.0, 40.0, output="int32"), side("int4", 8.0, 8.0), side("w1a1", 1.0, 1.0, experiment="A1"),
             side("cuBLAS int8", 13.0, 13.0, output="int32")]  # fmt: skip
    (found,) = read_plane_times(written(tmp_path / "record.json", sides))
    assert [(one.precision, one.pairs, one.microseconds, one.codes) for one in found.rows] == [
        ("w1a1", 1, 3.0, True), ("w1a2", 2, 5.0, True), ("w2a2", 4, 9.0, True), ("w1a8", 8, 40.0, False)]  # fmt: skip
    assert found.line == pytest.approx((1.0, 2.0))
    assert found.crossing("int4") == pytest.approx(3.5)
    assert found.crossing("cuBLAS int8") == pytest.approx(6.0)
    assert found.title() == "gemm64x64x64 on Test GPU: time by pairs of planes"
    assert "w1a8" in found.text()
    with pytest.raises(InvalidInput, match="'fp8' did not run at 64: expected one of int4, cuBLAS int8"):
        found.crossing("fp8")


def test_what_holds_no_sweep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    with pytest.raises(InvalidInput, match="no times by precision"):
        read_plane_times(written(path, [side("w1a1", 1.0, 1.0, experiment="T3")]))
    with pytest.raises(BrokenRecord, match="fewer than two pairs of planes give codes"):
        read_plane_times(written(path, [side("w1a1", 1.0, 1.0)]))
    with pytest.raises(BrokenRecord, match="no record of these times"):
        read_stride_times(path)
    with pytest.raises(InvalidInput, match=r"record .*none\.json"):
        read_stride_times(tmp_path / "none.json")


def test_loads_by_memory_and_distance(tmp_path: Path) -> None:
    loads = [{"space": space, "ldm": ldm, "cycles": float(ldm)} for space in ("shared", "L2") for ldm in (128, 256)]
    path = tmp_path / "strides.json"
    path.write_text(json.dumps({"device": DEVICE, "date": "2026-11-23", "loads": loads}))
    found = read_stride_times(path)
    assert found.cycles == {"shared": {128: 128.0, 256: 256.0}, "L2": {128: 128.0, 256: 256.0}}
    assert found.table().rows == ((128, 128.0, 128.0), (256, 256.0, 256.0))

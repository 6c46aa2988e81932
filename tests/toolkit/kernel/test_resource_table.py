"""The table of resources: made in three steps, continued after an interruption, and refused when it should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import resource_table as tool

from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.families.mma.space import Space

WORKLOAD = "n8h7w7c32k32r1s1p0"


def _few(arch: str) -> Space:
    """A space of a handful of configurations, with the paper's knobs but fewer values."""
    whole = space(WORKLOAD, arch)
    knobs = {**whole.knobs, "warp_row_tiles": (1, 4), "warp_col_tiles": (1, 2), "chunk": (1,), "reorder_inner": (0,)}
    return replace(whole, knobs={**knobs, "blk_row_warps": (1,), "blk_col_warps": (1, 2)})


def _row(one: Space, index: int, **changed: int) -> dict[str, Any]:
    numbers = {"registers": 64, "stack": 0, "spill": 0, "shared": 4096, "blocks_per_sm": 4}
    return {"workload": one.workload.spec, "arch": one.arch.name, "index": index, **numbers, **changed}


def _table(path: Path, one: Space, rows: list[dict[str, Any]], **changed: Any) -> Path:
    head = {"schema": 1, "kind": one.kind, "spaces": {one.workload.spec: {one.arch.name: one.hash}}, **changed}
    tool.save_table(path, head, rows)
    return path


@pytest.fixture
def good(tmp_path: Path) -> tuple[Space, list[dict[str, Any]], Path]:
    """A space, its complete rows and a place for a table."""
    one = _few("sm_80")
    assert len(one.valid) >= 4
    return one, [_row(one, index) for index in one.valid], tmp_path / "table.csv.gz"


Good = tuple[Space, list[dict[str, Any]], Path]


def test_complete_table_is_accepted(good: Good) -> None:
    one, rows, path = good
    assert tool.violations(_table(path, one, rows), [one]) == []
    assert tool.load_table(path)[1] == rows


@pytest.mark.parametrize("field", ["stack", "spill"])
def test_local_memory_is_refused(good: Good, field: str) -> None:
    one, rows, path = good
    rows[1][field] = 8
    (problem,) = tool.violations(_table(path, one, rows), [one])
    assert problem == f"{WORKLOAD} sm_80 {one.valid[1]} uses local memory"


def test_block_that_fits_no_multiprocessor_is_refused(good: Good) -> None:
    one, rows, path = good
    rows[0]["blocks_per_sm"] = 0
    (problem,) = tool.violations(_table(path, one, rows), [one])
    assert "fits no multiprocessor" in problem


def test_missing_configuration_is_refused(good: Good) -> None:
    one, rows, path = good
    (problem,) = tool.violations(_table(path, one, rows[:-1]), [one])
    assert problem == f"{WORKLOAD} sm_80 {one.valid[-1]} is offered, but not in the table"


def test_table_of_another_space_is_refused(good: Good) -> None:
    one, rows, path = good
    other = replace(one, knobs={**one.knobs, "chunk": (1, 2)})
    assert "another space" in tool.violations(_table(path, one, rows), [other])[0]
    assert "another space" in tool.violations(path, [_few("sm_86")])[0]
    assert "another space" in tool.violations(_table(path, one, rows, kind="extended"), [one])[0]


def test_many_violations_are_counted(good: Good) -> None:
    one, rows, path = good
    found = tool.violations(_table(path, one, [{**row, "spill": 4} for row in rows] * 3), [one])
    assert len(found) == tool.SHOWN + 1
    assert found[-1] == f"{3 * len(rows) - tool.SHOWN} more: uses local memory"


def test_damaged_table_is_refused(good: Good, capsys: pytest.CaptureFixture[str]) -> None:
    one, rows, path = good
    _table(path, one, rows)
    path.write_bytes(path.read_bytes()[:-20])
    assert tool.main(["--check", "--file", str(path)]) == 2
    assert "is no table of resources" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="schema 7"):
        tool.load_table(_table(path, one, rows, schema=7))
    assert tool.main(["--check", "--file", str(path.parent / "none.csv.gz")]) == 2


def test_check_says_what_is_wrong_and_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = space(WORKLOAD, "sm_80")
    rows = [_row(one, index) for index in one.valid]
    path = _table(tmp_path / "table.csv.gz", one, rows)
    arguments = ["--check", "--file", str(path), "--workloads", WORKLOAD, "--archs"]
    assert tool.main([*arguments, "sm_80"]) == 0
    assert capsys.readouterr().err == ""
    assert tool.main([*arguments, "sm_80", "sm_75"]) == 1
    assert "sm_75" in capsys.readouterr().err


def test_committed_table() -> None:
    """Every configuration that is offered for the paper's layers, on every architecture, runs from registers."""
    assert tool.main(["--check"]) == 0


# ---- the steps ------------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_texts_compile_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated here, compiled in a process that has no TVM, interrupted, continued, collected."""
    spaces = [_few("sm_80"), _few("sm_86")]
    whole = space(WORKLOAD, "sm_80")
    # The steps know a configuration by its index in the whole space, so the small spaces offer a few of its indices.
    chosen = tuple(whole.index(spaces[0].config(index)) for index in spaces[0].valid[:3])
    for arch in ("sm_80", "sm_86"):
        monkeypatch.setitem(_Few.offered, arch, chosen)
    few = [_Few(s.workload, s.arch, s.kind, s.knobs, s.fixed) for s in (whole, space(WORKLOAD, "sm_86"))]
    tool.write_texts(tmp_path, few, 1)
    (path,) = tmp_path.glob("*.jsonl.xz")
    before = path.stat().st_mtime_ns
    _, *lines = tool._lines(path)
    assert sorted(use for line in lines for use in map(tuple, line["uses"])) == sorted(
        (arch, index) for arch in ("sm_80", "sm_86") for index in chosen
    )
    assert all(len({arch for arch, _ in line["uses"]}) == 2 for line in lines)
    tool.write_texts(tmp_path, few, 1)
    assert path.stat().st_mtime_ns == before

    _compile_without_tvm(tmp_path)
    resources = tmp_path / f"{WORKLOAD}.resources.jsonl"
    rows = tool.read_rows(resources)
    assert len(rows) == 2 * len(chosen)
    text = resources.read_text()
    resources.write_text(text[: len(text) * 2 // 3])
    with pytest.raises(InvalidInput, match="not compiled yet"):
        tool.write_table(tmp_path, "paper", tmp_path / "table.csv.gz")
    kept = len(tool.read_rows(resources))
    assert 0 < kept < len(rows)
    _compile_without_tvm(tmp_path)
    assert sorted(tool.read_rows(resources), key=json.dumps) == sorted(rows, key=json.dumps)

    table = tmp_path / "table.csv.gz"
    assert tool.write_table(tmp_path, "paper", table) == len(rows)
    assert tool.violations(table, few) == []
    head, written = tool.load_table(table)
    assert head["spaces"] == {WORKLOAD: {one.arch.name: one.hash for one in few}}
    assert all(16 <= row["registers"] <= 255 and row["shared"] > 0 for row in written)


class _Few(Space):
    """A space that offers only some of its configurations."""

    offered: dict[str, tuple[int, ...]] = {}  # noqa: RUF012

    @property
    def valid(self) -> tuple[int, ...]:
        return self.offered[self.arch.name]


def _compile_without_tvm(folder: Path) -> None:
    """``--compile`` where importing TVM fails."""
    blocked = folder / "blocked"
    for name in ("tvm", "tvm_ffi"):
        (blocked / name).mkdir(parents=True, exist_ok=True)
        (blocked / name / "__init__.py").write_text("raise ImportError('there is no TVM here')\n")
    paths = [str(blocked), *filter(None, sys.path)]
    run = subprocess.run(
        [sys.executable, tool.__file__, "--compile", str(folder), "--workers", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert run.returncode == 0, run.stderr


def test_configurations_of_other_spaces_stay_listed(tmp_path: Path) -> None:
    one, target = _few("sm_80"), tmp_path / "spills.json"
    mine = one.config(one.valid[0]).key
    listed = {WORKLOAD: {"sm_80": [mine, f"{mine}-st3"], "sm_75": [mine]}, "n1": {"sm_80": [mine]}}
    target.write_text(json.dumps(listed))
    left = tool.outside(target, {(WORKLOAD, "sm_80"): one})
    assert left == {WORKLOAD: {"sm_80": [f"{mine}-st3"], "sm_75": [mine]}, "n1": {"sm_80": [mine]}}
    left["n1"]["sm_80"] = []
    tool.write_spills(target, left)
    assert set(json.loads(target.read_text())) == {WORKLOAD}
    assert tool.outside(tmp_path / "none.json", {}) == {}

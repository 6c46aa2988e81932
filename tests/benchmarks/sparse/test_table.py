"""Times beside goals: one beyond what the instruction allows is 80 % of it; no GPU is measured by another's rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.command import ROOT
from benchmarks.sparse.table import RATES, SHARE, ceilings, rows
from benchmarks.sparse.texts import main as texts
from subbyte.errors import InvalidInput

CELL, KERNEL = "resnet50.stage5@256", "wg24-tw7-tr2-cm1-cr2-sg1-cg8-st3-rr3-la1-sta0-ig2-ls1-res0"


def record(name: str) -> dict[str, Any]:
    kernels = [{"cell": CELL, "config": key, "wrong": 0, "refused": None} for key in ("dense", KERNEL)]
    rounds = [{"cell": CELL, "config": "dense", "dense": True, "median": 34.0, "ratio": 1.0},
              {"cell": CELL, "config": KERNEL, "dense": False, "median": 25.0, "ratio": 1.36}]  # fmt: skip
    return {"gpus": [{"name": name}], "kernels": kernels, "rounds": rounds}


def test_a_goal_is_what_the_fastest_width_allows(tmp_path: Path) -> None:
    rates = tmp_path / "atoms.json"
    tops = {64: 2000.0, 128: 2500.0, 256: 4000.0}
    atoms = [{"atom": f"s8.wgmma.sp.m64n{n}k64.streamed", "tops": one} for n, one in tops.items()]
    rates.write_text(json.dumps({"device": {"name": "a GPU"}, "atoms": atoms}))
    of_width, fastest = ceilings(CELL, KERNEL, rates)
    operations = 2 * 256 * 7 * 7 * 512 * 512 * 9
    assert fastest == pytest.approx(operations / 4000 / 1e6)
    assert of_width == pytest.approx(operations / (2000 + 500 * 48 / 64) / 1e6)  # 112 columns, between 64 and 128
    (line,) = rows([record("a GPU")], rates)[2:]
    allowed = operations / 4000 / 1e6 / SHARE
    assert f"| 1.36 | {of_width:.1f} | {of_width / 25:.0%} | {allowed:.1f} | 22.0 | no, 13.6% above |" in line
    atoms[-1]["tops"] = 3000.0
    slower = tmp_path / "slower.json"
    slower.write_text(json.dumps({"device": {"name": "a GPU"}, "atoms": atoms}))
    allowed = operations / 3000 / 1e6 / SHARE  # above the project's goal, which the ceiling does not allow
    assert (
        f"| {allowed:.1f} | {allowed:.1f} (22.0) | no, {25 / allowed - 1:.1%} above |"
        in rows([record("a GPU")], slower)[2]
    )
    within = record("a GPU")
    within["rounds"][1]["median"] = 22.0
    assert "| 22.0 | yes |" in rows([within], rates)[2]
    with pytest.raises(InvalidInput, match="records of another GPU beside rates of a GPU"):
        rows([record("another GPU")], rates)


def test_ways_of_the_second_campaign_are_of_its_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "texts.jsonl"
    assert texts([str(out), "--later", "--cells", "resnet50.stage4@256"]) == 2
    assert "--later is of 2:4 weights" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.deep
def test_the_note_holds_what_the_command_prints() -> None:
    note = (ROOT / "benchmarks" / "notes" / "sparse_kernels.md").read_text(encoding="utf-8")
    for names, source in ((("stages-h200-2026-11-23", "neighbours-h200-2026-11-23"), RATES),
                          (("later-h100-2026-11-26", "later-again-h100-2026-11-26"),
                           RATES.with_name("atoms-h100-2026-11-26.json"))):  # fmt: skip
        records = [json.loads((RATES.with_name(f"{name}.json")).read_text(encoding="utf-8")) for name in names]
        assert "\n".join(rows(records, source)) in note

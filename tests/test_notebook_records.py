"""The recorded runs of the notebooks on a GPU: complete, without errors, and what they differ in is stated."""

from __future__ import annotations

import atexit
import copy
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import notebook_records
import notebook_watch
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from notebooks import FOLDER, normal_form

import subbyte
from subbyte.kernel import execute
from subbyte.measure.replay import ReplayRunner
from subbyte.tune.study import Study

RECORDS = notebook_records.read()
README = (notebook_records.RECORDS / "README.md").read_text()


def test_every_notebook_has_a_record_or_the_table_says_that_it_has_none() -> None:
    missing = [path.stem for path in sorted(FOLDER.glob("*.ipynb")) if path.name not in RECORDS]
    assert [stem for stem in missing if f"| {stem} | not recorded |" not in README] == []
    assert len(RECORDS) >= 9


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_ran_on_a_gpu_without_an_error(name: str) -> None:
    path, notebook, facts = RECORDS[name]
    assert notebook_records.problems(notebook, facts) == []
    assert path.name.startswith(Path(name).stem)
    assert notebook_records.card(facts["device"]) in path.name


def test_the_file_name_of_a_record_names_the_card() -> None:
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "Tesla T4", "NVIDIA Thing")
    assert [notebook_records.card(name) for name in names] == ["h200", "h100", "4090", "t4", "thing"]


def test_what_was_timed_has_its_samples() -> None:
    timed = [one for _, _, facts in RECORDS.values() for one in facts["timings"]]
    trials = [one for _, _, facts in RECORDS.values() for study in facts["studies"] for one in study["trials"]]
    assert timed
    assert trials
    assert all(one["clocks"]["before"]["sm_mhz"] for one in timed)
    assert all(one["samples"] and one["verified"] for one in trials if one["ok"])


def test_the_table_states_every_record_and_every_difference() -> None:
    assert notebook_records.with_table(README) == README, "run `python tools/notebook_records.py table`"


def ran(*cells: dict) -> dict:
    notebook = new_notebook(cells=list(cells))
    return json.loads(json.dumps(notebook))


def cell(source: str, *outputs: dict) -> dict:
    return new_code_cell(source, execution_count=1, outputs=list(outputs))


FACTS = {"device": "NVIDIA H200", "driver": "1.0", "date": "2026-11-20", "seconds": 1.0, "versions": {"python": "3"}}
TIMING = {"configuration": "brw1", "samples": [4.0, 4.1, 4.2], "microseconds": 4.1}


def test_a_good_record_passes() -> None:
    good = ran(cell("1 + 1", new_output("execute_result", {"text/plain": "2"}, execution_count=1)))
    assert notebook_records.problems(good, {**FACTS, "timings": [TIMING]}) == []


@pytest.mark.parametrize(
    ("output", "facts", "words"),
    [
        (new_output("error", ename="ValueError", evalue="", traceback=[]), {}, "cell 0 raised ValueError"),
        (new_output("stream", text="no GPU here: x"), {}, "cell 0 says 'no GPU here'"),
        (new_output("display_data", {"text/plain": "not timed here: x"}), {}, "cell 0 says 'not timed here'"),
        (new_output("stream", text="fine"), {"device": ""}, "no device is named"),
        (new_output("stream", text="fine"), {"timings": [{**TIMING, "microseconds": 9.0}]}, "not that of its samples"),
    ],
)
def test_a_bad_record_is_refused(output: dict, facts: dict, words: str) -> None:
    found = notebook_records.problems(ran(cell("f()", output)), {**FACTS, **facts})
    assert len(found) == 1
    assert words in found[0]


def test_a_cell_that_did_not_run_is_refused() -> None:
    assert notebook_records.problems(ran(new_code_cell("1")), FACTS) == ["cell 0 did not run"]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (("a", "b"), "the same"),
        (("a", "c"), "new or changed since: 2; replaced: 2 of the record"),
        (("a", "b", "c"), "new or changed since: 3"),
        (("b",), "new or changed since: none; replaced: 1 of the record"),
    ],
)
def test_changed_cells_are_named(now: tuple[str, ...], words: str) -> None:
    committed = ran(*[cell(source) for source in now])
    assert notebook_records.changed_cells(ran(cell("a"), cell("b")), committed) == words


def test_a_record_keeps_the_picture_and_leaves_its_copies_out() -> None:
    picture = {"image/svg+xml": "<svg/>", "text/html": "<p>", "text/plain": "x", "application/vnd.plotly.v1+json": {}}
    alone = {"text/html": "<table>", "text/plain": "y"}
    notebook = ran(cell("v", new_output("display_data", picture)), cell("t", new_output("display_data", alone)))
    notebook["cells"][0]["execution_count"] = 2
    slim = notebook_records.record_form(copy.deepcopy(notebook))
    assert [cell["execution_count"] for cell in slim["cells"]] == [1, 2]
    assert sorted(slim["cells"][0]["outputs"][0]["data"]) == ["image/svg+xml", "text/plain"]
    assert sorted(slim["cells"][1]["outputs"][0]["data"]) == sorted(alone)
    assert slim["metadata"] == normal_form(notebook, charts=False)["metadata"]


def test_what_cells_time_and_tune_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    at_end: list[Callable[[], object]] = []
    measured = {name: name for name in (*notebook_watch.KEPT, "protocol")}
    monkeypatch.setattr(atexit, "register", at_end.append)
    monkeypatch.setattr(execute, "time", lambda kernel, *rest: SimpleNamespace(to_dict=lambda: measured))
    monkeypatch.setattr(Study, "run", Study.run)
    notebook_watch.watch(str(tmp_path / "raw.json"))

    layer = subbyte.workload("resnet50.stage2@8")
    execute.time(SimpleNamespace(workload=layer, config=subbyte.MmaConfig(), arch="sm_90a"), None, "auto", 0)
    runner = ReplayRunner("resnet50.stage2@8")
    Study(subbyte.space(layer, "sm_90a"), "random", seed=1).run(runner, trials=2)  # replayed, not measured here
    monkeypatch.setattr(runner, "device", {**runner.device, "runner": "cuda"})
    Study(subbyte.space(layer, "sm_90a"), "random", seed=2).run(runner, trials=3)
    at_end[0]()

    found = json.loads((tmp_path / "raw.json").read_text())
    (timing,) = found["timings"]
    assert timing["workload"] == layer.spec
    assert timing["samples"] == "samples"
    assert "protocol" not in timing
    (study,) = found["studies"]
    assert study["seed"] == 2
    assert [sorted(trial) for trial in study["trials"]].count(sorted(study["trials"][0])) == 3
    assert all(trial["microseconds"] > 0 and "device" not in trial for trial in study["trials"])

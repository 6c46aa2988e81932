"""The judging race's program on a small landscape, and its tables from made-up records."""

from __future__ import annotations

import multiprocessing.dummy
from dataclasses import replace

import numpy as np
import pytest

import subbyte
from benchmarks.paper import race_table as tables
from benchmarks.paper import table
from subbyte.analysis import LandscapeFacts, Race, Run
from subbyte.errors import BrokenRecord
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Landscape


@pytest.fixture
def search_race():
    pytest.importorskip("kernel_tuner")
    pytest.importorskip("optuna")
    from benchmarks.paper import race

    return race


@pytest.mark.deep
def test_the_race_keeps_complete_seeds_only(search_race, tmp_path, monkeypatch, capsys):
    space = subbyte.space("n8h7w7c64k64r3s3p1")
    results = FakeRunner().run(space.workload, [space.config(index) for index in space.valid])
    made = Landscape.from_results(space, dict(zip(space.valid, results, strict=True)), {"name": "Some GPU"})
    file = made.save(tmp_path / "small.json.gz")
    arguments = ["--landscapes", str(file), "--trials", "12", "--workers", "1", "-o", str(tmp_path / "out")]
    who = ["random", search_race.GENETIC, search_race.TPE]
    with monkeypatch.context() as here:  # threads know at once what processes first import for seconds
        here.setattr(search_race, "get_context", lambda kind: multiprocessing.dummy)
        assert search_race.main([*arguments, "--participants", *who, "--seeds", "2"]) == 0
    race = Race.load(tmp_path / "out" / "small.json.gz")
    assert race.participants == tuple(who)
    assert [(run.seed, run.participant) for run in race.runs] == [(seed, name) for seed in (0, 1) for name in who]
    assert {run.evaluated for run in race.runs} == {12}
    assert "kernel-tuner" in race.versions
    assert search_race.main([*arguments, "--participants", *who, "--seeds", "2", "--limit", "-1"]) == 1
    assert "0 of 2 seeds are complete" in capsys.readouterr().out
    with monkeypatch.context() as here:
        here.setattr(search_race, "get_context", lambda kind: multiprocessing.dummy)
        assert search_race.main([*arguments, "--participants", "autotvm", "random", "--seeds", "1"]) == 0
    again = Race.load(tmp_path / "out" / "small.json.gz")  # what others did is kept
    assert again.participants == ("random", "autotvm", *who[1:])
    assert [run.seed for run in again.runs_of("small", "random")] == [0]
    assert again.runs_of("small", search_race.TPE)[1].to_dict() == race.runs_of("small", search_race.TPE)[1].to_dict()
    with pytest.raises(BrokenRecord, match="another landscape or number of trials"):
        search_race.joined(made_up("n8h7w7c64k64r3s3p1", "paper"), again)
    assert search_race.main(["--landscapes", "nowhere", "-o", str(tmp_path)]) == 2


def test_a_race_that_goes_on_keeps_the_seeds_before(search_race):
    """Seeds 3 and 4 of two searches beside 0 to 2; run anew, those from the first one on give way."""
    whole = made_up("resnet50.stage2@8", "paper", seeds=5)
    names = ("auto", "random")
    former = replace(whole, runs=tuple(run for run in whole.runs if run.seed < 3 or run.participant not in names))
    more = replace(whole, participants=names, runs=tuple(
        run for run in whole.runs if run.seed >= 3 and run.participant in names
    ))  # fmt: skip
    assert search_race.joined(more, former, 3).runs_of(whole.landscapes[0].name, "auto") == whole.runs_of(
        whole.landscapes[0].name, "auto"
    )
    assert {run.seed for run in search_race.joined(more, whole).runs if run.participant == "auto"} == {3, 4}
    assert sorted(run.seed for run in search_race.joined(more, whole, 3).runs if run.participant == "auto") == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip


def made_up(workload, kind, trials=200, seeds=8):
    """A record in which `auto` is far ahead and everybody else alike."""
    facts = LandscapeFacts(f"{workload}.{kind}", workload, "spec", "H200", "sm_90a", kind, "0", 900, 0, 10.0)
    others = "auto:prior=off" if kind != "foreign" else "auto:wide=0"
    names = ("auto", others, *tables.BASELINES, "diverse", *tables.CONTROLS)
    runs = []
    for name in names:
        rng = np.random.default_rng(0)
        for seed in range(seeds):
            end = (0.95 if name == "auto" else 0.8) + rng.normal(0, 0.001)
            runs.append(Run(facts.name, name, seed, tuple([10.0 / end] * trials), trials, 0))
    return Race((facts,), names, trials, tuple(runs), versions={"xgboost": "3.2"})


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "races" / "foreign").mkdir(parents=True)
    made_up("convolution_milo-a100", "foreign").save(tmp_path / "races" / "foreign" / "a100.json.gz")
    for workload, kind in (("resnet50.stage2@8", "paper"), ("resnet50.stage4@8", "paper"),
                           ("resnet50.stage5@8", "paper"), ("resnet50.stage5@8", "extended")):  # fmt: skip
        made_up(workload, kind).save(tmp_path / "races" / f"{workload}.{kind}.json.gz")
    readme = tmp_path / "README.md"
    others = "\n".join([*table.LANDSCAPES, *table.EVIDENCE])
    readme.write_text(f"before\n{table.RACE[0]}\nold\n{table.RACE[1]}\nafter\n{others}\n")
    monkeypatch.setattr(table, "landscapes", lambda: "none")
    return ["--readme", str(readme), "--results", str(tmp_path)], readme


def test_tables_are_computed_from_the_records(place, capsys):
    arguments, readme = place
    assert table.main([*arguments, "--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert table.main(arguments) == 0
    assert table.main([*arguments, "--check"]) == 0
    text = readme.read_text()
    assert text.startswith("before\n")
    assert "\nold\n" not in text
    assert f"{table.RACE[1]}\nafter\n" in text
    assert text.count("| resnet50.stage2@8, paper (seen) | 25 | 0.950 | **+18.") == 1
    assert text.count("| 2 judged of the paper space | 100 | 0.950 | **+18.") == 1
    assert text.count("| resnet50.stage5@8, extended | 200 |") == 2  # with the prior, and without it
    assert "`auto:prior=off`: its fraction" in text
    assert "| convolution_milo-a100.foreign | 50 | 0.950 | **+18." in text
    assert "diverse against autotvm on 3 landscapes of the judged set, 8 seeds, 200 trials: equivalent" in text
    assert "| `diverse:measure=score` | 3 judged together |" in text
    assert text.count("| `auto` |") == 7  # two heads, and its standing on each


@pytest.mark.deep
def test_tables_without_records_or_markers(place, tmp_path, capsys):
    arguments, readme = place
    (tmp_path / "none").mkdir()
    assert table.main([*arguments[:2], "--results", str(tmp_path / "none")]) == 0
    assert "No race has been recorded yet" in readme.read_text()
    readme.write_text("no markers")
    assert table.main(arguments) == 2
    assert "once each" in capsys.readouterr().err

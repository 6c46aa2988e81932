"""Optuna's samplers as a strategy."""

from __future__ import annotations

import sys

import pytest

import subbyte
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.records.recorded_space import space_of
from subbyte.records.result import Failed, Measured
from subbyte.tune import Study, make_strategy
from subbyte.tune.strategy import STRATEGIES


def test_without_optuna_the_extra_is_named(toy, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependency, match=r"subbyte\[optuna\]"):
        make_strategy("optuna", toy, 0)


@pytest.fixture
def small():
    """A foreign space of 24 combinations, 16 of them recorded, two of which failed."""
    from subbyte.records.exchange import from_rows

    rows = [
        {"block": block, "kind": kind, "pad": pad, "one": 1, "microseconds": 1.0 + block if block != 5 else None}
        for block in range(6) for kind in ("x", "y") for pad in (0, 1) if (block + pad + (kind == "x")) % 3
    ]  # fmt: skip
    return from_rows(rows, "kernel")


@pytest.mark.sample("nsga2")
@pytest.mark.parametrize("text", ["optuna", "optuna:sampler=random", "optuna:sampler=nsga2:knobs=ordered"])
def test_a_space_is_searched_to_its_end_without_a_repeat(small, text):
    pytest.importorskip("optuna")
    study = Study(space_of(small), text, seed=1)
    record = study.run(ReplayRunner(small), batch=5)
    assert record.ended == "exhausted"
    assert sorted(trial.index for trial in record.trials) == list(small.results)
    assert record.failures == {"crash": 2}
    assert study.strategy.rejected["refused"] > 0
    assert study.strategy.rejected["repeated"] > 0


@pytest.mark.deep
def test_the_seed_decides(toy):
    pytest.importorskip("optuna")
    orders = [
        [trial.index for trial in Study(toy, "optuna", seed=seed).run(FakeRunner(), 40).trials] for seed in (3, 3, 4)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_a_study_is_resumed(toy, tmp_path):
    pytest.importorskip("optuna")
    with Study(toy, "optuna", log=tmp_path / "log") as study:
        study.run(FakeRunner(), 24)
    with Study(toy, "optuna", log=tmp_path / "log", resume=True) as study:
        resumed = [trial.index for trial in study.run(FakeRunner(), 45).trials]
    assert resumed == [trial.index for trial in Study(toy, "optuna").run(FakeRunner(), 45).trials]


def test_it_learns(toy):
    """After 20 results the proposals are faster than the average configuration."""
    pytest.importorskip("optuna")
    runner = FakeRunner(noise=0.0)
    times = [trial.microseconds for trial in Study(toy, "optuna", seed=1).run(runner, 50, batch=1).trials]
    everything = [result.microseconds for result in runner.run(toy.workload, [toy.config(i) for i in toy.valid])]
    assert sum(times[20:]) / 30 < 0.9 * sum(everything) / len(everything)


def test_results_it_did_not_ask_for_are_taken(toy):
    pytest.importorskip("optuna")
    strategy = make_strategy("optuna", toy, 0)
    told = list(toy.valid[:50])
    for index in told:
        strategy.tell(index, Measured(5.0) if index % 2 else Failed("timeout", "slow"))
    asked = strategy.ask(10)
    assert len(set(asked)) == 10
    assert not set(asked) & set(told)


def test_it_tunes_a_foreign_kernel(small):
    pytest.importorskip("optuna")
    report = subbyte.tune("kernel", strategy="optuna", trials=None, landscape=small)
    assert report.rows()[0]["fraction_of_optimum"] == 1.0


def test_unknown_samplers_are_refused(toy):
    with pytest.raises(InvalidInput, match="tpe"):
        make_strategy("optuna:sampler=tpee", toy, 0)
    assert "optuna" in STRATEGIES

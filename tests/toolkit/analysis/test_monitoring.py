"""The state of a study: columns that agree with the record, ranks and correlations by hand, what was never said."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from subbyte.analysis.monitoring import _predictions, failure_reason, study_state
from subbyte.families import space
from subbyte.measure.fake import FakeRunner
from subbyte.records.result import Measured
from subbyte.tune.search.kept import EVERY, Selection, SelectionLog
from subbyte.tune.search.quality import Proposal
from subbyte.tune.study import Study

LAYER = "n8h14w14c64k64r3s3p1"


@pytest.fixture
def study() -> Study:
    return Study(space(LAYER, "sm_90a"), "genetic:population=10", seed=1)


def test_columns_agree_with_the_record(study: Study) -> None:
    record = study.run(FakeRunner(failures={"wrong": 0.2}), trials=50)
    state = study_state(study)
    assert state.title() == f"{record.workload.label}, genetic:population=10, seed 1"
    assert state.failures == record.curve.failures
    assert state.best_microseconds[-1] == round(record.best_microseconds or 0, 4)
    assert state.best_number == record.best.number if record.best else False
    assert state.outcomes == {"measured": 50 - sum(record.failures.values()), **record.failures}
    assert max(state.speeds) == 1.0
    assert [speed == 0 for speed in state.speeds] == [time is None for time in state.microseconds]
    assert state.origins.count("random") == 10
    for place, trial in enumerate(record.trials):
        for knob, digit in zip(state.knobs, state.digits[place], strict=True):
            assert knob.values[int(digit, 36)] == str(getattr(trial.config, knob.name))
    assert all(sum(knob.tried) == 50 for knob in state.knobs)
    assert state.covered[0] <= state.covered[1] == sum(len(values) for values in study.space.knobs.values())
    assert len(state.table().rows) == 50
    assert json.loads(state.to_json())["numbers"] == list(range(50))
    failed = next(trial for trial in record.trials if trial.microseconds is None)
    assert failure_reason(failed).startswith("wrong: ")


def test_an_empty_study_and_a_record_have_a_state(study: Study) -> None:
    empty = study_state(study)
    assert (empty.numbers, empty.best_number, empty.typical_correlation, empty.readings) == ((), None, None, ())
    record = study.run(FakeRunner(), trials=5)
    read = study_state(record)
    assert read.microseconds == study_state(study).microseconds
    assert set(read.origins) == {""}
    assert read.selection is None


def test_places_and_correlations_by_hand() -> None:
    found = [Proposal("plan", 3.0, 1), None, Proposal("plan", 1.0, 1), Proposal("random", 1.0, 1), Proposal("start"),
             Proposal("plan", 9.0, 2), Proposal("plan", 2.0, 3), Proposal("plan", 4.0, 3)]  # fmt: skip
    shares, models = _predictions(found, [1.0, 0.3, 0.5, 0.2, 0.1, 0.9, 0.8, 0.4])
    assert shares == [1.0, None, 0.25, 0.25, None, 0.5, 0.0, 1.0]
    assert [(model.fit, model.trials) for model in models] == [(1, 3), (2, 1), (3, 2)]
    # Ranks of the scores 3, 1, 1 are 3, 1.5, 1.5, of the speeds 3, 2, 1: correlation sqrt(3) / 2.
    assert models[0].spearman == pytest.approx(0.866, abs=1e-3)
    assert models[1].spearman is None
    assert models[2].spearman == -1.0


def test_readings_are_those_that_came_with_the_results(study: Study) -> None:
    clocks = [{"after": {"sm_mhz": 1980, "power_watts": 300.04, "throttle": []}},
              {"before": {"sm_mhz": 1700, "throttle": ["power cap"]}}, {}]  # fmt: skip
    for trial, read in zip(study.ask(3), clocks, strict=True):
        study.tell(trial, Measured(5.0, clocks=read))
    state = study_state(study)
    assert [(r.name, r.values, r.low, r.high) for r in state.readings] == [
        ("SM clock", (1980, 1700, None), 1700, 1980), ("power", (300.0, None, None), 300.0, 300.0),
    ]  # fmt: skip
    assert state.throttled == 1


@pytest.mark.deep
def test_scores_are_those_of_the_fit_that_proposed() -> None:
    for name in ("autotvm", "auto:smooth=50"):
        study = Study(space(LAYER, "sm_90a"), name, seed=1)
        study.run(FakeRunner(), trials=64)
        proposals = study.strategy.proposals
        assert set(proposals) >= {trial.index for trial in study.trials}
        last = max(proposals[trial.index].fit for trial in study.trials)
        judged = [trial.index for trial in study.trials if proposals[trial.index].fit == last]
        scores = study.strategy.scores(np.array(judged)).tolist()
        assert scores == pytest.approx([proposals[index].score for index in judged])
        assert study_state(study).judged
    assert {one.origin for one in proposals.values()} == {"start", "model", "neighbour", "unseen"}


def test_the_selection_is_noted_by_hand() -> None:
    dims = np.array([2, 3])
    grid = SimpleNamespace(dims=dims, digits=lambda found: np.asarray(found)[:, None] // np.array([1, 2]) % dims)
    log = SelectionLog(grid)  # type: ignore[arg-type]
    parents, mutants = np.array([0, 1]), np.array([2, 3, 2, 5])
    for turn in range(EVERY + 1):
        kept = np.array([True, True, False, False]) if turn == 0 else np.array([True, False, True, False])
        log.note(32, parents, mutants, kept)
    (one,) = log.plans
    assert (one.results, one.steps, one.mutants, one.kept) == (32, 2, 8, 4)
    assert one.proposed_values == ((4, 4), (0, 6, 2))
    assert one.kept_values == ((3, 1), (0, 4, 0))
    assert (one.copies, one.copies_kept) == (2, 1)
    # First step kept 2 and 3, which differ in one of two knobs; second step kept 2 twice.
    assert one.hamming_kept == pytest.approx((0.5 + 0.0) / 2)
    assert one.first == ((0, 2, True), (1, 3, True), (0, 2, False), (1, 5, False))
    assert Selection.of(32, [(parents, mutants, kept)], grid).to_dict()["steps"] == 1  # type: ignore[arg-type]


@pytest.mark.sample("pooled")
@pytest.mark.parametrize("scope", ["global", "parent", "pooled"])
def test_half_of_the_mutants_is_kept_in_every_scope(scope: str) -> None:
    study = Study(space(LAYER, "sm_90a"), f"diverse:scope={scope}", seed=1)
    study.run(FakeRunner(), trials=40)
    plans = study.strategy.selection.plans
    assert [plan.results for plan in plans] == [32]
    assert plans[0].kept * 2 == plans[0].mutants
    state = study_state(study)
    assert state.selection is not None
    shares = [share for knob in state.knobs for share in knob.kept if share is not None]
    assert shares
    assert all(0 <= share <= 1 for share in shares)

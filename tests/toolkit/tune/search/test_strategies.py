"""The searches on a space with plans and on a foreign table: contract, controls, and that they find more than luck."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from subbyte.families import space
from subbyte.records.result import Failed, Measured
from subbyte.tune.search.autotvm import submodular_pick
from subbyte.tune.search.grid import Grid, grid_of
from subbyte.tune.search.quality import ModelQuality
from subbyte.tune.strategy import STRATEGIES, make_strategy

LEARNING = ("auto", "autotvm", "diverse", "genetic")


def search(strategy, measure, trials, batch=8):
    """Indices in the order proposed, and the fastest time."""
    seen, best = [], float("inf")
    while len(seen) < trials and (asked := strategy.ask(min(batch, trials - len(seen)))):
        for index in asked:
            result = measure(index)
            strategy.tell(index, result)
            best = min(best, result.microseconds) if result.ok else best
        seen += asked
    return seen, best


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "batch"), [("auto", 32), ("autotvm", 5), ("diverse", 32), ("genetic", 5)])
def test_foreign_table_each_index_once_then_nothing(foreign, name, batch):
    foreign = type(foreign)((80, 176))
    strategy = make_strategy(name, foreign, seed=2)
    seen, _ = search(strategy, foreign.measure, 10_000, batch)
    assert sorted(seen) == list(foreign.valid)
    assert strategy.ask(3) == []


@pytest.mark.sample("autotvm")
@pytest.mark.parametrize("name", LEARNING)
def test_same_seed_same_search(foreign, name):
    first, _ = search(make_strategy(name, foreign, 4), foreign.measure, 80)
    again, _ = search(make_strategy(name, foreign, 4), foreign.measure, 80)
    other, _ = search(make_strategy(name, foreign, 5), foreign.measure, 80)
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", LEARNING)
def test_nothing_but_failures_is_survived(foreign, name):
    seen, best = search(make_strategy(name, foreign, 1), lambda index: Failed("build", "no"), 90)
    assert len(set(seen)) == 90
    assert best == float("inf")


@pytest.mark.sample("genetic")
@pytest.mark.parametrize("name", LEARNING)
def test_finds_more_than_random(foreign, name):
    def mean(which):
        return np.mean([search(make_strategy(which, foreign, seed), foreign.measure, 72)[1] for seed in range(3)])

    assert mean(name) < mean("random")


def test_autotvm_plans_31_and_draws_1(foreign):
    strategy = make_strategy("autotvm:loss=reg", foreign, 0)
    search(strategy, foreign.measure, 32)
    asked = strategy.ask(32)
    plan = strategy._plan
    assert len(plan) == 32
    assert asked[:31] == plan[:31]
    assert plan == sorted(plan, key=lambda index: -strategy.scores(np.array([index]))[0])


def test_autotvm_refits_after_every_plan_of_results(foreign):
    strategy = make_strategy("autotvm:plan=16", foreign, 0)
    fits = []
    for _ in range(7):
        search(strategy, foreign.measure, 8)
        fits.append(strategy._fits)
    assert fits == [0, 0, 1, 1, 2, 2, 3]
    assert len(strategy.quality.batches) == 2
    batch = strategy.quality.batches[0]
    assert batch.model.count == 16
    assert 0 <= batch.model.recall[5] <= 1
    assert batch.distinctness.values[4] == 1
    assert batch.to_dict()["model"]["recall"].keys() == {"1", "5", "10"}


def test_short_plan_is_filled_up_at_random(foreign):
    strategy = make_strategy("autotvm", foreign, 0)
    search(strategy, foreign.measure, 64)
    asked = strategy.ask(32)
    planned = [index for index in asked if index in strategy._plan]
    assert len(asked) == 32
    assert all(strategy.scores(np.array(planned)) >= 0)


def test_scores_need_a_fit(foreign):
    with pytest.raises(ValueError, match="not been fitted"):
        make_strategy("autotvm", foreign, 0).scores(np.array([0]))


def test_built_in_filter_prefers_unseen_values():
    digits = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [2, 2]])
    assert submodular_pick(digits, 3) == [0, 3, 4]
    assert submodular_pick(digits, 5) == [0, 3, 4, 1, 2]


def test_filter_and_plan_features_run(foreign):
    for text in ("autotvm:filter=3:loss=reg", "autotvm:features=plan:loss=rank-native"):
        seen, _ = search(make_strategy(text, foreign, 0), foreign.measure, 70)
        assert len(set(seen)) == 70


def test_quality_on_a_held_out_set(foreign):
    strategy = make_strategy("autotvm:loss=reg", foreign, 0)
    seen, _ = search(strategy, foreign.measure, 129)
    rest = {index: foreign.measure(index) for index in foreign.valid if index not in seen}
    quality = ModelQuality.held_out(strategy.scores, rest)
    assert quality.count == len(rest)
    assert quality.spearman > 0.5
    assert set(quality.recall) == {1, 5, 10, 32}


def test_a_space_with_plans():
    layer = space("resnet50.stage5@8")
    strategy = make_strategy("autotvm:features=plan:loss=reg", layer, 0)
    seen, _ = search(strategy, lambda index: Measured(float(2 ** strategy._features([index])[0, -1])), 65, 32)
    assert set(seen) <= set(layer.valid)
    assert strategy._features.names[-1] == "estimate"
    assert strategy.quality.batches[0].model.count == 32


class Unlisted:
    """A product of 10^12 that nobody can enumerate; only its ``check`` says what exists."""

    arch, kind, hash = "sm_90a", "foreign", "unlisted"

    def __init__(self):
        self.knobs = {f"k{place}": tuple(range(10)) for place in range(12)}

    def __len__(self):
        return 10**12

    def check(self, index):
        return None if index % 3 == 0 else "no multiple of 3"

    @property
    def valid(self):
        raise AssertionError("enumerated")


@pytest.mark.deep
@pytest.mark.parametrize("name", LEARNING)
def test_a_space_too_large_to_list(name):
    def measure(index):
        return Measured(1.0 + sum(int(digit) for digit in str(index)))

    strategy, trials = make_strategy(name, Unlisted(), 0), 72
    if name in ("autotvm", "diverse"):  # each walker costs a look at every index that it meets: few, and a single plan
        strategy.annealing, trials = replace(strategy.annealing, points=32), 56
    seen, best = search(strategy, measure, trials)
    assert len(set(seen)) == trials
    assert all(index % 3 == 0 for index in seen)
    assert best < 35


def test_importing_the_tuner_loads_no_search():
    code = (
        "import sys, subbyte.tune as t; assert 'auto' in t.STRATEGIES; "
        "print(sorted(m for m in sys.modules if 'tune.search' in m or m in ('xgboost', 'subbyte_xgboost', 'scipy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
    assert {"auto", "autotvm", "diverse", "exhaustive", "genetic", "random"} <= set(STRATEGIES)


def test_grid_arithmetic(foreign):
    grid = Grid(foreign)
    rng = np.random.default_rng(0)
    assert (grid.indices(grid.digits(grid.valid)) == grid.valid).all()
    assert grid.is_valid(np.arange(len(foreign)), foreign).sum() == len(foreign.valid)
    around = grid.neighbours(foreign.valid[7])
    assert (grid.digits(around) != grid.digits([foreign.valid[7]])).sum(axis=1).tolist() == [1] * (5 + 2 + 3 + 1 + 2)
    mutants = grid.mutate(grid.valid, rng, foreign)
    assert grid.is_valid(mutants, foreign).all()
    assert ((grid.digits(mutants) != grid.valid_digits).sum(axis=1) == 1).all()
    assert sorted(grid.sample(10**6, rng, foreign, foreign.valid[:-3])) == list(foreign.valid[-3:])
    assert grid_of(foreign) is grid_of(type(foreign)())


def test_moves_from_the_table_are_as_likely_as_drawn_ones(foreign):
    """Every mutant of the table is one that drawing again finds, equally often; a lone point stays where it is."""
    listed, drawn = Grid(foreign), Grid(foreign)
    drawn.__dict__["_moves"] = None  # draws again until valid
    start = np.repeat([foreign.valid[3], foreign.valid[200]], 20_000)
    counts = [np.bincount(grid.mutate(start, np.random.default_rng(5), foreign)[half], minlength=len(foreign))
              for grid in (listed, drawn) for half in (slice(20_000), slice(20_000, None))]  # fmt: skip
    for left, right in zip(counts[:2], counts[2:], strict=True):
        some = left + right > 0
        chi = ((left - right)[some] ** 2 / (left + right)[some]).sum()
        freedom = int(some.sum()) - 1
        assert (left > 0).tolist() == (right > 0).tolist()
        assert abs(chi - freedom) < 5 * (2 * freedom) ** 0.5
    alone = type("Alone", (type(foreign),), {"valid": (foreign.valid[7],), "hash": "alone"})()
    assert Grid(alone).mutate(np.array([foreign.valid[7]]), np.random.default_rng(0), alone).tolist() == [7]

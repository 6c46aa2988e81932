"""The selection of mutants by hand, the pairing, and the A/A control."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from subbyte.records.result import Measured
from subbyte.tune.search.diverse import MEASURES, REFERENCES, SCOPES
from subbyte.tune.search.features import knob_coordinates
from subbyte.tune.search.quality import Distinctness, recall_at, spearman
from subbyte.tune.search.selection import main_effects, pair_globally, pick_distant, pick_novel
from subbyte.tune.strategy import make_strategy


def test_novelty_counts_values_and_puts_duplicates_last(monkeypatch):
    monkeypatch.setattr("subbyte.tune.search.selection.RENEWED", 1)
    candidates = np.array([[0, 0], [0, 0], [0, 1], [1, 2], [1, 1]])
    # Gains: all 2. Take row 0. Then rows 2 (1/2 + 1), 3 (2), 4 (2): row 3. Then row 2 (1/2 + 1), row 4 (1/2 + 1).
    assert pick_novel(candidates, candidates[:0], 5).tolist() == [0, 3, 2, 4, 1]
    # With [0, 0] and [1, 2] as reference: rows 2 and 4 have 1/2 + 1; after row 2 rows 3 and 4 both have 1/2 + 1/2.
    assert pick_novel(candidates, np.array([[0, 0], [1, 2]]), 2).tolist() == [2, 3]


def test_farthest_points_by_hand():
    line = np.array([[0.0], [0.1], [0.5], [0.9], [1.0]])
    assert pick_distant(line, line[:0], 3).tolist() == [0, 4, 2]
    assert pick_distant(line, np.array([[0.0]]), 2).tolist() == [4, 2]
    assert sorted(pick_distant(line, line, 5).tolist()) == [0, 1, 2, 3, 4]


def test_pairing_gives_every_parent_one_kept_mutant():
    rng = np.random.default_rng(0)
    # Parents 0..3: both kept, none kept, only the second, only the first.
    kept = np.array([True, False, False, True, True, False, True, False])
    seen = set()
    for _ in range(40):
        meets = pair_globally(kept, rng).tolist()
        assert sorted(meets) == sorted(np.flatnonzero(kept).tolist())
        assert meets[2:] == [6, 3]
        seen.add(tuple(meets[:2]))
    assert seen == {(0, 4), (4, 0)}


@pytest.mark.deep
def test_random_half_per_parent_is_distributed_as_autotvm(foreign):
    """The A/A test: over many rounds both propose the same mutants equally often."""

    def counts(name):
        strategy = make_strategy(name, foreign, 1)
        start = np.array([foreign.valid[5], foreign.valid[100]])
        return Counter(tuple(strategy.rivals(start)) for _ in range(6000)), strategy

    plain, _ = counts("autotvm")
    control, _ = counts("diverse:scope=parent:measure=random")
    assert set(plain) == set(control)
    first, second = (Counter() for _ in range(2))
    for total, found in ((first, plain), (second, control)):
        for (left, right), times in found.items():
            total[left, 0] += times
            total[right, 1] += times
    chi = sum((first[key] - second[key]) ** 2 / (first[key] + second[key]) for key in first)
    freedom = len(first) - 2
    assert abs(chi - freedom) < 5 * (2 * freedom) ** 0.5


@pytest.mark.sample(2)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_option_keeps_half(foreign, scope, measure):
    for reference in REFERENCES if measure in ("novelty", "distance") else ("parents",):
        strategy = make_strategy(f"diverse:scope={scope}:measure={measure}:reference={reference}:loss=reg", foreign, 3)
        for _ in range(5):
            for index in strategy.ask(8):
                strategy.tell(index, Measured(float(index + 1)))
        points = strategy._grid.sample(64, np.random.default_rng(0), foreign)
        rivals = strategy.rivals(points)
        assert len(rivals) == 64
        assert strategy._grid.is_valid(rivals, foreign).all()
        if scope == "parent":
            moved = strategy._grid.digits(points) != strategy._grid.digits(rivals)
            assert (moved.sum(axis=1) == 1).all()


def test_diverse_mutants_differ_more(foreign):
    def hamming(measure):
        strategy = make_strategy(f"diverse:measure={measure}", foreign, 0)
        points = strategy._grid.sample(64, np.random.default_rng(1), foreign)
        return np.mean([Distinctness.of(strategy._grid.digits(strategy.rivals(points))).hamming for _ in range(5)])

    assert hamming("novelty") > hamming("random") + 0.005


def test_score_half_asks_for_the_better_ones(foreign):
    strategy = make_strategy("diverse:measure=score:scope=parent:loss=reg", foreign, 0)
    for index in strategy.ask(32):
        strategy.tell(index, Measured(float(index + 1)))
    strategy.ask(1)
    plain = make_strategy("autotvm:loss=reg", foreign, 0)
    points = strategy._grid.sample(128, np.random.default_rng(0), foreign)
    assert strategy.scores(strategy.rivals(points)).mean() > strategy.scores(plain.rivals(points)).mean()


def test_main_effects_weigh_the_knob_that_matters():
    digits = np.array([[a, b] for a in range(3) for b in range(4)])
    weights = main_effects(digits, digits[:, 1] * 2.0)
    assert weights == pytest.approx([0.0, 1.0])
    assert main_effects(digits, np.ones(12)) == pytest.approx([0.5, 0.5])


def test_coordinates_of_knob_values():
    assert knob_coordinates((1, 2, 4, 16))[:, 0].tolist() == [0.0, 0.25, 0.5, 1.0]
    assert knob_coordinates((0, 1, 2))[:, 0].tolist() == [0.0, 0.5, 1.0]
    assert knob_coordinates((15,)).shape == (1, 0)
    assert knob_coordinates(("a", "b", "c")).shape == (3, 3)


def test_rank_correlation_and_recall_by_hand():
    assert spearman([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(0.8)
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(0.8660254)
    assert spearman([1, 1], [1, 2]) is None
    assert recall_at([4, 3, 2, 1], [1, 2, 9, 8], 2) == 0.0
    assert recall_at([4, 3, 2, 1], [1, 9, 8, 2], 2) == 0.5


def test_distinctness_by_hand():
    found = Distinctness.of(np.array([[0, 1], [0, 2], [1, 1]]))
    # Pairs: 1 of 2 differ, 1 of 2, 2 of 2.
    assert found.hamming == pytest.approx(4 / 6)
    assert found.values == (2, 2)

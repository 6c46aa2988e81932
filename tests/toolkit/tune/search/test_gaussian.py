"""The Gaussian process: its gradient, what it predicts, and what it picks."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.tune.search import gaussian
from subbyte.tune.search.features import halvings
from subbyte.tune.search.gaussian import (
    EVEN,
    JUMPY,
    SINGLE,
    SMOOTH,
    GaussianProcess,
    Places,
    expected_improvement,
)


def wave(places):
    """Depends on the first two coordinates only."""
    return np.sin(5 * places[:, 0]) + 3 * (places[:, 1] - 0.3) ** 2


def process(columns: int) -> GaussianProcess:
    return GaussianProcess(np.arange(columns), np.full(columns, SMOOTH))


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    knobs = Places((("a", "b", "c"), (16, 32, 48, 64), (1, 2, 4)))
    rows = knobs(np.stack([rng.integers(3, size=60), rng.integers(4, size=60), rng.integers(3, size=60)], axis=1))
    for made, places in (
        (process(4), rng.random((60, 4))),
        (GaussianProcess(knobs.groups, knobs.lengths), rows + 0.01 * rng.random(rows.shape)),
    ):
        made.fit(places, wave(places)[:, None])
        gaps, wanted = made._gaps(), rng.normal(size=60)
        theta = made._theta.copy()
        slopes = []
        for step in np.eye(len(theta)) * 1e-5:
            losses = []
            for sign in (1, -1):
                made._theta = theta + sign * step
                losses.append(made.loss(gaps, wanted))
            slopes.append((losses[0] - losses[1]) / 2e-5)
        made._theta = theta
        assert made.slope(gaps, wanted) == pytest.approx(slopes, rel=1e-3, abs=1e-3)


def test_learns_a_smooth_function_and_which_knobs_matter():
    rng = np.random.default_rng(1)
    made, places, others = process(4), rng.random((80, 4)), rng.random((200, 4))
    made.fit(places, wave(places)[:, None])
    mean, deviation = made.predict(others)
    assert np.sqrt(np.mean((mean[:, 0] - wave(others)) ** 2)) < 0.05
    assert deviation.mean() < 0.2
    lengths = np.exp(made._theta[:-2])
    assert lengths[:2].max() < lengths[2:].min()
    far, _ = made.predict(np.full((1, 4), 40.0))
    assert far[0, 0] == pytest.approx(wave(places).mean(), abs=0.3)


def test_with_many_results_lengths_are_fitted_again_only_when_there_is_more_to_learn_from(monkeypatch):
    settled = 60
    monkeypatch.setattr(gaussian, "SETTLED", settled)
    rng = np.random.default_rng(2)
    places = rng.random((settled + 40, 3))
    made = process(3)
    seen = []
    for count in (settled - 10, settled, settled + 4, settled + 30):
        made.fit(places[:count], wave(places[:count])[:, None])
        seen.append(made._theta.tolist())
    assert seen[0] != seen[1]
    assert seen[1] == seen[2] != seen[3]


def test_of_many_results_the_best_are_kept(monkeypatch):
    limit = 80
    monkeypatch.setattr(gaussian, "LIMIT", limit)
    rng = np.random.default_rng(2)
    made, places = process(2), rng.random((limit + 100, 2))
    targets = wave(places)
    made.fit(places, targets[:, None])
    assert len(made._places) == limit
    kept = {tuple(row) for row in made._places.tolist()}
    assert {tuple(row) for row in places[np.argsort(targets)[: limit // 2]].tolist()} <= kept


def test_picks_improve_and_spread():
    rng = np.random.default_rng(3)
    made, places, others = process(2), rng.random((60, 2)), rng.random((400, 2))
    made.fit(places, wave(places)[:, None])
    picked = made.pick(others, 8, float(wave(places).min()))
    assert len(set(picked)) == 8
    assert np.median(wave(others[picked])) < np.quantile(wave(others), 0.1)
    unsure = process(2)
    unsure.fit(places[:4], wave(places[:4])[:, None])
    same = np.repeat(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), 25, axis=0)
    picked = unsure.pick(same, 3, -4.0)
    assert len({tuple(row) for row in same[picked].tolist()}) == 3  # no copy of one before it
    assert sorted(made.pick(others[:3], 8, 0.0)) == [0, 1, 2]


def test_what_is_waited_for_is_not_asked_again():
    rng = np.random.default_rng(3)
    made, places = process(2), rng.random((4, 2))
    made.fit(places, wave(places)[:, None])
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    first = made.pick(corners, 1, -4.0)[0]
    assert made.pick(corners, 1, -4.0, np.repeat(corners[[first]], 5, axis=0)) != [first]
    assert made.pick(corners, 4, -4.0, corners[:0]) == made.pick(corners, 4, -4.0)


def test_what_fails_is_shunned():
    rng = np.random.default_rng(3)
    places, others = rng.random((60, 2)), rng.random((400, 2))
    worked = places[:, 0] < 0.6  # where the function is smallest, everything fails
    failing = []
    for targets in (np.stack([wave(places), worked], axis=1), wave(places)[:, None]):
        made = process(2)
        made.fit(places, targets)
        failing.append((others[made.pick(others, 8, 0.1), 0] > 0.6).sum())
    assert failing[0] < failing[1]


def test_expected_improvement_by_hand():
    draws = np.random.default_rng(4).normal(1.0, 2.0, 400_000)
    found = expected_improvement(np.array([1.0, 1.0, 0.0]), np.array([2.0, 1.0, 1e-9]), 1.0)
    assert found[0] == pytest.approx(np.maximum(1.0 - draws, 0).mean(), abs=0.01)
    assert found[1] == pytest.approx(1 / np.sqrt(2 * np.pi))
    assert found[2] == pytest.approx(1.0)


def test_places_of_odd_knobs():
    assert halvings((16, 48, 64, 80)).tolist() == [[0.0], [0.0], [1.0], [0.0]]
    assert all(
        halvings(values).shape == (len(values), 0)
        for values in (
            (1, 2, 4, 8),
            (1, 3, 5, 7),
            (16, 48, 64),
            (0, 1, 2, 3),
            ("a", "b", "c", "d"),
            (1.0, 2.0, 3.0, 4.0),
        )
    )
    even = Places(((16, 48, 64, 80),))
    assert even.groups.tolist() == [0, 1, 1, 1, 1, 2]
    assert even.lengths.tolist() == [SMOOTH, JUMPY, EVEN]
    made = Places(((16, 48, 80), ("row", "column"), (7,), (False, True)), more=1)
    place = made(np.array([[0, 0, 0, 0], [2, 1, 0, 1]]), np.array([[3.0], [4.0]]))
    assert made.groups.tolist() == [0, 1, 1, 2, 3, 3, 3, 4]  # order, text, truth value, each size as such, one more
    assert made.lengths.tolist() == [SMOOTH, SMOOTH, SMOOTH, JUMPY, SMOOTH]
    assert place.shape == (2, 8 + 7)  # traits: 3 sizes, 2 texts, 2 truth values
    assert place[:, 0].tolist() == [0.0, 1.0]
    assert place[:, 7].tolist() == [3.0, 4.0]
    traits = made(np.array([[0, 0, 0, 0], [0, 1, 0, 0], [2, 1, 0, 1]]), np.zeros((3, 1)))[:, 8:]
    alike = traits @ traits.T
    assert np.diag(alike).tolist() == pytest.approx([1.0] * 3)
    assert 2 / 3 < alike[0, 1] < 1.0
    assert alike[0, 2] < alike[1, 2] < alike[0, 1]


def test_effects_of_single_knobs_are_learned_from_few_results():
    """A sum of what each of eight knobs does: traits see it in 40 results of 4^8, distance alone does not."""
    rng = np.random.default_rng(5)
    effects, digits, others = rng.normal(size=(8, 4)), rng.integers(4, size=(40, 8)), rng.integers(4, size=(300, 8))
    places = Places([("a", "b", "c", "d")] * 8)

    def found(columns):
        made = GaussianProcess(places.groups, places.lengths)
        made.fit(places(digits)[:, :columns], effects[np.arange(8), digits].sum(axis=1)[:, None])
        mean, _ = made.predict(places(others)[:, :columns])
        return np.corrcoef(mean[:, 0], effects[np.arange(8), others].sum(axis=1))[0, 1]

    assert found(None) > found(len(places.groups))
    assert found(None) > 0.8


def test_the_share_of_single_knobs_is_learned():
    """It falls where only pairs of knobs matter, and rises where each acts by itself."""
    rng = np.random.default_rng(6)
    digits, places = rng.integers(3, size=(80, 5)), Places([("a", "b", "c")] * 5)
    pairs = rng.normal(size=(3, 3))
    pairs -= pairs.mean(axis=0)
    pairs -= pairs.mean(axis=1, keepdims=True)
    effects = rng.normal(size=(5, 3))
    shares = []
    for targets in (pairs[digits[:, 0], digits[:, 1]], effects[np.arange(5), digits].sum(axis=1)):
        made = GaussianProcess(places.groups, places.lengths)
        for _ in range(3):
            made.fit(places(digits), targets[:, None])
        shares.append(made._single)
    assert shares[0] < SINGLE < shares[1]


def test_needs_a_fit():
    with pytest.raises(ValueError, match="not been fitted"):
        process(2).predict(np.zeros((1, 2)))

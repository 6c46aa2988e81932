"""The ranking loss of 2022, the recall it is stopped by, and that the model learns."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.tune.search.cost_model import LOSSES, BoostedTrees, average_recall, pairwise_gradient
from subbyte.tune.search.quality import spearman


class Draws:
    """A generator whose ``integers`` are prepared."""

    def __init__(self, drawn):
        self.drawn = np.array(drawn)

    def integers(self, bounds):
        assert (self.drawn < bounds).all()
        return self.drawn


def test_pairwise_gradient_by_hand():
    # Labels 2, 1, 1: rows in label order 0, 1, 2. Row 0 may meet 1 or 2 (draw 1: row 2); rows 1 and 2 only row 0.
    scores, labels = np.array([0.0, 1.0, -1.0]), np.array([2.0, 1.0, 1.0])
    gradient, curvature = pairwise_gradient(scores, labels, Draws([1, 0, 0]))
    one, two = 1 / (1 + np.exp(1.0)), 1 / (1 + np.exp(-1.0))  # chance that row 0 beats row 1, row 2
    assert gradient == pytest.approx([2 * (two - 1) + (one - 1), 1 - one, 2 * (1 - two)])
    bend_one, bend_two = 2 * one * (1 - one), 2 * two * (1 - two)
    assert curvature == pytest.approx([bend_one + 2 * bend_two, bend_one, 2 * bend_two])


def test_rows_of_equal_labels_are_never_paired():
    gradient, curvature = pairwise_gradient(np.array([0.3, 0.1]), np.array([1.0, 1.0]), np.random.default_rng(0))
    assert not gradient.any()
    assert not curvature.any()
    labels = np.array([3.0, 3.0, 3.0, 1.0])
    gradient, _ = pairwise_gradient(np.zeros(4), labels, np.random.default_rng(0))
    assert (gradient[:3] < 0).all()
    assert gradient[3] == pytest.approx(-gradient[:3].sum())


def test_partners_are_uniform_outside_the_bucket():
    rng, met = np.random.default_rng(1), np.zeros(4)
    labels = np.array([0.5, 1.0, 0.5, 0.2])
    for _ in range(4000):
        gradient, _ = pairwise_gradient(np.zeros(4), labels, rng)
        met += gradient
    # Each pair pulls 1/2. Row 1 wins its own draw and meets 0, 2 (chance 1/2 each) and 3 (chance 1/3).
    assert met[1] / 4000 == pytest.approx(-0.5 * (1 + 0.5 + 0.5 + 1 / 3), abs=0.03)


def test_average_recall_as_autotvm_counts():
    def slow(scores, labels, top):
        ranks = np.empty(len(labels), dtype=int)
        tried = labels[np.argsort(-scores, kind="stable")]
        ranks[np.argsort(-tried, kind="stable")] = np.arange(len(labels))
        curve = [np.sum(ranks[:i] <= i) / (i + 1) for i in range(len(labels))]
        return sum(curve[:top]) / top

    rng = np.random.default_rng(2)
    for n, top in [(5, 3), (40, 32), (64, 32), (10, 32)]:
        scores, labels = rng.random(n), rng.integers(0, 8, n).astype(float)
        assert average_recall(scores, labels, top) == pytest.approx(slow(scores, labels, top))


@pytest.mark.parametrize("loss", LOSSES)
def test_learns_to_order_and_repeats_itself(loss):
    rng = np.random.default_rng(3)
    features = rng.random((160, 4))
    speeds = 1 / (1 + 3 * abs(features[:, 0] - 0.4) + features[:, 1])
    speeds[:8] = 0.0
    model, again = BoostedTrees(loss, seed=5), BoostedTrees(loss, seed=5)
    model.fit(features[:128], speeds[:128], 32)
    again.fit(features[:128], speeds[:128], 32)
    scores = model.predict(features[128:])
    assert spearman(scores, speeds[128:]) > 0.6
    assert scores.tolist() == again.predict(features[128:]).tolist()
    assert 20 < model.trees < 8000


def test_ranking_scores_straddle_the_half_that_was_the_first_score():
    rng = np.random.default_rng(4)
    features = rng.random((64, 3))
    model = BoostedTrees("rank", seed=0)
    model.fit(features, features[:, 0] + 0.1, 32)
    scores = model.predict(features)
    assert scores.min() < 0 < 0.5 < scores.max()


def test_all_failed_does_not_break_the_fit():
    model = BoostedTrees("rank", seed=0)
    model.fit(np.random.default_rng(0).random((32, 3)), np.zeros(32), 32)
    assert np.isfinite(model.predict(np.zeros((2, 3)))).all()

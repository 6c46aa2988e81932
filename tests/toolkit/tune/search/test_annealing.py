"""Simulated annealing against a trace worked out by hand, and its rules one at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from subbyte.tune.search.annealing import Annealing, anneal

SCORES = {0: 0.0, 1: 0.5, 2: -1.0, 3: 2.0, 4: 1.0, 5: -0.2, 6: 0.25}


def score(points):
    return np.array([SCORES[int(point)] for point in points])


class Script:
    """Hands out prepared arrays, one per call."""

    def __init__(self, *answers):
        self.answers = [np.array(answer) for answer in answers]
        self.asked = []

    def __call__(self, question):
        self.asked.append(np.array(question))
        return self.answers[len(self.asked) - 1]


def test_two_walkers_three_rounds_by_hand():
    # Temperatures 1, 0.75, 0.5 (cooling 1 / (3 + 1)). Walkers start at 0 (score 0) and 4 (score 1).
    rivals = Script([1, 2], [5, 3], [6, 6])
    # Round 1: 0 -> 1 gains 0.5: odds exp(0.5) > 1, always. 4 -> 2 loses 2: odds exp(-2/1.00001) = 0.1353; 0.2 refuses.
    # Round 2: 1 -> 5 loses 0.7: odds exp(-0.7/0.75001) = 0.3933; 0.39 accepts. 4 -> 3 gains 1: accepted.
    # Round 3: 5 -> 6 gains: accepted. 3 -> 6 loses 1.75: odds exp(-1.75/0.50001) = 0.0302; 0.031 refuses.
    uniform = Script([0.999, 0.2], [0.39, 0.999], [0.999, 0.031])
    done = anneal(np.array([0, 4]), score, rivals, uniform, 3, {1}, Annealing(2, 3, 50))
    assert [list(asked) for asked in rivals.asked] == [[0, 4], [1, 4], [5, 3]]
    assert list(done.points) == [6, 3]
    assert done.rounds == 3
    # Seen: 0, 4 | 1 (excluded), 2 (negative) | 5 (negative), 3 | 6, 6. The three best: 3, 4, 6.
    assert done.plan == (3, 4, 6)
    assert done.scores == (2.0, 1.0, 0.25)


@pytest.mark.parametrize(("draw", "taken"), [(0.39, True), (0.394, False)])
def test_acceptance_at_the_odds_of_the_rule(draw, taken):
    settings = Annealing(1, 1, 50, (0.75, 0.0))
    done = anneal(np.array([1]), score, Script([5]), Script([draw]), 2, (), settings)
    assert math.exp(-0.7 / (0.75 + 1e-5)) == pytest.approx(0.3933, abs=1e-4)
    assert list(done.points) == [5 if taken else 1]


def test_a_refused_mutant_still_enters_the_plan():
    done = anneal(np.array([3]), score, Script([4]), Script([0.999]), 2, (), Annealing(1, 1, 50))
    assert list(done.points) == [3]
    assert done.plan == (3, 4)


def test_negative_scores_are_dropped_and_zero_is_kept():
    done = anneal(np.array([2, 5, 0]), score, Script([2, 5, 0]), Script([0, 0, 0]), 10, (), Annealing(3, 1, 50))
    assert done.plan == (0,)


def test_stops_when_the_list_has_not_changed():
    calls = []

    def stay(points):
        calls.append(1)
        return points

    done = anneal(np.array([3]), score, stay, lambda n: np.zeros(n), 1, (), Annealing(1, 500, 50))
    assert done.rounds == len(calls) == 50
    longer = Script(*[[1]] * 7, [3], *[[1]] * 60)
    done = anneal(np.array([1]), score, longer, lambda n: np.zeros(n), 1, (), Annealing(1, 500, 50))
    assert done.rounds == 57  # changed in the round with number 7, then 50 more


def test_500_rounds_at_most():
    seen = []

    def uniform(n):
        seen.append(n)
        return np.ones(n)

    done = anneal(np.array([3]), score, lambda p: np.array([4]), uniform, 1, (), Annealing(1, 500, 10**9))
    assert done.rounds == len(seen) == 500


def test_temperature_of_the_last_round():
    # After 499 rounds the temperature is 1 - 499/501: a loss of 0.002 passes with chance exp(-0.002 / 0.004).
    loss = {0: 1.0, 1: 0.998}
    chances = []
    for draw in (0.60, 0.61):
        script = Script(*[[1]] * 500)
        draws = Script(*[[2.0]] * 499, [draw])  # nothing is accepted before the last round
        done = anneal(
            np.array([0]), lambda p: np.array([loss[int(i)] for i in p]), script, draws, 1, (), Annealing(1, 500, 501)
        )
        chances.append(int(done.points[0]))
    assert math.exp(-0.002 / (1 - 499 / 501 + 1e-5)) == pytest.approx(0.6067, abs=1e-3)
    assert chances == [1, 0]


def test_nothing_is_planned_from_an_exhausted_space():
    done = anneal(np.array([3, 4]), score, lambda p: p, lambda n: np.zeros(n), 5, {3, 4}, Annealing(2, 5, 5))
    assert done.plan == ()

"""The exercises of the search: right answers in several forms, and typical wrong ones by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from typing import Any

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises import check_accept, check_keep, check_random_trials
from subbyte.exercises.search import MUTANTS, greedy, random_chance
from subbyte.tune.search.selection import pick_novel

Mutants = Sequence[Sequence[int]]


def test_the_chance_is_that_of_drawing() -> None:
    assert random_chance(0, 3, 10) == 0
    assert random_chance(1, 3, 10) == pytest.approx(0.3)
    assert random_chance(2, 3, 10) == pytest.approx(1 - 7 / 10 * 6 / 9)
    assert random_chance(8, 3, 10) == 1
    drawn = [np.random.default_rng(seed).permutation(10)[:2].min() < 3 for seed in range(2000)]
    assert np.mean(drawn) == pytest.approx(random_chance(2, 3, 10), abs=0.04)
    with pytest.raises(InvalidInput, match="good"):
        random_chance(1, 0, 10)


def test_the_least_number_of_random_trials_is_right() -> None:
    right = next(n for n in range(500) if random_chance(n, 20, 500) >= 0.95)
    assert check_random_trials(right, 20, 500)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (..., "Write a number"), (500, "whole space"), (25, "on average"), (475, "particular"),
        (74, "with replacement"),
        (100, "not the smallest"), (7, "one factor for each trial"), ("many", "one factor for each trial"),
    ],
)  # fmt: skip
def test_a_wrong_number_of_trials_is_named(answer: Any, says: str) -> None:
    feedback = check_random_trials(answer, 20, 500)
    assert not feedback
    assert says in feedback.message


def test_one_too_few_is_named() -> None:
    right = next(n for n in range(1306) if random_chance(n, 5, 1306) >= 0.95)
    assert "One too few" in check_random_trials(right - 1, 5, 1306).message


def metropolis(old: float, new: float, temperature: float, draw: float) -> bool:
    return draw < exp(min((new - old) / (temperature + 1e-5), 1))


def test_the_rule_of_annealing_is_right_in_any_form() -> None:
    assert check_accept(metropolis)
    assert check_accept(lambda o, n, t, d: n >= o or (t > 0 and d < exp((n - o) / t)))


@pytest.mark.parametrize(
    ("accept", "says"),
    [
        (lambda o, n, t, d: n > o, "improvements only"),
        (lambda o, n, t, d: n >= o, "everything worse"),
        (lambda o, n, t, d: True, "everything"),
        (lambda o, n, t, d: metropolis(n, o, t, d), "swapped"),
        (lambda o, n, t, d: d < exp(n - o), "temperature is missing"),
        (lambda o, n, t, d: d < exp((n - o) * t), "multiply"),
        (lambda o, n, t, d: not metropolis(o, n, t, d), "wrong way round"),
        (lambda o, n, t, d: d < exp((n - o) / t), "1e-5"),
        (lambda o, n, t, d: None, "True or False"),
        (lambda o, n, t, d: n > 0.3, "is taken"),
        (7, "Give a function"),
    ],
)
def test_a_wrong_rule_is_named(accept: Any, says: str) -> None:
    feedback = check_accept(accept)
    assert not feedback
    assert says in feedback.message


def by_rarity(mutants: Mutants, count: int) -> list[int]:
    return greedy(mutants, count, lambda times: 1 / (1 + times))


def test_keeping_by_rarity_is_right_in_any_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_keep(by_rarity)
    assert check_keep(lambda mutants, count: np.array(by_rarity(mutants, count)))
    monkeypatch.setattr("subbyte.tune.search.selection.RENEWED", 1)
    distinct = list(dict.fromkeys(MUTANTS[2]))
    rows = np.array(distinct)
    assert pick_novel(rows, rows[:0], 4).tolist() == by_rarity(distinct, 4), "the library's rule, without copies"


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        (lambda mutants, count: range(count), "first ones"),
        (lambda mutants, count: greedy(mutants, count, lambda times: float(times == 0)), "yes or no"),
        (lambda mutants, count: greedy(mutants, count, float), "must fall"),
        (lambda mutants, count: sorted(by_rarity(mutants, count)), "not in the order"),
        (lambda mutants, count: by_rarity(mutants, count)[::-1], "not in the order"),
        (lambda mutants, count: by_rarity(mutants, count)[:-1], "keep 3"),
        (lambda mutants, count: [0] * count, "twice"),
        (lambda mutants, count: range(90, 90 + count), "Indices go"),
        (lambda mutants, count: list(range(len(mutants)))[-count:], "pick 1"),
        (lambda mutants, count: None, "list of indices"),
        (lambda mutants, count: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_wrong_choice_is_named(keep: Callable[..., Any], says: str) -> None:
    feedback = check_keep(keep)
    assert not feedback
    assert says in feedback.message


def test_counting_among_all_is_named() -> None:
    def once(mutants: Mutants, count: int) -> list[int]:
        columns = list(zip(*mutants, strict=True))
        gains = [sum(1 / columns[k].count(v) for k, v in enumerate(mutant)) for mutant in mutants]
        return sorted(range(len(mutants)), key=lambda place: -gains[place])[:count]

    assert "among the *picked*" in check_keep(once).message

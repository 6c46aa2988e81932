"""Intervals of times and ratios: they hold what was planted, and say nothing they cannot know."""

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.measure.interval import agree, interval, pooled, ratios, runs_of, student


def planted(rng, factor, between, within=0.01, cells=12, runs=2, rounds=25):
    """Ratios of ``cells`` whose truth is ``factor``: every run and every round is off by a draw of its own."""
    for _ in range(cells):
        yield [np.exp(rng.normal(np.log(factor) + rng.normal(0, between), within, rounds)) for _ in range(runs)]


@pytest.mark.parametrize("between", [0.0, 0.01])
def test_intervals_hold_the_planted_ratio(between):
    rng, held, widths = np.random.default_rng(1), 0, []
    for _ in range(12):
        found = [runs_of(cell) for cell in planted(rng, 1.05, between)]
        among = pooled(found)
        for one in found:
            got = interval(one, among)
            held += got.low <= 1.05 <= got.high
            widths.append(got.share)
    assert held >= 0.93 * 144
    assert np.mean(widths) == pytest.approx(2.1 * max(between, 0.0025) / 2**0.5, rel=0.5)


def test_ahead_only_when_one_is_excluded():
    rng = np.random.default_rng(2)
    verdicts = {}
    for factor in (1.05, 1.0, 0.95):
        found = [runs_of(cell) for cell in planted(rng, factor, 0.004)]
        among = pooled(found)
        verdicts[factor] = [interval(one, among).verdict() for one in found]
    assert set(verdicts[1.05]) == {"ahead"}
    assert set(verdicts[0.95]) == {"behind"}
    assert verdicts[1.0].count("even") >= 10
    alone = interval(runs_of([[2.0, 2.1, 2.2]]), pooled([]))
    assert (alone.verdict(), alone.value) == ("open", pytest.approx(2.1))
    assert alone.to_dict() == {"value": alone.value, "low": None, "high": None, "runs": [alone.value]}


def test_two_runs_that_differ_widen_the_interval_of_their_cell():
    near, far = [[1.0] * 9, [1.001] * 9], [[1.0] * 9, [1.06] * 9]
    calm, apart = runs_of(near), runs_of(far)
    among = pooled([calm] * 20)
    assert interval(calm, among).share < 0.002
    assert interval(apart, among).share > 0.05
    assert (agree(near), agree(far)) == (True, False)
    assert agree([[1.0], [1.06], [1.062]])
    assert not agree([[1.0]])


def test_ratios_are_taken_within_rounds():
    assert ratios([[2.0, 4.0]], [[1.0, 2.0]]) == [[2.0, 2.0]]
    for over, under in (([[1.0]], [[1.0, 2.0]]), ([[1.0]], []), ([[1.0]], [[0.0]])):
        with pytest.raises(InvalidInput, match="as many runs"):
            ratios(over, under)


@pytest.mark.parametrize("bad", [[], [[]], [[1.0, 0.0]], [[1.0, float("nan")]], [[-1.0]]])
def test_samples_that_are_no_times_are_refused(bad):
    with pytest.raises(InvalidInput):
        runs_of(bad)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (36, 2.028)])
def test_students_quantile(freedom, quantile):
    assert student(freedom) == pytest.approx(quantile, abs=0.02)

"""Intervals: they cover what they should, and are wide where little is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from subbyte.analysis.bootstrap import PairedBootstrap, paired_interval, student_quantile
from subbyte.errors import InvalidInput


@pytest.mark.parametrize(
    ("probability", "degrees", "quantile"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 3, 3.1824), (0.95, 10, 1.8125), (0.995, 24, 2.7969),
     (0.975, 99, 1.9842)],
)  # fmt: skip
def test_student_quantiles_of_the_tables(probability, degrees, quantile):
    assert student_quantile(probability, degrees) == pytest.approx(quantile, abs=5e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("landscapes", "seeds"), [(1, 5), (1, 30), (4, 10)])
def test_intervals_cover_the_truth(landscapes, seeds):
    """A known effect of 0.02, which varies from landscape to landscape where there are several."""
    rng = np.random.default_rng(7)
    covered, rounds = 0, 300
    for number in range(rounds):
        effects = 0.02 + (rng.normal(0, 0.01, landscapes) if landscapes > 1 else np.zeros(1))
        differences = [rng.normal(effect, 0.03, seeds) for effect in effects]
        interval = paired_interval(differences, 0.95, seed=number, resamples=600)
        covered += interval.low <= 0.02 <= interval.high
    assert covered / rounds >= 0.91
    if landscapes == 1:
        assert covered / rounds <= 0.99


@pytest.mark.deep
def test_pooled_seeds_alone_would_not_cover():
    """What the second level is for: landscapes differ, so more seeds do not make the effect certain."""
    rng = np.random.default_rng(3)
    pooled_covers = nested_covers = 0
    for number in range(100):
        effects = rng.normal(0.0, 0.03, 5)
        differences = [rng.normal(effect, 0.01, 40) for effect in effects]
        pooled = paired_interval([np.concatenate(differences)], 0.95, number, 400)
        nested = paired_interval(differences, 0.95, number, 400)
        pooled_covers += not pooled.excludes(0.0)
        nested_covers += not nested.excludes(0.0)
    assert pooled_covers < 50
    assert nested_covers >= 90


def test_the_seed_decides_the_interval():
    values = [np.random.default_rng(0).normal(0.1, 1.0, 20)]
    assert paired_interval(values, seed=1) == paired_interval(values, seed=1)
    assert paired_interval(values, seed=1) != paired_interval(values, seed=2)


def test_levels_nest():
    bootstrap = PairedBootstrap([np.random.default_rng(0).normal(0.1, 1.0, 20)])
    narrow, wide = bootstrap.interval(0.9), bootstrap.interval(0.99)
    assert narrow.within(wide.low, wide.high)
    assert not wide.within(narrow.low, narrow.high)
    assert narrow.low < bootstrap.estimate < narrow.high
    assert wide.excludes(math.inf)


def test_without_spread_the_interval_is_a_point():
    interval = paired_interval([np.full(10, 0.5)])
    assert (interval.low, interval.high) == (0.5, 0.5)


@pytest.mark.parametrize("differences", [[], [np.zeros(1)], [np.zeros(5), np.zeros(1)]])
def test_too_little_to_resample_is_refused(differences):
    with pytest.raises(InvalidInput, match="two seeds"):
        paired_interval(differences)

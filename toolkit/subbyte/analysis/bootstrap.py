"""Intervals for paired differences, by resampling seeds and landscapes.

Two levels are drawn with replacement: landscapes, and within each drawn landscape the seeds. A plain percentile
interval of few draws is too short; both levels are therefore widened by ``sqrt(n / (n - 1))`` (resampling n values
understates their spread) and by the ratio of Student's quantile with n - 1 degrees of freedom to the normal one, as
Hesterberg 2015, section 5.3, does for one level. With several landscapes the interval is conservative: the noise of the
seeds is also in the differences between landscapes. With a single landscape only seeds are drawn, and the result holds
for that landscape alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from subbyte.arguments import checked, several, whole
from subbyte.errors import InvalidInput

Values = npt.NDArray[np.float64]
MOST_RESAMPLES = 1_000_000
RESAMPLES = 4000


@dataclass(frozen=True)
class Interval:
    """A two-sided interval; ``level`` is its nominal coverage, such as 0.95."""

    low: float
    high: float
    level: float

    def excludes(self, value: float) -> bool:
        """True when ``value`` lies outside."""
        return not self.low <= value <= self.high

    def within(self, low: float, high: float) -> bool:
        """True when the whole interval lies between ``low`` and ``high``."""
        return low < self.low and self.high < high


class PairedBootstrap:
    """Resampled means of ``differences``: one float array per landscape, one value per seed (at least two each).

    The estimate is the mean over landscapes of their mean over seeds. The same seed gives the same intervals.
    """

    def __init__(self, differences: Sequence[Values], seed: int = 0, resamples: int = RESAMPLES) -> None:
        differences = [np.asarray(values) for values in several(differences, "differences")]
        if not differences or any(v.dtype.kind not in "iuf" or v.ndim != 1 or v.size < 2 for v in differences):
            raise InvalidInput("an interval needs at least one landscape, and at least two seeds on each")
        rng = np.random.default_rng(seed)
        count = len(differences)
        self._seeds = min(len(values) for values in differences)
        self._landscapes = count
        means = np.array([values.mean() for values in differences])
        self.estimate = float(means.mean())
        drawn = rng.integers(count, size=(resamples, count))
        self._between = means[drawn].mean(axis=1) - self.estimate
        within = np.zeros((resamples, count))
        for slot in range(count):
            for which, values in enumerate(differences):
                rows = np.flatnonzero(drawn[:, slot] == which)
                places = rng.integers(len(values), size=(len(rows), len(values)))
                within[rows, slot] = values[places].mean(axis=1) - means[which]
        self._within = within.mean(axis=1)

    def interval(self, level: float) -> Interval:
        """The interval of nominal coverage ``level``."""
        spread = self._within * _widening(self._seeds, level)
        if self._landscapes > 1:
            spread = spread + self._between * _widening(self._landscapes, level)
        low, high = np.quantile(spread, [(1 - level) / 2, (1 + level) / 2])
        return Interval(self.estimate + float(low), self.estimate + float(high), level)


@checked
def paired_interval(
    differences: Sequence[Values], level: float = 0.95, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """The interval of the mean of ``differences`` (one array per landscape, one value per seed).

    Raises InvalidInput for fewer than two seeds on a landscape, and for a level that is not between 0 and 1.
    """
    whole(seed, "seed")
    whole(resamples, "resamples", 1, MOST_RESAMPLES)
    if not 0 < level < 1:
        raise InvalidInput(f"level={level}: expected a share between 0 and 1, such as 0.95")
    return PairedBootstrap(differences, seed, resamples).interval(level)


def _widening(count: int, level: float) -> float:
    """The factor by which the deviations of a mean of ``count`` resampled values must be stretched."""
    upper = (1 + level) / 2
    return math.sqrt(count / (count - 1)) * student_quantile(upper, count - 1) / NormalDist().inv_cdf(upper)


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t distribution (probability above one half), by bisection of its closed form."""
    low, high = 0.0, 1.0
    while _student_cdf(high, degrees) < probability:
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


def _student_cdf(t: float, degrees: int) -> float:
    """Abramowitz and Stegun, 26.7.3 and 26.7.4: finite sums for integer degrees of freedom."""
    theta = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(theta), math.sin(theta)
    term, total = 1.0, 0.0
    if degrees % 2:
        term = cosine
        for k in range(3, degrees + 1, 2):
            total += term
            term *= cosine * cosine * (k - 1) / k
        return 0.5 + (theta + sine * total) / math.pi
    for k in range(2, degrees + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    return 0.5 + sine * total / 2

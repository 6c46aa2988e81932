"""The confidence interval of a time, or a ratio of times, from several runs of interleaved rounds.

A **run** is a separate process: its samples share the conditions of the process (addresses, clocks, temperature), so
two runs differ by more than the rounds of one. An interval must account for both. All computations use logarithms:

* the value of a run is the median of its rounds, the overall value is the mean of the runs;
* the variance of one run is the largest of three estimates: the **bootstrap** over the rounds of a run
  (1,000 draws; mean over the runs), the variance between **these runs**, and the variance between the runs of all cells
  of a record (**pooled**: two runs alone say little about their own variance);
* divided by the number of runs it is the variance of the value; the interval is the value plus and minus Student's
  quantile (97.5 %) for the degrees of freedom of the pooled variance, times its square root.

A ratio is taken within rounds (the baseline's sample over ours of the same round) and then treated in the same way.
A side is called **ahead** or **behind** only if the interval excludes 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from subbyte.errors import InvalidInput

DRAWS = 1000
TOLERANCE = 0.02
"""Two runs agree when their medians differ by at most this fraction."""
AHEAD, BEHIND, EVEN, OPEN = "ahead", "behind", "even", "open"
_EXACT = {1: 12.706, 2: 4.303, 3: 3.182}


@dataclass(frozen=True)
class Runs:
    """``logs[r]`` is the logarithm of the median of run r, ``errors[r]`` its standard error by bootstrap."""

    logs: tuple[float, ...]
    errors: tuple[float, ...]

    @property
    def variance(self) -> float:
        """The variance between the runs; 0.0 for a single one."""
        return statistics.variance(self.logs) if len(self.logs) > 1 else 0.0


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval. ``low`` is 0 and ``high`` infinite if there was only one run; ``runs`` holds the
    values of the runs."""

    value: float
    low: float
    high: float
    runs: tuple[float, ...]

    @property
    def share(self) -> float:
        """Half the width of the interval, as a fraction of the value."""
        return (self.high - self.low) / 2 / self.value

    def verdict(self) -> str:
        """For a ratio of baseline over ours: ``ahead``, ``behind``, ``even``; ``open`` after a single run."""
        if not self.low or math.isinf(self.high):
            return OPEN
        return AHEAD if self.low > 1 else BEHIND if self.high < 1 else EVEN

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; unknown bounds are None."""
        known = self.verdict() != OPEN
        bounds = {"low": self.low, "high": self.high} if known else {"low": None, "high": None}
        return {**asdict(self), **bounds, "runs": list(self.runs)}


def runs_of(samples: Sequence[Sequence[float]], seed: int = 0) -> Runs:
    """Medians and their standard errors; ``samples[r]`` are the samples of run r. Raises InvalidInput unless all are >
    0."""
    logs, errors = [], []
    for run in samples:
        values = np.asarray(run, np.float64)
        if values.size == 0 or not (np.isfinite(values).all() and (values > 0).all()):
            raise InvalidInput("samples of a run must be numbers above 0, at least one")
        values = np.log(values)
        logs.append(float(np.median(values)))
        draws = np.random.default_rng(seed).integers(0, values.size, (DRAWS, values.size))
        errors.append(float(np.median(values[draws], axis=1).std()))
    if not logs:
        raise InvalidInput("samples of at least one run are needed")
    return Runs(tuple(logs), tuple(errors))


def ratios(over: Sequence[Sequence[float]], under: Sequence[Sequence[float]]) -> list[list[float]]:
    """``over`` divided by ``under``, run by run and round by round. Raises InvalidInput unless their numbers are
    equal."""
    try:
        return [
            [a / b for a, b in zip(one, other, strict=True)] for one, other in zip(over, under, strict=True)
        ]  # fmt: skip
    except (ValueError, ZeroDivisionError):
        raise InvalidInput("a ratio needs as many runs and rounds on both sides, with times above 0") from None


@dataclass(frozen=True)
class Pooled:
    """The variance between runs over several cells, with its degrees of freedom."""

    variance: float
    freedom: int


def pooled(cells: Iterable[Runs]) -> Pooled:
    """The variance between runs of all cells together."""
    total, freedom = 0.0, 0
    for runs in cells:
        total += runs.variance * (len(runs.logs) - 1)
        freedom += len(runs.logs) - 1
    return Pooled(total / freedom if freedom else 0.0, freedom)


def interval(runs: Runs, among: Pooled) -> Interval:
    """The mean of the runs with its interval; the formula is in the module's docstring."""
    count, middle = len(runs.logs), statistics.fmean(runs.logs)
    values = tuple(math.exp(log) for log in runs.logs)
    if count < 2:
        return Interval(math.exp(middle), 0.0, math.inf, values)
    rounds = statistics.fmean(error**2 for error in runs.errors)
    variance = max(rounds, runs.variance, among.variance) / count
    half = student(max(among.freedom, count - 1)) * math.sqrt(variance)
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half), values)


def agree(samples: Sequence[Sequence[float]], tolerance: float = TOLERANCE) -> bool:
    """Whether at least two of the runs have medians that differ by at most ``tolerance``, as a fraction."""
    medians = [statistics.median(run) for run in samples]
    return any(max(a, b) <= (1 + tolerance) * min(a, b) for a, b in combinations(medians, 2))


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution: 12.7 for one degree of freedom, 1.96 for many (within 0.02)."""
    if freedom in _EXACT:
        return _EXACT[freedom]
    z = 1.959964
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3

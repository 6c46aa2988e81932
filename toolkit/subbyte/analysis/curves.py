"""Curves and standings: how far each participant has come after each trial, as a fraction of the landscape's optimum.

The fraction is ``optimum / best so far``: 0 before the first success, 1 once the fastest configuration is found. The
area under the curve is its mean over the trials, so 1 means that the first trial was the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subbyte.analysis.runs import LandscapeFacts, Run
from subbyte.errors import InvalidInput

TARGETS = (0.90, 0.95, 0.99)
_CHECKPOINTS = (25, 50, 100, 200, 350, 500)
Fractions = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Fraction of the optimum after each trial: mean, median and quartiles over the runs on a landscape, or over all
    runs on a device (then ``landscape`` names the device)."""

    landscape: str
    participant: str
    trials: tuple[int, ...]
    mean: tuple[float, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Reach:
    """Trials until ``target`` of the optimum is reached.

    Runs that did not reach it are censored: they count as longer than all others. A quantile that falls among them is
    None ("more than the trials that were run"). ``share`` of the runs reached it; ``mean`` is the mean number of trials
    used, counting runs that did not get there with the number of trials run (a lower bound when ``share`` < 1).
    """

    target: float
    share: float
    low: float | None
    median: float | None
    high: float | None
    mean: float


@dataclass(frozen=True)
class Standing:
    """How a participant did on a landscape, over ``runs`` seeds.

    ``area`` with its standard error; ``fractions`` maps trials to the mean fraction of the optimum at that point;
    ``hamming``, ``nearest``, ``spread``, ``holdout``, ``found`` are means over the batches
    (:class:`~subbyte.analysis.runs.Batch`; the first batch, which is not planned by a model, is left out), ``spearman``
    and ``recall`` over the fits of the model (:class:`~subbyte.analysis.runs.Fit`). ``evaluated`` is the mean number of
    configurations tried, fewer than the trials for searches that stop early; ``seconds`` the mean time of a run.
    """

    landscape: str
    participant: str
    runs: int
    area: float
    area_error: float
    fractions: dict[int, float]
    final: float
    final_error: float
    reach: tuple[Reach, ...]
    optimum_found: float
    evaluated: float
    failed: float
    seconds: float
    hamming: float | None
    nearest: float | None
    spread: float | None
    spearman: float | None
    recall: float | None
    holdout: float | None
    found: float | None


def fractions(runs: Sequence[Run], facts: LandscapeFacts) -> Fractions:
    """float[runs, trials]: fraction of the optimum. Raises InvalidInput when a run beats the optimum."""
    times = np.array([[np.inf if t is None else t for t in run.best_microseconds] for run in runs], dtype=np.float64)
    if times.min(initial=np.inf) < facts.optimum_microseconds * (1 - 1e-9):
        raise InvalidInput(f"a run on {facts.name} is faster than its optimum: it was made on another landscape")
    return np.minimum(facts.optimum_microseconds / times, 1.0)


def curve_of(landscape: str, participant: str, rows: Fractions) -> Curve:
    """The curve for fractions float[runs, trials]."""
    low, median, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    parts = (rows.mean(axis=0), median, low, high)
    return Curve(landscape, participant, tuple(range(1, rows.shape[1] + 1)), *(tuple(part.tolist()) for part in parts))


def reach_of(rows: Fractions, target: float) -> Reach:
    """Trials to ``target`` for fractions float[runs, trials]."""
    trials = rows.shape[1]
    hit = rows >= target - 1e-12
    reached = hit.any(axis=1)
    first = np.sort(np.where(reached, hit.argmax(axis=1) + 1.0, np.inf))
    low, median, high = (_quantile(first, share) for share in (0.25, 0.5, 0.75))
    return Reach(target, float(reached.mean()), low, median, high, float(np.minimum(first, trials).mean()))


def _quantile(ordered: Fractions, share: float) -> float | None:
    """Quantile of ascending values that may end in infinities; None where it falls among them."""
    place = share * (len(ordered) - 1)
    left, right = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
    if np.isinf(right):
        return None
    return float(left + (right - left) * (place - np.floor(place)))


def standing_of(landscape: str, participant: str, runs: Sequence[Run], rows: Fractions) -> Standing:
    """The standing of ``runs`` whose fractions are float[runs, trials]."""
    trials = rows.shape[1]
    areas, final = rows.mean(axis=1), rows[:, -1]
    later = [batch for run in runs for batch in run.batches[1:]]
    fits = [fit for run in runs for fit in run.fits]
    hamming, nearest, spread, holdout, found = (
        _known([getattr(batch, name) for batch in later])
        for name in ("hamming", "nearest", "spread", "holdout", "found")
    )
    return Standing(
        landscape, participant, len(runs), float(areas.mean()), _error(areas),
        {t: float(rows[:, t - 1].mean()) for t in checkpoints(trials)}, float(final.mean()), _error(final),
        tuple(reach_of(rows, target) for target in TARGETS), float((final >= 1 - 1e-12).mean()),
        _mean([run.evaluated for run in runs]), _mean([run.failed for run in runs]),
        _mean([run.seconds for run in runs]), hamming, nearest, spread, _known([fit.spearman for fit in fits]),
        _known([fit.recall for fit in fits]), holdout, found,
    )  # fmt: skip


def checkpoints(trials: int) -> tuple[int, ...]:
    """Trials at which fractions are reported: 25, 50, 100, 200, 350, 500 as far as the race went, and its last
    trial."""
    return tuple(sorted({*(t for t in _CHECKPOINTS if t < trials), trials}))


def _known(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _error(values: Fractions) -> float:
    """Standard error of the mean; 0 for a single run, which has none."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

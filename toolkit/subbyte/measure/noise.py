"""Whether a timing can be trusted, and which of several kernels is really the fastest.

A timing is **steady** when no clock fell while it ran and the quartiles of its samples are within 3 % of the median;
otherwise it is repeated, at most twice, and the steadiest counts. The record keeps what disturbed it.

The top k are timed **interleaved**, in rounds of a random order, because times drift over minutes by more than good
kernels differ. Kernels are compared round by round: two are a **tie** unless the confidence interval (95 % or more,
from the order statistics of the per-round ratios) shows that one is slower by more than 0.2 %.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.gpu.telemetry import Snapshot
from subbyte.gpu.timing import Timing

OUTLIER = 0.05
"""A sample this far from the median, as a fraction of it, is an outlier if it is also more than four deviations
away."""
STEADY_SPREAD = 0.03
CLOCK_FELL = 0.97
"""A clock below this fraction of its earlier value has dropped."""
ATTEMPTS = 3
RESOLUTION = 0.002
"""Kernels that differ by less than this fraction are never told apart."""


@dataclass(frozen=True)
class Steadiness:
    """``outliers`` are positions of samples, ``spread`` the distance between the quartiles as a fraction of the median,
    ``notes`` what a person should know; empty when nothing disturbed the timing."""

    steady: bool
    outliers: tuple[int, ...]
    spread: float
    notes: tuple[str, ...]


def find_outliers(samples: Sequence[float]) -> tuple[int, ...]:
    """Positions of samples more than 5 % and more than four (scaled) median deviations away from the median."""
    middle = statistics.median(samples)
    deviation = 1.4826 * statistics.median(abs(sample - middle) for sample in samples)
    limit = max(OUTLIER * middle, 4 * deviation)
    return tuple(place for place, sample in enumerate(samples) if abs(sample - middle) > limit)


def judge(timing: Timing, highest_mhz: int | None = None) -> Steadiness:
    """How steady a timing is. ``highest_mhz`` is the highest clock seen on this GPU in this process, if known."""
    outliers = find_outliers(timing.samples)
    spread = quartile_distance(timing.samples) / timing.microseconds
    fell = clock_notes(timing.before, timing.after, highest_mhz)
    notes = list(fell)
    if outliers:
        notes.append(f"{len(outliers)} of {len(timing.samples)} samples are outliers")
    if spread > STEADY_SPREAD:
        notes.append(f"noisy: half of the samples spread over {100 * spread:.1f}% of the median")
    return Steadiness(not fell and spread <= STEADY_SPREAD, outliers, spread, tuple(notes))


def clock_notes(before: Snapshot, after: Snapshot, highest_mhz: int | None = None) -> tuple[str, ...]:
    """A sentence if the SM clock dropped during a timing, or had dropped before it. Empty if NVML gives no readings."""
    if after.sm_mhz is None:
        return ()
    reference, since = (before.sm_mhz, "while it was timed") if before.sm_mhz else (None, "")
    if highest_mhz and (reference is None or reference < CLOCK_FELL * highest_mhz):
        reference, since = highest_mhz, "since the first timings"
    if not reference or after.sm_mhz >= CLOCK_FELL * reference:
        return ()
    causes = ", ".join(name for name in after.throttle or () if name != "gpu idle")
    return (f"the clock fell from {reference} to {after.sm_mhz} MHz {since}{f' ({causes})' if causes else ''}",)


def quartile_distance(samples: Sequence[float]) -> float:
    """Distance between the first and the third quartile; 0.0 for a single sample."""
    if len(samples) < 2:
        return 0.0
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return third - first


class Watch:
    """Repeats timings that are not steady, and remembers the highest clock seen by the process."""

    def __init__(self) -> None:
        self.highest_mhz: int | None = None

    def steady(self, take: Callable[[], Timing], attempts: int = ATTEMPTS) -> tuple[Timing, tuple[str, ...]]:
        """The first steady timing of at most ``attempts``, else the steadiest, with notes on what disturbed it."""
        taken: list[tuple[Steadiness, Timing]] = []
        for _ in range(attempts):
            timing = take()
            verdict = judge(timing, self.highest_mhz)
            for reading in (timing.before.sm_mhz, timing.after.sm_mhz):
                self.highest_mhz = max(self.highest_mhz or 0, reading) if reading else self.highest_mhz
            taken.append((verdict, timing))
            if verdict.steady:
                break
        verdict, timing = min(taken, key=lambda pair: (not pair[0].steady, pair[0].spread))
        again = (f"timed {len(taken)} times",) if len(taken) > 1 else ()
        return timing, verdict.notes + again


@dataclass(frozen=True)
class Standing:
    """One of the top k: its median time in microseconds over the rounds, and how much slower than the fastest it is
    (``slower`` 0.02 = 2 %, with the interval ``low`` to ``high``). ``tied`` is true for the fastest and all that cannot
    be distinguished from it.
    """

    place: int
    microseconds: float
    slower: float
    low: float
    high: float
    tied: bool
    samples: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "samples": list(self.samples)}


def rank_interleaved(rounds: Sequence[Sequence[float]]) -> tuple[Standing, ...]:
    """Standings, fastest first, of interleaved kernels: ``rounds[i][r]`` is kernel i in round r.

    ``place`` is the position in ``rounds``. Raises InvalidInput when the kernels have different numbers of rounds.
    """
    if not rounds or not rounds[0] or len({len(times) for times in rounds}) != 1:
        raise InvalidInput("a top-k re-measurement needs the same number of rounds, at least one")
    medians = [statistics.median(times) for times in rounds]
    best = min(range(len(rounds)), key=lambda i: (medians[i], i))
    found = []
    for place, times in enumerate(rounds):
        ratios = sorted(mine / reference - 1 for mine, reference in zip(times, rounds[best], strict=True))
        low, high = _interval(ratios)
        found.append(
            Standing(place, medians[place], statistics.median(ratios), low, high, low <= RESOLUTION, tuple(times))
        )
    return tuple(sorted(found, key=lambda standing: (standing.place != best, standing.microseconds, standing.place)))


def _interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Interval of the median with at least 95 % confidence; minus and plus infinity when there are too few values."""
    n = len(ordered)
    outside, below = 0.0, 0
    while below < n // 2 and (more := outside + 2 * math.comb(n, below) / 2**n) <= 0.05:
        outside, below = more, below + 1
    return (ordered[below - 1], ordered[n - below]) if below else (-math.inf, math.inf)

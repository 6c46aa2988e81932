"""Simulated annealing over a cost model, as AutoTVM does it (TVM 0.8, 2022).

Parallel walkers mutate and compete with their mutants at a falling temperature; every mutant seen, accepted or not,
may enter the list of the best.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subbyte.tune.search.grid import Indices

Scores = npt.NDArray[np.float64]
Score = Callable[[Indices], Scores]
"""Predicted scores [n] of indices [n]; higher is better."""
Rivals = Callable[[Indices], Indices]
"""Maps points [n] to the mutants [n] that compete with them."""
Uniform = Callable[[int], npt.NDArray[np.float64]]
"""``n`` draws from [0, 1)."""


@dataclass(frozen=True)
class Annealing:
    """Settings: walkers, rounds, rounds without change in the best list before stopping, first and last temperature."""

    points: int = 128
    iterations: int = 500
    early_stop: int = 50
    temperature: tuple[float, float] = (1.0, 0.0)


@dataclass(frozen=True)
class Annealed:
    """``plan``: the best unseen points, best first, none with a negative score; ``scores``: theirs; ``points``: the
    final positions of the walkers; ``rounds``: rounds walked."""

    plan: tuple[int, ...]
    scores: tuple[float, ...]
    points: Indices
    rounds: int


def anneal(
    points: Indices,
    score: Score,
    rivals: Rivals,
    uniform: Uniform,
    count: int,
    exclude: Collection[int],
    settings: Annealing | None = None,
) -> Annealed:
    """Walk from ``points`` [n] and return the best ``count`` points seen that are not in ``exclude``.

    A mutant replaces its point with probability ``exp(min((new - old) / (t + 1e-5), 1))``, so an improvement always
    does. Scores of exactly zero stay in the plan, negative ones are dropped: with a ranking model that is about half
    of all predictions, and the plan is then shorter than ``count``.
    """
    settings = settings or Annealing()
    points = points.copy()
    scores = np.array(score(points), dtype=np.float64)
    best = _Best(count, exclude)
    best.offer(points, scores)
    hot, cold = settings.temperature
    temperature, cooling = hot, (hot - cold) / (settings.iterations + 1)
    rounds = changed = 0
    while rounds < settings.iterations and rounds < changed + settings.early_stop:
        mutants = rivals(points)
        rated = np.asarray(score(mutants), dtype=np.float64)
        odds = np.exp(np.minimum((rated - scores) / (temperature + 1e-5), 1.0))
        accepted = uniform(len(points)) < odds
        points[accepted] = mutants[accepted]
        scores[accepted] = rated[accepted]
        if best.offer(mutants, rated):
            changed = rounds
        rounds += 1
        temperature -= cooling
    plan = best.plan()
    return Annealed(tuple(p for _, p in plan), tuple(s for s, _ in plan), points, rounds)


class _Best:
    """The ``count`` best distinct points outside ``exclude``: a min-heap that starts with placeholders."""

    def __init__(self, count: int, exclude: Collection[int]) -> None:
        self._heap: list[tuple[float, int]] = [(float("-inf"), -1 - place) for place in range(count)]
        heapq.heapify(self._heap)
        self._barred = set(exclude)

    def offer(self, points: Indices, scores: Scores) -> bool:
        """Insert the points that beat the worst; true if any did."""
        if not self._heap:
            return False
        entered = False
        for place in np.flatnonzero(scores > self._heap[0][0]).tolist():  # the worst only rises, so none is missed
            score, point = float(scores[place]), int(points[place])
            if score > self._heap[0][0] and point not in self._barred:
                _, gone = heapq.heapreplace(self._heap, (score, point))
                self._barred.discard(gone)
                self._barred.add(point)
                entered = True
        return entered

    def plan(self) -> list[tuple[float, int]]:
        """The points best first, without negative scores (and hence without placeholders)."""
        return [entry for entry in sorted(self._heap, key=lambda entry: -entry[0]) if entry[0] >= 0]

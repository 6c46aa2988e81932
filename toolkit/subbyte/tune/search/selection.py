"""Keeping half of the mutants by diversity: the measures, the reference sets and the pairing with the parents.

Choi et al. 2022, section 3.4, say that half of all mutants is kept "considering the configuration diversity"; they
leave open which measure is used, and compared with what, so all three are options.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subbyte.tune.search.features import knob_coordinates
from subbyte.tune.search.grid import Digits, Grid

Places = npt.NDArray[np.int64]
Places2D = npt.NDArray[np.float64]


RENEWED = 16
"""Picks after which gains are recomputed; picking a whole half at once would select near-copies."""


def pick_novel(candidates: Digits, reference: Digits, count: int) -> Places:
    """Greedy by rarity of knob values: gain = sum over knobs of 1 / (1 + times the value was picked).

    ``candidates`` int[n, knobs] and ``reference`` int[m, knobs] (which counts as picked) are digits. Counts are used
    instead of AutoTVM's yes or no, whose gains are all zero after a handful of picks. Gains are recomputed after every
    16 picks; an exact duplicate of another candidate comes last. Returns ``count`` positions, in order.
    """
    n, knobs = candidates.shape
    top = 1 + int(max(candidates.max(initial=0), reference.max(initial=0)))
    shift = np.arange(knobs) * top  # one histogram for all knobs
    places = candidates + shift
    counts = np.bincount((reference + shift).ravel(), minlength=knobs * top)
    penalty = np.full(n, 1e9)
    keys = candidates.astype(np.int64) @ (1_000_003 ** np.arange(knobs, dtype=np.int64))  # a hash; overflow is fine
    penalty[np.unique(keys, return_index=True)[1]] = 0.0
    picked: list[int] = []
    while len(picked) < min(count, n):
        gains = (1.0 / (1.0 + counts[places])).sum(axis=1) - penalty
        step = np.argsort(-gains, kind="stable")[: min(RENEWED, count - len(picked))]
        picked += step.tolist()
        penalty[step] = np.inf
        counts += np.bincount(places[step].ravel(), minlength=knobs * top)
    return np.array(picked[:n], dtype=np.int64)


def pick_distant(candidates: Places2D, reference: Places2D, count: int) -> Places:
    """Greedy farthest points: each pick maximizes the smallest distance to the picked and the reference rows.

    Rows are coordinates float[n, d]; the distance is the sum of absolute differences. Without a reference the first
    row is picked first. Returns ``count`` positions, in order.
    """
    apart = _distances(candidates, candidates)
    nearest = _distances(candidates, reference).min(axis=1) if len(reference) else np.full(len(candidates), np.inf)
    picked = np.empty(min(count, len(candidates)), dtype=np.int64)
    for turn in range(len(picked)):
        place = int(np.argmax(nearest))
        picked[turn] = place
        np.minimum(nearest, apart[place], out=nearest)
        nearest[place] = -np.inf
    return picked


def _distances(a: Places2D, b: Places2D) -> Places2D:
    """Sums of absolute differences [n, m] between rows [n, d] and [m, d]."""
    gaps = np.zeros((len(a), len(b)))
    for column in range(a.shape[1]):
        gaps += np.abs(a[:, column, None] - b[None, :, column])
    return gaps


def coordinates(grid: Grid, digits: Digits, weights: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
    """float[n, d] of digits [n, knobs]: knobs scaled to [0, 1] (logarithms for sizes), times ``weights`` [knobs]."""
    parts = []
    for knob, values in enumerate(grid.values):
        weight = 1.0 if weights is None else float(weights[knob])
        parts.append(knob_coordinates(values)[digits[:, knob]] * weight)
    return np.concatenate(parts, axis=1)


def main_effects(digits: Digits, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weight of each knob, float[knobs] summing to 1: the variance between the mean scores of its values."""
    total = np.zeros(digits.shape[1])
    for knob in range(digits.shape[1]):
        counts = np.bincount(digits[:, knob])
        sums = np.bincount(digits[:, knob], weights=scores)
        means = sums[counts > 0] / counts[counts > 0]
        total[knob] = np.average((means - scores.mean()) ** 2, weights=counts[counts > 0])
    return total / total.sum() if total.sum() > 0 else np.full(len(total), 1.0 / len(total))


def pair_globally(kept: npt.NDArray[np.bool_], rng: np.random.Generator) -> Places:
    """Which of 2n mutants meets which parent, given the n kept: positions [n] among the mutants.

    ``kept`` bool[2n]; mutants i and n + i are parent i's. A parent with one kept mutant meets it; one with two meets
    one of them, drawn at random, and the other goes to a parent that has none, likewise at random.
    """
    n = len(kept) // 2
    first, second = kept[:n], kept[n:]
    meets = np.where(first, np.arange(n), np.arange(n) + n)
    both, none = np.flatnonzero(first & second), np.flatnonzero(~first & ~second)
    flipped = rng.random(len(both)) < 0.5
    meets[both] = np.where(flipped, both + n, both)
    meets[none] = rng.permutation(np.where(flipped, both, both + n))[: len(none)]
    return meets

"""Keeping half of the mutants by diversity: the measures, the reference sets and the pairing with the parents.

Choi et al. 2022, section 3.4, say that half of all mutants is kept "considering the configuration diversity"; which
measure, compared with what, is left open, so all three are options.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subbyte.tune.search.features import knob_coordinates
from subbyte.tune.search.grid import Digits, Grid

Places = npt.NDArray[np.int64]


def pick_novel(candidates: Digits, reference: Digits, count: int) -> Places:
    """Greedy by rarity of knob values: gain = sum over knobs of 1 / (1 + times the value was picked).

    ``candidates`` int[n, knobs] and ``reference`` int[m, knobs] (which counts as picked) are digits. Counts instead of
    AutoTVM's yes or no, whose gains are all zero after a handful of picks. Returns ``count`` places, in order.
    """
    knobs = candidates.shape[1]
    top = 1 + int(max(candidates.max(initial=0), reference.max(initial=0)))
    counts = np.zeros((knobs, top))
    for knob in range(knobs):
        counts[knob] += np.bincount(reference[:, knob], minlength=top)
    columns = np.arange(knobs)
    gains = (1.0 / (1.0 + counts[columns, candidates])).sum(axis=1)
    same = np.zeros(len(candidates), dtype=bool)
    picked = np.empty(min(count, len(candidates)), dtype=np.int64)
    for turn in range(len(picked)):
        place = int(np.argmax(gains))
        picked[turn] = place
        own = candidates[place]
        before = counts[columns, own]
        counts[columns, own] += 1
        shared = candidates == own
        gains += shared @ (1.0 / (2.0 + before) - 1.0 / (1.0 + before))
        same = shared.all(axis=1)
        gains[same & (gains > -1e6)] -= 1e9  # an exact duplicate comes last
        gains[place] = -np.inf
    return picked


def pick_distant(
    candidates: npt.NDArray[np.float64], reference: npt.NDArray[np.float64], count: int
) -> Places:
    """Greedy farthest points: each pick has the greatest least distance to the picked and the reference rows.

    Rows are coordinates float[n, d]; the distance is the sum of absolute differences. Without any reference the first
    row starts. Returns ``count`` places, in order.
    """
    nearest = np.full(len(candidates), np.inf)
    if len(reference):
        gaps = np.zeros((len(candidates), len(reference)))
        for column in range(candidates.shape[1]):
            gaps += np.abs(candidates[:, column, None] - reference[None, :, column])
        nearest = gaps.min(axis=1)
    picked = np.empty(min(count, len(candidates)), dtype=np.int64)
    for turn in range(len(picked)):
        place = int(np.argmax(nearest))
        picked[turn] = place
        nearest = np.minimum(nearest, np.abs(candidates - candidates[place]).sum(axis=1))
        nearest[picked[: turn + 1]] = -1.0
    return picked


def coordinates(grid: Grid, digits: Digits, weights: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
    """float[n, d] of digits [n, knobs]: knobs scaled to [0, 1] (logarithms for sizes), times ``weights`` [knobs]."""
    parts = []
    for knob, values in enumerate(grid.values):
        weight = 1.0 if weights is None else float(weights[knob])
        parts.append(knob_coordinates(values)[digits[:, knob]] * weight)
    return np.concatenate(parts, axis=1)


def main_effects(digits: Digits, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weight of each knob, float[knobs] summing to 1: variance of the mean score between its values."""
    total = np.zeros(digits.shape[1])
    for knob in range(digits.shape[1]):
        counts = np.bincount(digits[:, knob])
        sums = np.bincount(digits[:, knob], weights=scores)
        means = sums[counts > 0] / counts[counts > 0]
        total[knob] = np.average((means - scores.mean()) ** 2, weights=counts[counts > 0])
    return total / total.sum() if total.sum() > 0 else np.full(len(total), 1.0 / len(total))


def pair_globally(kept: npt.NDArray[np.bool_], rng: np.random.Generator) -> Places:
    """Which of 2n mutants meets which parent, given the n kept: places [n] into the mutants.

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

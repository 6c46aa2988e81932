"""Cycles of whole layers without a loop over k, and expected cycles of random operands.

The cost of one k depends on two numbers, the non-zeros of A and of B. Sums over all tiles only need to know how often
each pair of numbers occurs, a 33 x 33 table that is one small matrix product. The cycles of each single tile follow
from the cost table as a sum of a few products (it has rank 5): one more matrix product.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.sparse.bitmap import POSITIONS
from subbyte.sparse.machines import Machine, cost_tables

Counts8 = NDArray[np.uint8]
"""uint8 [k, tiles]: non-zeros of each k of each tile."""
LEVELS = POSITIONS + 1
_CHUNK = 1 << 21


def histogram(counts: Counts8) -> NDArray[np.int64]:
    """How often each number of non-zeros occurs in each k: [k, 33]."""
    depth, tiles = counts.shape
    out = np.empty((depth, LEVELS), np.int64)
    step = max(1, _CHUNK // tiles)
    for first in range(0, depth, step):
        part = counts[first : first + step]
        keys = part + np.arange(len(part), dtype=np.int64)[:, None] * LEVELS
        out[first : first + step] = np.bincount(keys.ravel(), minlength=len(part) * LEVELS).reshape(-1, LEVELS)
    return out


def joint(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """How often each pair of non-zero counts occurs, over all pairs of tiles and all k: [33, 33], exact."""
    return np.asarray(left.T.astype(np.float64, copy=False) @ right.astype(np.float64, copy=False))


@lru_cache(maxsize=64)
def _factors(machine: Machine, swapped: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = cost_tables(machine).cost
    u, s, v = np.linalg.svd(table.T if swapped else table)
    rank = int((s > 1e-9 * max(s[0], 1e-300)).sum())
    return u[:, :rank] * s[:rank], v[:rank].T


def rank(machine: Machine) -> int:
    """Rank of the unit's cost table."""
    return int(_factors(machine, False)[0].shape[1])


def row_factors(counts: Counts8, machine: Machine, swapped: bool = False) -> NDArray[np.float64]:
    """The left factor of the sum over k, [tiles, k * rank]; its product with :func:`column_factors` is the tiles'
    cycles."""
    return np.asarray(_factors(machine, swapped)[0][counts.T].reshape(counts.shape[1], -1))


def column_factors(counts: Counts8, machine: Machine, swapped: bool = False) -> NDArray[np.float64]:
    """The right factor, [tiles, k * rank]."""
    return np.asarray(_factors(machine, swapped)[1][counts.T].reshape(counts.shape[1], -1))


def tile_cycles(left: Counts8, right: Counts8, machine: Machine, swapped: bool = False) -> NDArray[np.float64]:
    """Cycles of every pair of tiles [left tiles, right tiles], summed over k.

    ``swapped``: the left operand is the unit's B. Rounded to a millionth, so that equal sums are equal numbers.
    """
    columns = column_factors(right, machine, swapped)
    out = np.empty((left.shape[1], right.shape[1]))
    # Few large products: each may wait for threads of the matrix library.
    step = max(1, 2 * _CHUNK // columns.shape[1])
    for first in range(0, left.shape[1], step):
        out[first : first + step] = row_factors(left[:, first : first + step], machine, swapped) @ columns.T
    return np.round(out, 6)


def binomial(density: float, positions: int = POSITIONS) -> NDArray[np.float64]:
    """Probability of 0, 1, ... ``positions`` non-zeros if each position is non-zero with probability ``density``."""
    n = np.arange(positions + 1)
    ways = np.array([comb(positions, int(i)) for i in n], float)
    return np.asarray(ways * float(density) ** n * (1 - float(density)) ** (positions - n))


def expected_cycles(machine: Machine, a: float, b: float, swapped: bool = False) -> float:
    """Mean cycles of one k of a warp tile for independent random zeros; the mean is taken after the maximum."""
    table = cost_tables(machine).cost
    return float(binomial(a) @ (table.T if swapped else table) @ binomial(b))


def expected_speedup(machine: Machine, a: float, b: float, swapped: bool = False) -> float:
    """Speed-up over the same unit in dense mode, compute only."""
    return machine.dense_k / expected_cycles(machine, a, b, swapped)


def bins(useful: NDArray[Any]) -> NDArray[np.int64]:
    """The quarter, 0 to 3, that each utilisation falls into: Uni-STC's four bins, upper ends included."""
    return np.clip(np.ceil(np.asarray(useful) * 4 - 1e-9).astype(np.int64) - 1, 0, 3)

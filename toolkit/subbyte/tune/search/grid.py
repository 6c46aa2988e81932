"""A space as arrays: knob digits, validity and neighbours of many indices at a time.

A space is *listed* when its valid configurations can be held as one array: with at most ``LIST_LIMIT`` combinations, or
if the space says so by an attribute ``listed = True`` (an imported table knows its rows). In any other space validity
is checked one configuration at a time and remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.records.describe import SpaceLike

Indices = npt.NDArray[np.int64]
Digits = npt.NDArray[np.int32]

LIST_LIMIT = 1_000_000
"""A space with at most this many combinations is listed."""
_KEPT = 8
_TRIES = 400
_MOVES = 8_000_000
"""A listed space with at most this many moves keeps a table of them (12 bytes each)."""
_grids: OrderedDict[tuple[str, bool], Grid] = OrderedDict()


class Grid:
    """Index arithmetic of ``space``: index = sum of digit * weight, the first knob varies fastest."""

    def __init__(self, space: SpaceLike, limit: int = LIST_LIMIT) -> None:
        self.names = tuple(space.knobs)
        self.values: tuple[tuple[Any, ...], ...] = tuple(tuple(values) for values in space.knobs.values())
        self.dims = np.array([len(values) for values in self.values], dtype=np.int64)
        self.weights = np.cumprod(np.concatenate([[1], self.dims[:-1]])).astype(np.int64)
        self.size = prod(len(values) for values in self.values)
        self.listed = self.size <= limit or bool(getattr(space, "listed", False))
        self.valid: Indices = np.sort(np.array(space.valid if self.listed else (), dtype=np.int64))
        """Valid indices, ascending; empty when the space is not listed."""
        self.valid_digits: Digits = self.digits(self.valid)
        self.cache: dict[Any, Any] = {}
        """Tables derived from the space (features), kept as long as the grid."""
        self._known: dict[int, bool] = {}

    def digits(self, indices: npt.ArrayLike) -> Digits:
        """Knob digits int32[n, knobs] of indices [n]."""
        wide = np.asarray(indices, dtype=np.int64)[..., None] // self.weights % self.dims
        return wide.astype(np.int32)

    def indices(self, digits: npt.NDArray[np.integer[Any]]) -> Indices:
        """Indices [n] of knob digits [n, knobs]."""
        return digits.astype(np.int64) @ self.weights

    def rows(self, indices: npt.ArrayLike) -> Indices:
        """Positions of valid indices within ``valid`` (listed spaces)."""
        return np.searchsorted(self.valid, np.asarray(indices, dtype=np.int64))

    def is_valid(self, indices: npt.ArrayLike, space: SpaceLike) -> npt.NDArray[np.bool_]:
        """Which of the indices [n] satisfy all constraints: bool [n]."""
        asked = np.asarray(indices, dtype=np.int64)
        if self.listed:
            if not len(self.valid):
                return np.zeros(asked.shape, dtype=bool)
            return self.valid[np.minimum(self.rows(asked), len(self.valid) - 1)] == asked
        for index in asked.tolist():
            if index not in self._known:
                self._known[index] = space.check(index) is None
        return np.array([self._known[index] for index in asked.tolist()], dtype=bool)

    def sample(self, count: int, rng: np.random.Generator, space: SpaceLike, exclude: Iterable[int] = ()) -> Indices:
        """At most ``count`` distinct valid indices, uniform among those not in ``exclude``.

        A space that is not listed is sampled by rejection; after 400 rounds the missing ones are taken
        in index order if it has at most a million combinations; a larger one then returns fewer.
        """
        taken = set(exclude)
        if self.listed:
            return self._left(taken, count, rng)
        found: list[int] = []
        for _ in range(_TRIES):
            if len(found) >= count:
                break
            self._add(rng.integers(self.size, size=max(count, 16)).tolist(), found, taken, count, space)
        if len(found) < count and self.size <= LIST_LIMIT:
            self._add(range(self.size), found, taken, count, space)
        return np.array(found, dtype=np.int64)

    def _add(self, drawn: Iterable[int], found: list[int], taken: set[int], count: int, space: SpaceLike) -> None:
        for index in drawn:
            if len(found) < count and index not in taken and bool(self.is_valid([index], space)[0]):
                found.append(index)
                taken.add(index)

    def _left(self, taken: set[int], count: int, rng: np.random.Generator) -> Indices:
        mask = np.ones(len(self.valid), dtype=bool)
        if taken:
            gone = np.array(sorted(taken), dtype=np.int64)
            rows = self.rows(gone)
            inside = rows < len(self.valid)
            rows, gone = rows[inside], gone[inside]
            mask[rows[self.valid[rows] == gone]] = False
        left = self.valid[mask]
        return rng.permutation(left)[:count] if count >= len(left) else rng.choice(left, count, replace=False)

    @cached_property
    def _moves(self) -> Moves | None:
        """The table of moves of a listed space; None if it would be too large."""
        fits = self.listed and 0 < len(self.valid) * int(self.dims.sum()) <= _MOVES
        return Moves(self) if fits else None

    def neighbours(self, index: int) -> Indices:
        """All indices that differ from ``index`` in exactly one knob, valid or not."""
        own = self.digits([index])[0]
        moved = []
        for knob, size in enumerate(self.dims.tolist()):
            others = np.array([digit for digit in range(size) if digit != own[knob]], dtype=np.int64)
            moved.append(index + (others - own[knob]) * self.weights[knob])
        return np.concatenate(moved) if moved else np.zeros(0, dtype=np.int64)

    def mutate(self, points: Indices, rng: np.random.Generator, space: SpaceLike) -> Indices:
        """One mutant of each valid point: a random value of a random knob, drawn again until it differs and is valid.

        A listed space draws from a table of each point's moves, which gives every mutant the same probability in one
        step. A point without a mutant (elsewhere: one whose draws fail 400 times) is returned unchanged.
        """
        if self._moves is not None:
            return self._moves.draw(points, self.rows(points), rng)
        mutants = points.copy()
        waiting = np.arange(len(points))
        for _ in range(_TRIES):
            knob = rng.integers(len(self.dims), size=len(waiting))
            digit = rng.integers(self.dims[knob])
            old = points[waiting]
            drawn = old + (digit - old // self.weights[knob] % self.dims[knob]) * self.weights[knob]
            good = drawn != old
            good[good] = self.is_valid(drawn[good], space)
            mutants[waiting[good]] = drawn[good]
            waiting = waiting[~good]
            if not len(waiting):
                break
        return mutants


class Moves:
    """For each valid configuration, the valid ones that differ in one knob, and how likely a random move leads there.

    A move draws a knob and one of its values, so it has the weight 1 / (number of the knob's values).
    """

    def __init__(self, grid: Grid) -> None:
        valid = len(grid.valid)
        self._to = np.full((valid, int(grid.dims.sum())), -1, dtype=np.int32)
        odds = np.repeat(1.0 / grid.dims, grid.dims)
        column = 0
        for knob, size in enumerate(grid.dims.tolist()):
            for digit in range(size):
                own = grid.valid_digits[:, knob].astype(np.int64)
                wanted = grid.valid + (digit - own) * grid.weights[knob]
                rows = np.minimum(grid.rows(wanted), valid - 1)
                there = (own != digit) & (grid.valid[rows] == wanted)
                self._to[there, column] = rows[there]
                column += 1
        self._valid = grid.valid
        self._sums = np.cumsum(np.where(self._to >= 0, odds, 0.0), axis=1)
        self._last = np.argmax(self._sums >= self._sums[:, -1:], axis=1)

    def draw(self, points: Indices, rows: Indices, rng: np.random.Generator) -> Indices:
        """One random move of each point [n], whose positions among the valid ones are ``rows`` [n]."""
        sums = self._sums[rows]
        reached = (sums <= (rng.random(len(rows)) * sums[:, -1])[:, None]).sum(axis=1)
        to = self._to[rows, np.minimum(reached, self._last[rows])]
        return np.where(to >= 0, self._valid[to], points)


def grid_of(space: SpaceLike, limit: int = LIST_LIMIT) -> Grid:
    """The grid of a space, listed up to ``limit`` combinations; the most recent grids are cached by the spaces'
    hashes."""
    key = (space.hash, len(space) <= limit)
    if key not in _grids:
        _grids[key] = Grid(space, limit)
        if len(_grids) > _KEPT:
            _grids.popitem(last=False)
    _grids.move_to_end(key)
    return _grids[key]

"""Which combinations of two and three knobs' values were never measured.

A model that has seen a knob's value do badly in every known combination writes it off, even if an unknown
combination makes it the best (combinatorial interaction testing: Kuhn, Wallace, Gallo 2004). Such combinations are
parts of the space; the largest are explored first.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from subbyte.tune.search.grid import Digits

MOST = 256
"""Pairs and triples of knobs that are tracked: those with the fewest combinations of values, hence the largest
parts."""
MOST_VALUES = 4096
"""The most combinations of values that a pair or triple of knobs may have."""


class Coverage:
    """Marks combinations as seen; ``dims`` are the numbers of values of the knobs."""

    def __init__(self, dims: npt.NDArray[np.int64]) -> None:
        several = [(knob, size) for knob, size in enumerate(dims.tolist()) if size > 1]
        groups = [group for count in (2, 3) for group in combinations(several, count)]
        sizes = sorted((prod(size for _, size in group), group) for group in groups)
        kept = [(size, group) for size, group in sizes if size <= MOST_VALUES][:MOST]
        self._weights = np.zeros((len(dims), len(kept)), dtype=np.int64)
        self._first = np.zeros(len(kept), dtype=np.int64)
        total = 0
        for column, (size, group) in enumerate(kept):
            weight = 1
            for knob, values in group:
                self._weights[knob, column] = weight
                weight *= values
            self._first[column] = total
            total += size
        self._part = np.array([1.0 / size for size, _ in kept])
        self._seen = np.zeros(total, dtype=bool)

    def see(self, digits: Digits) -> None:
        """Mark the combinations in configurations [n, knobs]."""
        self._seen[self._combinations(digits)] = True

    def unseen(self, digits: Digits) -> npt.NDArray[np.float64]:
        """For configurations [n, knobs]: the total size [n] of the parts of the space that their unseen combinations
        cover."""
        found: npt.NDArray[np.float64] = ~self._seen[self._combinations(digits)] @ self._part
        return found

    def pick(self, digits: Digits, count: int) -> list[int]:
        """At most ``count`` rows of ``digits`` [n, knobs], each with the most that is still unseen after those before
        it."""
        seen = self._seen.copy()
        picked: list[int] = []
        for _ in range(min(count, len(digits))):
            gains = self.unseen(digits)
            gains[picked] = -1.0
            picked.append(int(np.argmax(gains)))
            self.see(digits[picked[-1:]])
        self._seen = seen
        return picked

    def _combinations(self, digits: Digits) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = digits.astype(np.int64) @ self._weights + self._first
        return found

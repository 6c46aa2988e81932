"""Which combinations of two and three knobs' values nothing was measured with yet.

A model that has seen a knob's value do badly in every combination it knows writes it off, also where one combination
it does not know makes it the best (combinatorial interaction testing: Kuhn, Wallace, Gallo 2004). Of the parts of a
space that such combinations are, the largest are looked at first.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from subbyte.tune.search.grid import Digits

MOST = 256
"""Pairs and triples of knobs that are kept: those with the fewest combinations of values, so the largest parts."""
MOST_VALUES = 4096
"""Combinations of values that a pair or triple of knobs may have."""


class Coverage:
    """Marks what was seen; ``dims`` are the numbers of values of the knobs."""

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
        """Mark the combinations of configurations [n, knobs]."""
        self._seen[self._combinations(digits)] = True

    def unseen(self, digits: Digits) -> npt.NDArray[np.float64]:
        """For configurations [n, knobs]: the parts of the space [n] that their unseen combinations make, summed."""
        found: npt.NDArray[np.float64] = ~self._seen[self._combinations(digits)] @ self._part
        return found

    def pick(self, digits: Digits, count: int) -> list[int]:
        """Rows of ``digits`` [n, knobs], at most ``count``, each with the most that those before it leave unseen."""
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

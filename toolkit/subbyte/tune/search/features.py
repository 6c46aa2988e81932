"""The features of a configuration that a cost model sees: its knobs, or also the loops and memory traffic of its plan.

``knob``: one column per numeric knob, and one per value for knobs with text or truth values. ``plan``: the columns of
``knob`` and, for spaces whose configurations have a plan, the extents of the generated loops, the traffic of each
memory level, what a multiprocessor can hold, and an analytic estimate, as provided by the space's family
(``Family.feature_row``). All of it comes from the plan; nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.families.registry import family_of_kind, usual
from subbyte.records.describe import SpaceLike
from subbyte.tune.search.grid import Grid, Indices, grid_of

Table = npt.NDArray[np.float32]

KINDS = ("knob", "plan")
_EAGER = {True: 20_000, False: 200_000}
"""Listed spaces with at most this many valid configurations are computed as a whole, with plan columns and without."""


class Features:
    """Feature rows of a space by index. Plan columns, and small listed spaces as a whole, are computed once."""

    def __init__(self, space: SpaceLike, kind: str = "knob", grid: Grid | None = None) -> None:
        self._grid: Grid = grid or grid_of(space)
        self._columns = [_knob_columns(values) for values in self._grid.values]
        self._plan: Callable[[int], Any] | None = getattr(space, "plan", None) if kind == "plan" else None
        family = family_of_kind(space.kind) or usual()
        self._row: Callable[[Any], list[float]] = family.feature_row
        self._planned = family.features
        self.names: tuple[str, ...] = tuple(
            name if table.shape[1] == 1 else f"{name}[{value}]"
            for name, values, table in zip(self._grid.names, self._grid.values, self._columns, strict=True)
            for value in (values if table.shape[1] > 1 else (None,))
        ) + (self._planned if self._plan is not None else ())
        self._rows: dict[int, list[float]] = self._grid.cache.setdefault("plan rows", {})
        self._whole: Table | None = None
        if self._grid.listed and len(self._grid.valid) <= _EAGER[self._plan is not None]:
            key = ("features", self._plan is not None)
            if key not in self._grid.cache:
                self._grid.cache[key] = self._table(self._grid.valid)
            self._whole = self._grid.cache[key]

    @property
    def whole(self) -> Table | None:
        """float32[valid, features] of all valid configurations, in index order; None for spaces that are too large."""
        return self._whole

    def __call__(self, indices: Indices | Sequence[int]) -> Table:
        """float32[n, features] of valid indices [n]."""
        asked = np.asarray(indices, dtype=np.int64)
        return self._whole[self._grid.rows(asked)] if self._whole is not None else self._table(asked)

    def _table(self, indices: Indices) -> Table:
        digits = self._grid.digits(indices)
        parts = [table[digits[:, knob]] for knob, table in enumerate(self._columns)]
        if self._plan is not None:
            for index in indices.tolist():
                if index not in self._rows:
                    self._rows[index] = self._row(self._plan(index))
            rows = [self._rows[index] for index in indices.tolist()]
            parts.append(np.array(rows, dtype=np.float32).reshape(len(rows), len(self._planned)))
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(indices), 0), dtype=np.float32)


def _knob_columns(values: Sequence[Any]) -> Table:
    """float32[values, columns]: the numbers themselves, or one column per value."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=np.float32)[:, None]
    return np.eye(len(values), dtype=np.float32)


def knob_coordinates(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """float64[values, columns] with values in [0, 1], for distances and smooth models.

    Positive numbers that grow by factors are placed by their logarithm, other numbers by value; anything else gets one
    column per value.
    """
    if len(values) == 1:
        return np.zeros((1, 0))
    if not all(isinstance(value, int | float) for value in values):
        return np.eye(len(values)) / np.sqrt(2.0)
    numbers = np.array(values, dtype=np.float64)
    if numbers.min() > 0 and numbers.max() / numbers.min() > 3:
        numbers = np.log2(numbers)
    spread = float(numbers.max() - numbers.min()) or 1.0
    return ((numbers - numbers.min()) / spread)[:, None]


def halvings(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """float64[values, 1] in [0, 1]: how many times each size can be halved, for sizes with a different order by that.

    No column (float64[values, 0]) if it carries no information: fewer than four values, anything but positive integers,
    only powers of two, or all divisible equally often.
    """
    if len(values) < 4 or not all(type(value) is int and value > 0 for value in values):
        return np.zeros((len(values), 0))
    powers = np.log2([value & -value for value in values])
    if not np.ptp(powers) or np.array_equal(powers, np.log2(values)):
        return np.zeros((len(values), 0))
    found: npt.NDArray[np.float64] = ((powers - powers.min()) / np.ptp(powers))[:, None]
    return found

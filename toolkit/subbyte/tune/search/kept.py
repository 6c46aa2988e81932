"""Which mutants the diversity rule kept and dropped: recorded during a search, and never used by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.tune.search.grid import Grid, Indices
from subbyte.tune.search.quality import Distinctness

EVERY = 10
"""Every tenth step of a walk is recorded."""

_Step = tuple[Indices, Indices, npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Selection:
    """The mutants behind one plan, in every tenth step of the walk.

    ``results``: results the model had learned from; ``steps`` recorded, with ``mutants`` in total, of which ``kept``
    were kept. ``proposed_values`` and ``kept_values`` count the values of each knob among them, in the order of the
    knob's values. ``copies`` are mutants equal to an earlier one of the same step, ``copies_kept`` those of them that
    were kept. ``hamming`` is the mean fraction of knobs in which two mutants of a step differ, ``hamming_kept`` the
    same for two kept ones. ``first``: the first step, as (parent, mutant, kept).
    """

    results: int
    steps: int
    mutants: int
    kept: int
    proposed_values: tuple[tuple[int, ...], ...]
    kept_values: tuple[tuple[int, ...], ...]
    copies: int
    copies_kept: int
    hamming: float
    hamming_kept: float
    first: tuple[tuple[int, int, bool], ...]

    @classmethod
    def of(cls, results: int, steps: Iterable[_Step], grid: Grid) -> Selection:
        """From the recorded steps: parents [n], their mutants [2n] (i and n + i are parent i's), bool[2n] of the
        kept."""
        noted = list(steps)
        mutants, kept = (np.concatenate([step[place] for step in noted]) for place in (1, 2))
        digits = grid.digits(mutants)
        sizes = grid.dims.tolist()
        counted = [[tuple(np.bincount(rows[:, k], minlength=size).tolist()) for k, size in enumerate(sizes)]
                   for rows in (digits, digits[kept])]  # fmt: skip
        again = [_repeated(step[1]) for step in noted]
        apart = [[Distinctness.of(grid.digits(rows)).hamming for rows in (step[1], step[1][step[2]])] for step in noted]
        parents, own, chosen = noted[0]
        first = tuple(zip(np.tile(parents, 2).tolist(), own.tolist(), chosen.tolist(), strict=True))
        return cls(
            results, len(noted), len(mutants), int(kept.sum()), tuple(counted[0]), tuple(counted[1]),
            int(sum(rows.sum() for rows in again)),
            int(sum((rows & step[2]).sum() for rows, step in zip(again, noted, strict=True))),
            float(np.mean([pair[0] for pair in apart])), float(np.mean([pair[1] for pair in apart])), first,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


class SelectionLog:
    """The selections of a search by plan."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._steps: dict[int, list[_Step]] = {}
        self._walked = 0
        self._made: dict[int, Selection] = {}

    def note(self, results: int, points: Indices, mutants: Indices, kept: npt.NDArray[np.bool_]) -> None:
        """Record one step of the walk made after ``results`` results: parents [n], mutants [2n], kept bool[2n]."""
        if results not in self._steps:
            self._steps[results] = []
            self._walked = 0
        if self._walked % EVERY == 0:
            self._steps[results].append((points.copy(), mutants.copy(), kept.copy()))
        self._walked += 1

    @property
    def plans(self) -> tuple[Selection, ...]:
        """One selection per plan, in order; computed on first access, so that the search itself is not slowed down."""
        for results, steps in list(self._steps.items()):
            noted = list(steps)
            if noted and (results not in self._made or self._made[results].steps < len(noted)):
                self._made[results] = Selection.of(results, noted, self._grid)
        return tuple(self._made[results] for results in sorted(self._made))


def _repeated(indices: Indices) -> npt.NDArray[np.bool_]:
    """bool[n]: which indices occurred earlier in the list."""
    again = np.ones(len(indices), dtype=bool)
    again[np.unique(indices, return_index=True)[1]] = False
    return again

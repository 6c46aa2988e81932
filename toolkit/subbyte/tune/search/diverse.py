"""``diverse``: AutoTVM's search with the diversity-aware explorer of Choi et al. 2022, section 3.4.

Each walker makes two mutants; the more different half of all mutants is kept, and competes with the
parents. The model scores only the kept half, so it is asked as many questions as in ``autotvm``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subbyte.records.describe import SpaceLike
from subbyte.tune.search.autotvm import AutoTvm
from subbyte.tune.search.grid import Indices
from subbyte.tune.search.kept import SelectionLog
from subbyte.tune.search.selection import coordinates, main_effects, pair_globally, pick_distant, pick_novel
from subbyte.tune.strategy import Option, choice

SCOPES = ("global", "parent", "pooled")
REFERENCES = ("children", "parents", "measured")
MEASURES = ("novelty", "distance", "outcome", "random", "score")


class Diverse(AutoTvm):
    """autotvm with two mutants per parent in the annealing; the more diverse half is kept.

    ``scope``: ``global`` keeps half of all mutants and pairs a parent with its own mutant where one is left, ``parent``
    keeps one of the two mutants of each parent, ``pooled`` keeps half of all and pairs at random. ``reference``: what a
    mutant should differ from: the mutants picked before it, also the current parents, also everything measured.
    ``measure``: ``novelty`` (rare knob values), ``distance`` (farthest point), ``outcome`` (farthest point, knobs
    weighted by their effect on the model's score); and two controls that ignore diversity: ``random`` (with scope
    ``parent`` distributed exactly as ``autotvm``) and ``score`` (the better predicted half).
    """

    name: ClassVar[str] = "diverse"
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        **AutoTvm.OPTIONS,
        "scope": Option(choice(*SCOPES), "global", "which half is kept: of all mutants, of each parent's, pooled"),
        "reference": Option(
            choice(*REFERENCES), "children", "what mutants should differ from, in addition to each other"
        ),
        "measure": Option(choice(*MEASURES), "novelty", "what diversity is; random and score are controls"),
    }

    def __init__(
        self,
        space: SpaceLike,
        seed: int,
        scope: str = "global",
        reference: str = "children",
        measure: str = "novelty",
        **options: Any,
    ) -> None:
        super().__init__(space, seed, **options)
        self.options = {**self.options, "scope": scope, "reference": reference, "measure": measure}
        self.selection = SelectionLog(self._grid)
        """Which mutants were kept and dropped."""

    def rivals(self, points: Indices) -> Indices:
        """The kept mutant that each point competes with."""
        n = len(points)
        mutants = np.concatenate([super().rivals(points), super().rivals(points)])
        scope = self.options["scope"]
        kept = np.zeros(2 * n, dtype=bool)
        if scope == "parent":
            own = np.where(self._second_better(points, mutants), np.arange(n) + n, np.arange(n))
            kept[own] = True
        else:
            kept[self._half(points, mutants)] = True
        self.selection.note(len(self._indices), points, mutants, kept)
        if scope == "parent":
            return mutants[own]
        if scope == "pooled":
            return self._rng.permutation(mutants[kept])
        return mutants[pair_globally(kept, self._rng)]

    # ---- the kept half -----------------------------------------------------------------------------------------

    def _half(self, points: Indices, mutants: Indices) -> npt.NDArray[np.int64]:
        """Positions of the half of the mutants [2n] that is kept."""
        measure, half = self.options["measure"], len(points)
        if measure == "random":
            return self._rng.permutation(2 * half)[:half]
        if measure == "score":
            return np.argsort(-self.scores(mutants), kind="stable")[:half]
        shuffled = self._rng.permutation(2 * half)  # so that ties do not depend on position
        reference = self._reference(points)
        digits = self._grid.digits(mutants[shuffled])
        if measure == "novelty":
            return shuffled[pick_novel(digits, self._grid.digits(reference), half)]
        weights = self._weights()
        place = coordinates(self._grid, digits, weights)
        away = coordinates(self._grid, self._grid.digits(reference), weights)
        return shuffled[pick_distant(place, away, half)]

    def _second_better(self, points: Indices, mutants: Indices) -> npt.NDArray[np.bool_]:
        """bool[n]: which parents keep their second mutant."""
        measure, n = self.options["measure"], len(points)
        if measure == "random":
            return self._rng.random(n) < 0.5
        scores = self.scores(mutants) if measure == "score" else self._novelty_alone(points, mutants)
        ties = self._rng.random(n) < 0.5
        return np.where(scores[n:] == scores[:n], ties, scores[n:] > scores[:n])

    def _novelty_alone(self, points: Indices, mutants: Indices) -> npt.NDArray[np.float64]:
        """How different each mutant [2n] is from the reference set and the other parents' mutants."""
        reference, digits = self._reference(points), self._grid.digits(mutants)
        if self.options["measure"] == "novelty":
            pool = np.concatenate([digits, self._grid.digits(reference)])
            gains = np.zeros(len(digits))
            for knob in range(digits.shape[1]):
                gains += 1.0 / np.bincount(pool[:, knob])[digits[:, knob]]
            return gains
        weights = self._weights()
        place = coordinates(self._grid, digits, weights)
        away = coordinates(self._grid, self._grid.digits(reference), weights)
        others = np.concatenate([place, away])
        gaps = np.zeros((len(place), len(others)))
        for column in range(place.shape[1]):
            gaps += np.abs(place[:, column, None] - others[None, :, column])
        own, n = np.arange(len(place)), len(points)
        gaps[own, own] = gaps[own, (own + n) % (2 * n)] = np.inf
        if len(away) >= n and self.options["reference"] != "children":
            gaps[own, 2 * n + own % n] = np.inf  # its own parent is left out: every mutant is one knob away from it
        return gaps.min(axis=1)

    def _reference(self, points: Indices) -> Indices:
        sets = [points, np.array(self._indices, dtype=np.int64)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *sets[: REFERENCES.index(self.options["reference"])]])

    def _weights(self) -> npt.NDArray[np.float64] | None:
        if self.options["measure"] != "outcome":
            return None
        known = self._grid.valid if self._table is not None else np.array(self._indices, dtype=np.int64)
        return main_effects(self._grid.digits(known), self.scores(known))

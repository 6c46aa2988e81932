"""``genetic``: a population with crossover and mutation; no model, only measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from subbyte.records.describe import SpaceLike
from subbyte.records.result import Measured, Result
from subbyte.tune.search.autotvm import whole
from subbyte.tune.search.grid import Grid, grid_of
from subbyte.tune.search.quality import Proposal
from subbyte.tune.strategy import Option

_TRIES = 60


class Genetic:
    """A population of the fastest with crossover and mutation; no model.

    The population is the ``population`` fastest results so far. A child takes each knob from one of two parents, which
    are drawn with odds that fall linearly with rank; then each knob mutates with a probability of one in ``mutation``.
    Children that are rejected, or were proposed before, are drawn again, with one forced mutation from the tenth draw
    on.
    """

    name: ClassVar[str] = "genetic"
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "population": Option(whole(2), 20, "configurations that may be parents; as many random ones come first"),
        "mutation": Option(whole(1), 10, "one knob in this many mutates"),
    }

    def __init__(self, space: SpaceLike, seed: int, population: int = 20, mutation: int = 10) -> None:
        self.options: Mapping[str, Any] = {"population": population, "mutation": mutation}
        self.proposals: dict[int, Proposal] = {}
        """Why each index was proposed."""
        self._space = space
        self._grid: Grid = grid_of(space)
        self._rng = np.random.default_rng([seed, 20])
        self._visited: set[int] = set()
        self._asked = 0
        self._parents: list[tuple[float, int]] = []

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices."""
        found: list[int] = []
        for _ in range(n):
            index = self._child() if self._asked >= self.options["population"] else None
            origin = "random" if index is None else "child"
            if index is None:
                drawn = self._grid.sample(1, self._rng, self._space, self._visited)
                if not len(drawn):
                    break
                index = int(drawn[0])
            self._visited.add(index)
            self._asked += 1
            self.proposals[index] = Proposal(origin)
            found.append(index)
        return found

    def tell(self, index: int, result: Result) -> None:
        """Learn a result; failures do not become parents."""
        self._visited.add(index)
        if isinstance(result, Measured):
            ranked = sorted([*self._parents, (result.microseconds, index)])
            self._parents = ranked[: self.options["population"]]

    def _child(self) -> int | None:
        """A new valid child; None if none was found."""
        count = len(self._parents)
        if count < 2:
            return None
        digits = self._grid.digits([index for _, index in self._parents])
        odds = np.arange(count, 0, -1) / (count * (count + 1) / 2)
        knobs = len(self._grid.dims)
        for turn in range(_TRIES):
            mother, father = self._rng.choice(count, 2, replace=False, p=odds)
            child = np.where(self._rng.random(knobs) < 0.5, digits[mother], digits[father])
            mutates = self._rng.random(knobs) < 1.0 / self.options["mutation"]
            if turn >= 10:
                mutates[self._rng.integers(knobs)] = True
            child = np.where(mutates, self._rng.integers(self._grid.dims), child)
            index = int(self._grid.indices(child))
            if index not in self._visited and bool(self._grid.is_valid([index], self._space)[0]):
                return index
        return None

"""``autotvm``: the tuner of AutoTVM as of 2022 with the settings of Choi et al. 2022, section 4.1.

Of every 32 trials 31 come from the plan, best predicted first, and one is random. After every 32 results the cost
model is refitted to all of them, and simulated annealing over its scores makes the next plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from subbyte.errors import InvalidInput
from subbyte.records.describe import SpaceLike
from subbyte.records.result import Measured, Result
from subbyte.tune.search.annealing import Annealing, Scores, anneal
from subbyte.tune.search.cost_model import LOSSES, BoostedTrees
from subbyte.tune.search.features import KINDS, Features
from subbyte.tune.search.grid import Grid, Indices, grid_of
from subbyte.tune.search.quality import BatchQuality, Proposal, QualityLog
from subbyte.tune.strategy import Option, choice

RANDOM_SHARE = 0.05
"""Fraction of the plan size (rounded down) that is drawn at random at the end of every plan."""


def whole(least: int) -> Callable[[Any], int]:
    """A parser for integer options of at least ``least``."""

    def parse(value: Any) -> int:
        if int(value) < least:
            raise InvalidInput(f"must be an integer of at least {least}")
        return int(value)

    return parse


class AutoTvm:
    """AutoTVM's search of 2022: plans by annealing over a cost model that is refitted after each.

    With ``filter`` > 1 also its diversity filter: annealing collects ``filter`` plans' worth of points, of which those
    with the most knob values not picked yet are kept.
    """

    name: ClassVar[str] = "autotvm"
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "plan": Option(whole(1), 32, "configurations planned, and results between two fits of the cost model"),
        "loss": Option(choice(*LOSSES), "rank", "objective of the cost model: rank (as in 2022), reg, rank-native"),
        "features": Option(
            choice(*KINDS), "knob", "what the model sees: knob values, or also loops and traffic (plan)"
        ),
        "filter": Option(whole(1), 1, "AutoTVM's diversity filter ratio; 1 is off"),
    }

    def __init__(
        self,
        space: SpaceLike,
        seed: int,
        plan: int = 32,
        loss: str = "rank",
        features: str = "knob",
        filter: int = 1,  # noqa: A002
    ) -> None:
        self.options: Mapping[str, Any] = {"plan": plan, "loss": loss, "features": features, "filter": filter}
        self.annealing = Annealing()
        self.quality = QualityLog()
        """How well each fit predicted the next batch."""
        self.proposals: dict[int, Proposal] = {}
        """Why each index was proposed."""
        self._space = space
        self._grid: Grid = grid_of(space)
        self._features = Features(space, features)
        self._rng = np.random.default_rng([seed, 32])
        self._model = BoostedTrees(loss, seed)
        self._visited: set[int] = set()
        self._indices: list[int] = []
        self._speeds: list[float] = []
        self._fits = 0
        self._plan: list[int] = []
        self._next = 0
        self._points: Indices | None = None
        self._table: Scores | None = None

    # ---- ask and tell ------------------------------------------------------------------------------------------

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices: planned ones, then random ones."""
        size = int(self.options["plan"])
        if len(self._indices) >= size * (self._fits + 1) and max(self._speeds, default=0.0) > 0:
            self._fit()
            self._replan(size)
        found: list[int] = []
        origins: list[str] = []
        while len(found) < n:
            index = self._planned(size)
            origins.append("random" if index is None else "plan")
            if index is None:
                drawn = self._grid.sample(1, self._rng, self._space, self._visited)
                if not len(drawn):
                    break
                index = int(drawn[0])
            found.append(index)
            self._visited.add(index)
        self._note(found, origins)
        return found

    def tell(self, index: int, result: Result) -> None:
        """Learn a result; a failure counts as speed 0."""
        self._visited.add(index)
        self._indices.append(index)
        self._speeds.append(1.0 / result.microseconds if isinstance(result, Measured) else 0.0)

    def _note(self, found: list[int], origins: list[str]) -> None:
        scores = self.scores(np.array(found, dtype=np.int64)).tolist() if self._fits and found else [None] * len(found)
        for index, origin, score in zip(found, origins, scores, strict=False):
            self.proposals[index] = Proposal(origin, score, self._fits)

    def _planned(self, size: int) -> int | None:
        """The next unvisited planned index; None when it is time for random ones."""
        while self._next < len(self._plan) and self._plan[self._next] in self._visited:
            self._next += 1
        return None if self._next >= len(self._plan) - int(RANDOM_SHARE * size) else self._plan[self._next]

    # ---- learning ----------------------------------------------------------------------------------------------

    def _fit(self) -> None:
        begin = len(self._indices) - int(self.options["plan"])
        if self._fits:
            batch = self._indices[begin:]
            scores = self.scores(np.array(batch, dtype=np.int64))
            self.quality.add(BatchQuality.of(scores, self._speeds[begin:], self._grid.digits(batch)))
        self._model.fit(self._features(self._indices), np.array(self._speeds), int(self.options["plan"]))
        self._fits += 1
        whole_space = self._features.whole
        self._table = self._model.predict(whole_space) if whole_space is not None else None

    def scores(self, indices: Indices) -> Scores:
        """The model's scores [n] for valid indices [n]; a listed space is scored as a whole once per fit.
        Raises InvalidInput before the first fit."""
        if not self._fits:
            raise InvalidInput("the cost model has not been fitted yet: tell at least one plan of results")
        if self._table is not None:
            return self._table[self._grid.rows(indices)]
        return self._model.predict(self._features(indices))

    def rivals(self, points: Indices) -> Indices:
        """The mutant that each point competes with."""
        return self._grid.mutate(points, self._rng, self._space)

    def _replan(self, size: int) -> None:
        if self._points is None:
            self._points = self._grid.sample(self.annealing.points, self._rng, self._space)
        ratio = int(self.options["filter"])
        done = anneal(
            self._points, self.scores, self.rivals, self._rng.random, size * ratio, self._visited, self.annealing
        )
        self._points = done.points
        self._plan = list(done.plan)
        if ratio > 1:
            self._plan = [self._plan[place] for place in submodular_pick(self._grid.digits(self._plan), size)]
        self._next = 0


def submodular_pick(digits: Any, count: int) -> list[int]:
    """AutoTVM's filter: positions of ``count`` rows of knob digits [n, knobs], each the first of those with the most
    values that no picked row has. Once every value is covered all gains are 0, and the list's order decides."""
    left = list(range(len(digits)))
    seen: list[set[int]] = [set() for _ in range(digits.shape[1])]
    picked: list[int] = []
    while left and len(picked) < count:
        gains = [sum(int(value) not in seen[knob] for knob, value in enumerate(digits[place])) for place in left]
        place = left.pop(int(np.argmax(gains)))
        picked.append(place)
        for knob, value in enumerate(digits[place]):
            seen[knob].add(int(value))
    return picked

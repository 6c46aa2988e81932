"""``auto``, the default: a few distant configurations, then a Gaussian process, boosted trees and the neighbours of the
best, side by side.

1. The first ``start`` configurations are far apart. If configurations have a plan, they come from the eighth of
   the space with the best cycle estimates, otherwise from random ones.
2. Then two models are refitted to all results every few trials. An ensemble of boosted trees learns the speed relative
   to the best (0 for failures) from the knobs and, if there is a plan, from its loops and traffic. A Gaussian
   process learns the logarithm of the time, and the probability of failure, from the knobs (and the plan's estimate).
3. Of all proposals, ``smooth`` percent have the greatest improvement expected by the process, and ``model`` percent
   the best prediction of the trees, mean plus half a deviation. The others are random one-knob neighbours of the
   fastest results: the optimum of a kernel is often a spike that no model of a hundred results can see, but it is
   rarely far from other good configurations.
4. When nothing better has been found for a while, ``wide`` percent of them go where no model would look: into the
   largest parts of the space, by the values of two and three knobs, in which nothing was measured.

Its few settings are round numbers, chosen on recorded landscapes. The estimate that ranks configurations with a
plan was fitted to recorded times of other layers (``families/wgmma/model.json``); ``prior=off`` disables it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subbyte.errors import InvalidInput
from subbyte.records.describe import SpaceLike
from subbyte.records.result import Measured, Result
from subbyte.tune.search.autotvm import whole
from subbyte.tune.search.coverage import Coverage
from subbyte.tune.search.ensemble import Ensemble
from subbyte.tune.search.features import Features
from subbyte.tune.search.gaussian import GaussianProcess, Places
from subbyte.tune.search.grid import Grid, Indices, grid_of
from subbyte.tune.search.quality import BatchQuality, Proposal, QualityLog
from subbyte.tune.search.selection import coordinates
from subbyte.tune.strategy import Option, choice

BATCH = 8
"""The most configurations planned ahead between two fits; fewer at first, and from 128 results on a
sixteenth of their number."""
RESULTS_EACH = 12
"""Results needed for each configuration asked for at a time: with few results, one more teaches much."""
CANDIDATES = 4000
"""Random candidates that the trees score per fit if that is cheap: the space is listed, and its features are known
or include no plans."""
WEIGHED, LIKED = 1500, 500
"""Candidates that the process considers, and how many of these are the trees' favourites."""
POOL, FRESH = 2000, 100
"""Otherwise: size of a random pool, and how many join it per fit."""
ELITES = 5
"""Fastest results whose neighbours are tried."""
FAVOURED = 0.12
"""Fraction of the space, best by estimate, from which the first configurations come."""
OPTIMISM = 0.5
"""Standard deviations of the ensemble added to its mean."""
FAILED = 0.8
"""Failures count as this quantile of the logarithms of the times."""
SLOW = 0.3
"""Times above the median are compressed to within this fraction: how slow the slow ones are does not help."""
STALLED = 16
"""Results without a better one after which a search stalls."""
UNSEEN = 1000
"""Number of candidates from which the most unseen one is taken."""
WAITING = 64
"""The most configurations without a result that are taken into account."""
_AMONG = {True: 50, False: 4}
"""Each of the first configurations is the farthest of this many random ones: of the favoured ones, or of a whole space.
More would fill a whole space's corners, where kernels are seldom fast."""
_POOL = 400


class Auto:
    """The default: a Gaussian process, boosted trees and the neighbours of the best, side by side."""

    name: ClassVar[str] = "auto"
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "start": Option(whole(2), 8, "configurations before the first fit"),
        "smooth": Option(whole(0), 75, "percent of a batch that the Gaussian process picks"),
        "model": Option(whole(0), 25, "percent of a batch that the trees pick; the rest are neighbours of the best"),
        "wide": Option(
            whole(0), 25, "percent of the proposals of a search that stalls that go where nothing was measured"
        ),
        "trees": Option(whole(1), 3, "members of the ensemble"),
        "prior": Option(choice("on", "off"), "on", "use the plan where there is one: cycle estimate, loops, traffic"),
    }

    def __init__(
        self,
        space: SpaceLike,
        seed: int,
        start: int = 8,
        smooth: int = 75,
        model: int = 25,
        wide: int = 25,
        trees: int = 3,
        prior: str = "on",
    ) -> None:
        if smooth + model > 100:
            raise InvalidInput(f"smooth={smooth} and model={model} are percent of one batch: at most 100 together")
        if wide > 100:
            raise InvalidInput(f"wide={wide}: percent of the proposals, at most 100")
        self.options: Mapping[str, Any] = {
            "start": start, "smooth": smooth, "model": model, "wide": wide, "trees": trees, "prior": prior,
        }  # fmt: skip
        self.quality = QualityLog()
        """How well each fit predicted the next batch."""
        self.proposals: dict[int, Proposal] = {}
        """Why each index was proposed."""
        self._fits = 0
        self._space = space
        self._grid: Grid = grid_of(space)
        self._features = Features(space, "plan" if prior == "on" else "knob", self._grid)
        self._rng = np.random.default_rng([seed, 8])
        self._model = Ensemble(trees)
        self._hinted = "estimate" in self._features.names
        self._places = Places(self._grid.values, int(self._hinted))
        self._process = GaussianProcess(self._places.groups, self._places.lengths)
        self._visited: set[int] = set()
        self._whole = self._grid.listed and (self._features.whole is not None or "estimate" not in self._features.names)
        self._open = np.ones(len(self._grid.valid), dtype=bool)
        self._pool: Indices = np.zeros(0, dtype=np.int64)
        self._indices: list[int] = []
        self._times: list[float] = []
        self._fitted = 0
        self._queue: list[int] = []
        self._owed = dict.fromkeys(("smooth", "model", "neighbour", "wide"), 0.0)
        self._coverage = Coverage(self._grid.dims)
        self._better = 0
        """The number of results when the best one came."""

    # ---- ask and tell ------------------------------------------------------------------------------------------

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices."""
        found: list[int] = []
        while len(found) < n:
            if not self._queue:
                seen = len(self._indices) // 16
                self._queue = self._propose(max(n - len(found), min(BATCH, 1 + seen), seen))
                if not self._queue:
                    break
            index = self._queue.pop(0)
            if index not in self._visited:
                found.append(index)
                self._visit(index)
        return found

    def tell(self, index: int, result: Result) -> None:
        """Learn a result; a failure counts as infinitely slow."""
        self._visit(index)
        time = result.microseconds if isinstance(result, Measured) else float("inf")
        if time < min(self._times, default=float("inf")):
            self._better = len(self._times)
        self._indices.append(index)
        self._times.append(time)

    @property
    def next_batch(self) -> int:
        """How many to ask for at a time now."""
        told = len(self._times)
        return max(1, told // RESULTS_EACH) if told >= self.options["start"] else self.options["start"] - told

    def scores(self, indices: Indices) -> npt.NDArray[np.float64]:
        """Predicted speeds [n] relative to the best, for valid indices [n]. Raises InvalidInput before the first
        fit."""
        return self._model.predict(self._features(indices))[0]

    def _visit(self, index: int) -> None:
        self._visited.add(index)
        self._coverage.see(self._grid.digits([index]))
        if self._grid.listed and bool(self._grid.is_valid([index], self._space)[0]):
            self._open[self._grid.rows([index])] = False

    def _propose(self, count: int) -> list[int]:
        if len(self._visited) < self.options["start"]:
            return self._spread(min(count, self.options["start"] - len(self._visited)))
        if sum(np.isfinite(self._times)) < 4:
            return self._spread(count)
        return self._search(count)

    # ---- first configurations ------------------------------------------------------------------------------------

    def _spread(self, count: int) -> list[int]:
        """Configurations far from each other and from those seen, among the favoured ones or random ones."""
        pool = self._favoured()
        among = _AMONG[pool is not None]
        if pool is None:
            pool = self._grid.sample(_POOL, self._rng, self._space, self._visited)
        place = coordinates(self._grid, self._grid.digits(pool))
        seen = coordinates(self._grid, self._grid.digits(sorted(self._visited)))
        nearest = np.full(len(pool), 1e3)
        for row in seen:
            nearest = np.minimum(nearest, np.abs(place - row).sum(axis=1))
        picked: list[int] = []
        for _ in range(min(count, len(pool))):
            some = self._rng.permutation(len(pool))[:among]
            best = int(some[np.argmax(nearest[some])])
            picked.append(int(pool[best]))
            nearest = np.minimum(nearest, np.abs(place - place[best]).sum(axis=1))
            nearest[best] = -1.0
        self.proposals |= {index: Proposal("start") for index in picked}
        return list(dict.fromkeys(picked))

    def _favoured(self) -> Indices | None:
        """Unvisited candidates with the smallest cycle estimates, best first; None without plans."""
        names = self._features.names
        if "estimate" not in names:
            return None
        candidates = self._candidates(0)
        order = np.argsort(self._features(candidates)[:, names.index("estimate")], kind="stable")
        return candidates[order[: max(2 * BATCH, int(FAVOURED * len(candidates)))]]

    # ---- model and neighbours ------------------------------------------------------------------------------------

    def _search(self, count: int) -> list[int]:
        self._fit()
        near = self._fresh(self._around())
        candidates = np.unique(np.concatenate([near, self._candidates(FRESH)]))
        if not len(candidates):
            return []
        mean, deviation = self._model.predict(self._features(candidates))
        ranked = candidates[np.argsort(-(mean + OPTIMISM * deviation), kind="stable")]
        origins: dict[int, str] = {}
        due = self._due(count)
        for origin, number, liked in (
            ("model", due["smooth"], lambda: self._improving(due["smooth"], near, ranked)),
            ("model", due["model"], ranked.tolist),
            ("unseen", due["wide"], lambda: self._unseen(candidates, due["wide"])),
            ("neighbour", count, lambda: self._rng.permutation(near).tolist()),
            ("model", count, ranked.tolist),
        ):
            fresh = [index for index in liked() if index not in origins] if number else []
            origins.update(dict.fromkeys(fresh[: min(number, count - len(origins))], origin))
        scores = dict(zip(candidates.tolist(), mean.tolist(), strict=True))
        self.proposals |= {index: Proposal(origin, scores[index], self._fits) for index, origin in origins.items()}
        return list(origins)

    def _due(self, count: int) -> dict[str, int]:
        """How many of ``count`` each source picks, so that each gets its share even over small batches."""
        smooth, model = self.options["smooth"], self.options["model"]
        wide = self.options["wide"] if len(self._times) - self._better > STALLED else 0
        shares = {"smooth": smooth, "model": model, "neighbour": 100 - smooth - model}
        shares = {part: share * (1 - wide / 100) for part, share in shares.items()} | {"wide": wide}
        picks = dict.fromkeys(shares, 0)
        for _ in range(count):
            for part, share in shares.items():
                self._owed[part] += share / 100
            part = max(shares, key=self._owed.__getitem__)
            self._owed[part] -= 1.0
            picks[part] += 1
        return picks

    def _unseen(self, candidates: Indices, count: int) -> list[int]:
        """Candidates with the most weight in combinations of knob values that were never measured."""
        some = self._rng.choice(candidates, min(len(candidates), UNSEEN), replace=False)
        return some[self._coverage.pick(self._grid.digits(some), count)].tolist()

    def _improving(self, count: int, near: Indices, ranked: Indices) -> list[int]:
        """Candidates with the greatest improvement expected by the process, chosen from neighbours, the trees'
        favourites and random ones."""
        rest = ranked[LIKED:]
        drawn = self._rng.choice(rest, min(len(rest), WEIGHED - LIKED), replace=False)
        weighed = np.unique(np.concatenate([near, ranked[:LIKED], drawn]))
        costs, worked = self._costs()
        targets = costs[:, None] if worked.all() else np.stack([costs, worked.astype(np.float64)], axis=1)
        self._process.fit(self._place(self._indices), targets)
        waiting = sorted(self._visited - set(self._indices))[:WAITING]
        places = self._place(weighed), self._place(waiting) if waiting else None
        return weighed[self._process.pick(places[0], count, float(costs[worked].min()), places[1])].tolist()

    def _costs(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """The process's training targets [n], and which results succeeded: logarithms of the times, with the slow half
        compressed."""
        times = np.array(self._times)
        worked = np.isfinite(times)
        costs = np.log(np.where(worked, times, 1.0))
        middle = np.median(costs[worked])
        costs = np.where(costs > middle, middle + SLOW * (costs - middle), costs)
        costs[~worked] = np.quantile(costs[worked], FAILED)
        return costs, worked

    def _place(self, indices: Indices | Sequence[int]) -> npt.NDArray[np.float64]:
        """Coordinates [n, columns] for the process; a unit is half of the estimate's doublings."""
        hint = None
        if self._hinted:
            column = self._features.names.index("estimate")
            hint = self._features(indices)[:, column : column + 1].astype(np.float64) / 2.0
        return self._places(self._grid.digits(indices), hint)

    def _fit(self) -> None:
        times = np.array(self._times)
        speeds = times[np.isfinite(times)].min() / times
        if self._fitted and len(times) > self._fitted:
            batch = self._indices[self._fitted :]
            scores = self.scores(np.array(batch, dtype=np.int64))
            found = speeds[self._fitted :].tolist()
            self.quality.add(BatchQuality.of(scores, found, self._grid.digits(batch)))
        self._model.fit(self._features(self._indices), speeds, int(self._rng.integers(1 << 30)))
        self._fitted = len(times)
        self._fits += 1

    def _around(self) -> Iterable[int]:
        """One-knob neighbours of the fastest results."""
        best = np.argsort(self._times, kind="stable")[:ELITES].tolist()
        elites = [self._indices[place] for place in best if np.isfinite(self._times[place])]
        return np.concatenate([self._grid.neighbours(index) for index in elites]).tolist()

    def _fresh(self, indices: Iterable[int]) -> Indices:
        """The distinct valid indices that were not visited."""
        left = np.array(sorted(set(indices) - self._visited), dtype=np.int64)
        return left[self._grid.is_valid(left, self._space)]

    def _candidates(self, fresh: int) -> Indices:
        """Unvisited valid indices to score: all, or those in a random pool that ``fresh`` new ones join each time."""
        if self._whole:
            left = self._grid.valid[self._open]
            return left if len(left) <= CANDIDATES else self._rng.choice(left, CANDIDATES, replace=False)
        fresh = max(fresh, POOL - len(self._pool))
        if fresh:
            seen = self._visited | set(self._pool.tolist())
            self._pool = np.append(self._pool, self._grid.sample(fresh, self._rng, self._space, seen))
        self._pool = np.array([index for index in self._pool.tolist() if index not in self._visited], dtype=np.int64)
        return self._pool

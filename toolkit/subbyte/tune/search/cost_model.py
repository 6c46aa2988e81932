"""AutoTVM's cost model: gradient-boosted trees on features of a configuration, trained to rank or to regress.

**The ranking loss of 2022 on today's xgboost.** xgboost rewrote ``rank:pairwise`` in 2.0: it samples and normalizes
pairs differently and fits its initial score. ``Pairs`` computes the former objective in numpy and passes its gradient
to xgboost: one group of all rows; each row, in label order, is paired with one row of another label, drawn uniformly; a
pair contributes the logistic loss with twice its curvature. With ``base_score`` 0.5 and the exact tree method (both
former defaults of xgboost), trees and scores follow the former program; only the random numbers that draw the pairs
differ. ``rank-native`` uses the installed xgboost's own ``rank:pairwise`` (one group, one sampled pair per row, no
normalization), ``reg`` squared error.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.errors import MissingDependency
from subbyte.left_out import without

Array = npt.NDArray[np.floating[Any]]

LOSSES = ("rank", "reg", "rank-native")
BASE_SCORE = 0.5
COPY = "subbyte_xgboost"
"""Name of this library's copy of the module."""
ROUNDS = 8000
PATIENCE = 20
_TREES = {
    "max_depth": 3, "gamma": 1e-4, "min_child_weight": 1, "subsample": 1.0, "eta": 0.3, "lambda": 1.0, "alpha": 0.0,
    "base_score": BASE_SCORE, "tree_method": "exact", "nthread": 1, "verbosity": 0, "disable_default_eval_metric": 1,
}  # fmt: skip
_OBJECTIVE: dict[str, dict[str, Any]] = {
    "rank": {},
    "reg": {"objective": "reg:squarederror"},
    "rank-native": {
        "objective": "rank:pairwise", "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1,
        "lambdarank_normalization": False,
    },
}  # fmt: skip


def load_xgboost() -> Any:
    """The xgboost module. Its threads are configured to sleep while they wait: on a busy machine, spinning costs a
    factor of 30. Raises MissingDependency."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return _xgboost()
    except ImportError:
        raise MissingDependency("the cost model needs xgboost: pip install xgboost (or xgboost-cpu)") from None


@cache
def _xgboost() -> Any:
    """The module that is imported already, or a copy of it under another name that does without scikit-learn: importing
    that would take most of the time before the first trees. Whoever imports xgboost later gets all of it."""
    if "xgboost" in sys.modules or "sklearn" in sys.modules or (found := find_spec("xgboost")) is None:
        import xgboost

        return xgboost
    assert found.origin is not None
    spec = spec_from_file_location(COPY, found.origin, submodule_search_locations=found.submodule_search_locations)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[COPY] = module_from_spec(spec)
    with without("sklearn"):
        spec.loader.exec_module(module)
    return module


class BoostedTrees:
    """The model of AutoTVM's XGBTuner: depth 3, up to 8,000 trees, stopped when the recall of the best ``top`` rows of
    the *training* set has not risen for 20 trees; predictions use all trees grown."""

    def __init__(self, loss: str = "rank", seed: int = 0) -> None:
        self.loss = loss
        self.trees = 0
        self._rng = np.random.default_rng(seed)
        self._booster: Any = None

    def fit(self, features: Array, speeds: Array, top: int) -> None:
        """Train on features [n, f] and speeds [n] (0 for failures), scaled by the greatest speed."""
        xgboost = load_xgboost()
        order = self._rng.permutation(len(speeds))
        labels = np.asarray(speeds, dtype=np.float64)[order] / max(float(np.max(speeds)), 1e-8)
        data = xgboost.DMatrix(np.asarray(features, dtype=np.float32)[order], label=labels)
        if self.loss == "rank-native":
            data.set_group([len(labels)])
        parameters = {**_TREES, **_OBJECTIVE[self.loss], "seed": int(self._rng.integers(2**31))}
        pairs = Pairs(data.get_label()) if self.loss == "rank" else None
        booster = xgboost.Booster(parameters, [data])
        scores = booster.predict(data, output_margin=True)
        best, best_round = -1.0, 0
        for number in range(ROUNDS):
            if pairs:  # the scores that the last round was evaluated with: `update` would predict them again
                gradient, curvature = pairs.gradient(scores, self._rng)
                booster.boost(data, iteration=number, grad=gradient, hess=curvature)
            else:
                booster.update(data, number)
            scores = booster.predict(data, output_margin=True)
            reached = average_recall(scores, labels, top)
            if reached > best:
                best, best_round = reached, number
            elif number - best_round >= PATIENCE:
                break
        self.trees, self._booster = number + 1, booster

    def predict(self, features: Array) -> npt.NDArray[np.float64]:
        """Scores [n] of features [n, f]; higher is faster."""
        xgboost = load_xgboost()
        data = np.asarray(features, dtype=np.float32)
        return np.asarray(self._booster.predict(xgboost.DMatrix(data), output_margin=True), dtype=np.float64)


class Pairs:
    """The pairwise ranking loss as xgboost before 2.0 had it, one group of rows with labels [n].

    Rows of equal label form a bucket; each row draws one partner outside its bucket.
    """

    def __init__(self, labels: Array) -> None:
        order = np.argsort(-labels, kind="stable")
        ranked = -labels[order]
        begin = np.searchsorted(ranked, ranked, side="left")
        end = np.searchsorted(ranked, ranked, side="right")
        some = len(order) - (end - begin) > 0
        self._order, self._place = order, np.arange(len(order))[some]
        self._begin, self._bucket = begin[some], (end - begin)[some]
        self._outside = len(order) - self._bucket

    def gradient(self, scores: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Gradient and curvature [n] of the loss at scores [n], with newly drawn partners."""
        rows = len(self._order)
        if not len(self._place):
            return np.zeros(rows), np.zeros(rows)
        drawn = rng.integers(self._outside)
        before = drawn < self._begin
        partner = np.where(before, drawn, drawn + self._bucket)
        winner = self._order[np.where(before, partner, self._place)]
        loser = self._order[np.where(before, self._place, partner)]
        chance = 1.0 / (1.0 + np.exp(-(scores[winner] - scores[loser]).astype(np.float64)))
        pull = chance - 1.0
        bend = 2.0 * np.maximum(chance * (1.0 - chance), 1e-16)
        both = np.concatenate([winner, loser])
        gradient = np.bincount(both, np.concatenate([pull, -pull]), minlength=rows)
        curvature = np.bincount(both, np.concatenate([bend, bend]), minlength=rows)
        return gradient.astype(np.float64, copy=False), curvature.astype(np.float64, copy=False)


def pairwise_gradient(scores: Array, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Gradient and curvature [n] of the pairwise ranking loss of :class:`Pairs` at scores [n] and labels [n]."""
    return Pairs(labels).gradient(scores, rng)


def average_recall(scores: Array, labels: Array, top: int) -> float:
    """AutoTVM's a-recall: the mean over i < ``top`` of #{j < i : rank_j <= i} / (i + 1), where rank_j is the true rank
    (from 0) of the row predicted j-th. Rows with equal labels rank as predicted."""
    predicted = np.argsort(-scores, kind="stable")
    rank = np.empty(len(labels), dtype=np.int64)
    rank[np.argsort(-labels[predicted], kind="stable")] = np.arange(len(labels))
    # Row j is found from the i-th term on, where i is the greater of its true rank and the position after its own.
    first = np.maximum(np.arange(len(rank)) + 1, rank)
    found = np.cumsum(np.bincount(first[first < top], minlength=top)[:top])[: len(rank)]
    return float(np.sum(found / np.arange(1, len(found) + 1)) / top)

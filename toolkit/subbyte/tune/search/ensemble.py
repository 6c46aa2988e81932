"""An ensemble of boosted regression trees: a mean, and how far its members disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.errors import InvalidInput
from subbyte.tune.search.cost_model import load_xgboost

ROUNDS = 40
_TREES = {
    "max_depth": 5, "eta": 0.3, "lambda": 0.1, "subsample": 0.8, "colsample_bytree": 0.8, "tree_method": "exact",
    "nthread": 1, "verbosity": 0,
}  # fmt: skip
"""Little regularization: replayed times have little noise, and the fastest configurations are alone in their leaves."""


class Ensemble:
    """``members`` boosters that differ in the rows and columns their trees are grown on."""

    def __init__(self, members: int = 3) -> None:
        self._members = members
        self._boosters: list[Any] = []

    def fit(self, features: npt.NDArray[np.float32], targets: npt.NDArray[np.float64], seed: int) -> None:
        """Train on features [n, f] and targets [n]."""
        xgboost = load_xgboost()
        data = xgboost.DMatrix(features, label=targets)
        base = float(np.mean(targets))
        self._boosters = [
            xgboost.Booster({**_TREES, "base_score": base, "seed": seed + member}, [data])
            for member in range(self._members)
        ]
        for booster in self._boosters:  # as xgboost.train does, whose callbacks would take a quarter of the time
            for number in range(ROUNDS):
                booster.update(data, number)

    def predict(self, features: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean [n] and standard deviation [n] of the members. Raises InvalidInput before the first fit."""
        if not self._boosters:
            raise InvalidInput("the cost model has not been fitted yet: tell more results first")
        data = load_xgboost().DMatrix(features)
        predicted = np.array([booster.predict(data) for booster in self._boosters], dtype=np.float64)
        return predicted.mean(axis=0), predicted.std(axis=0)

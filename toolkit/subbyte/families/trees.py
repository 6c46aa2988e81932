"""A sum of decision trees evaluated with NumPy: all that is needed to use a model that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Trees:
    """Complete trees of the same depth: nodes [trees, 2^depth - 1] in level order, leaves [trees, 2^depth].

    A row goes left if its feature is less than the threshold.
    """

    base: float
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    leaf: NDArray[np.float32]

    def predict(self, rows: ArrayLike) -> NDArray[np.float64]:
        """The sums [rows] of the leaves in which rows [rows, features] end."""
        given = np.asarray(rows, dtype=np.float32)
        if len(given) == 0:
            return np.zeros(0)
        trees, nodes = self.feature.shape
        every = np.arange(trees)
        at = np.zeros((len(given), trees), dtype=np.int64)
        lines = np.arange(len(given))[:, None]
        while int(at[0, 0]) < nodes:
            right = given[lines, self.feature[every, at]] >= self.threshold[every, at]
            at = 2 * at + 1 + right
        return self.base + self.leaf[every, at - nodes].sum(axis=1, dtype=np.float64)

    @staticmethod
    def of(data: Mapping[str, Any]) -> Trees:
        """Trees from the data that :meth:`to_dict` returns."""
        shape = (data["trees"], -1)
        feature = np.array(data["feature"], dtype=np.int32).reshape(shape)
        threshold = np.array(data["threshold"], dtype=np.float32).reshape(shape)
        return Trees(data["base"], feature, threshold, np.array(data["leaf"], dtype=np.float32).reshape(shape))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a file."""
        return {
            "base": self.base, "trees": len(self.feature), "feature": self.feature.ravel().tolist(),
            "threshold": [_short(one) for one in self.threshold.ravel()],
            "leaf": [_short(one) for one in self.leaf.ravel()],
        }  # fmt: skip


def _short(number: np.float32) -> float:
    """The shortest text that reads back as the same 32-bit float."""
    return float(np.format_float_positional(number, unique=True, trim="0"))


Node = tuple[int, float, int, int] | float
"""An inner node (feature, threshold, left, right), or a leaf."""


def whole_tree(nodes: Mapping[int, Node], depth: int) -> tuple[list[int], list[float], list[float]]:
    """A tree given by its root, node 0, as a complete tree: features, thresholds, leaves."""
    feature, threshold = [0] * (2**depth - 1), [0.0] * (2**depth - 1)
    leaf = [0.0] * 2**depth
    places = [(0, 0)]
    while places:
        node, place = places.pop()
        found = nodes[node]
        if place >= len(feature):
            assert isinstance(found, float)
            leaf[place - len(feature)] = found
        elif isinstance(found, float):
            places += [(node, 2 * place + 1), (node, 2 * place + 2)]
        else:
            feature[place], threshold[place] = found[0], found[1]
            places += [(found[2], 2 * place + 1), (found[3], 2 * place + 2)]
    return feature, threshold, leaf

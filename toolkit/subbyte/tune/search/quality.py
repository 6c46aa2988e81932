"""How good a cost model is, and how varied a batch: plain records, computed during a search and never used by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from subbyte.records.result import Measured, Result


class Proposal(NamedTuple):
    """Why a strategy proposed a configuration.

    ``origin``: ``random``, ``start`` (chosen before the first fit), ``plan`` and ``model`` (the cost model liked it),
    ``neighbour`` (of a fast one), ``child`` (of two fast ones). ``score`` is the prediction of the model in use then,
    greater for faster and comparable only within one fit; None before the first. ``fit`` counts fits from 1.
    """

    origin: str
    score: float | None = None
    fit: int = 0


def spearman(predicted: npt.ArrayLike, true: npt.ArrayLike) -> float | None:
    """Rank correlation of two lists (ties share the mean rank); None when either is constant or shorter than 2."""
    a, b = _ranks(np.asarray(predicted, dtype=np.float64)), _ranks(np.asarray(true, dtype=np.float64))
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def recall_at(predicted: npt.ArrayLike, true: npt.ArrayLike, k: int) -> float:
    """Fraction of the ``k`` truly best (greatest) that are among the ``k`` best predicted; ``k`` is limited to the
    length."""
    a, b = np.asarray(predicted, dtype=np.float64), np.asarray(true, dtype=np.float64)
    k = min(k, len(a))
    if not k:
        return 0.0
    best = set(np.argsort(-b, kind="stable")[:k].tolist())
    return len(best & set(np.argsort(-a, kind="stable")[:k].tolist())) / k


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: npt.NDArray[np.float64] = (last - (counts - 1) / 2.0)[inverse]
    return middle


@dataclass(frozen=True)
class ModelQuality:
    """Agreement of scores with speeds on ``count`` configurations: Spearman's correlation, and recall by k."""

    count: int
    spearman: float | None
    recall: dict[int, float]

    @classmethod
    def of(cls, scores: npt.ArrayLike, speeds: npt.ArrayLike, ks: Sequence[int] = (1, 5, 10)) -> ModelQuality:
        """From scores [n] and speeds [n] (0 for failures), both greater for better."""
        count = len(np.asarray(speeds))
        return cls(count, spearman(scores, speeds), {k: recall_at(scores, speeds, k) for k in ks})

    @classmethod
    def held_out(
        cls,
        score: Callable[[npt.NDArray[np.int64]], npt.ArrayLike],
        results: Mapping[int, Result],
        ks: Sequence[int] = (1, 5, 10, 32),
    ) -> ModelQuality:
        """On held-out configurations, which the model never saw; ``score`` is a strategy's ``scores``."""
        indices = np.array(sorted(results), dtype=np.int64)
        found = [results[index] for index in indices.tolist()]
        speeds = [1.0 / result.microseconds if isinstance(result, Measured) else 0.0 for result in found]
        return cls.of(score(indices), speeds, ks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "recall": {str(k): value for k, value in self.recall.items()}}


@dataclass(frozen=True)
class Distinctness:
    """How varied a batch is: the mean fraction of knobs in which two members differ, and the distinct values of each
    knob."""

    hamming: float
    values: tuple[int, ...]

    @classmethod
    def of(cls, digits: npt.NDArray[np.integer[Any]]) -> Distinctness:
        """From knob digits [n, knobs]."""
        n, knobs = digits.shape
        values = tuple(len(np.unique(digits[:, knob])) for knob in range(knobs))
        if n < 2 or not knobs:
            return cls(0.0, values)
        same = sum(float((np.bincount(digits[:, knob]) ** 2).sum() - n) for knob in range(knobs))
        return cls(1.0 - same / (n * (n - 1) * knobs), values)


@dataclass(frozen=True)
class BatchQuality:
    """One batch between two fits: how well the model fitted before it predicted it, and how varied it was. ``spread``
    is the coefficient of variation of its speeds (without failures), ``scores`` the number of distinct scores."""

    model: ModelQuality
    distinctness: Distinctness
    spread: float | None
    scores: int

    @classmethod
    def of(cls, scores: npt.ArrayLike, speeds: Sequence[float], digits: npt.NDArray[np.integer[Any]]) -> BatchQuality:
        """From the model's scores [n], the measured speeds [n] (0 for failures) and knob digits [n, knobs]."""
        worked = [speed for speed in speeds if speed > 0]
        spread = float(np.std(worked) / np.mean(worked)) if worked else None
        distinct = len(np.unique(np.asarray(scores, dtype=np.float32)))
        return cls(ModelQuality.of(scores, speeds), Distinctness.of(digits), spread, distinct)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "model": self.model.to_dict()}


@dataclass
class QualityLog:
    """The batches of a search, in order."""

    batches: list[BatchQuality] = field(default_factory=list)

    def add(self, batch: BatchQuality) -> None:
        """Append one batch."""
        self.batches.append(batch)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"batches": [batch.to_dict() for batch in self.batches]}

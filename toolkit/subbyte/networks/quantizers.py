"""How real numbers become the few values of a layer while a network is trained, and what of a gradient comes back.

Forward they round, backward they are as if they did not, within their range: the straight-through estimator (Bengio et
al., arXiv 1308.3432; binary networks: Hubara et al., arXiv 1602.02830).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from subbyte.workload.operand import BIPOLAR, Operand

Reals = NDArray[np.floating]
RANGE = 2.0
"""What an activation of an unsigned type reaches at most, before it is divided by its step."""


class Rounding(Protocol):
    """Real numbers as the values that are multiplied, multiples of ``step``; ``middle`` is their usual average."""

    @property
    def step(self) -> float:
        """What a value of 1 stands for."""
        ...

    @property
    def middle(self) -> float:
        """What a real number should be on average."""
        ...

    def __call__(self, reals: Reals) -> Reals:
        """The values."""
        ...

    def passes(self, reals: Reals) -> NDArray[np.bool_]:
        """Where a gradient comes back."""
        ...


class Unrounded:
    """Real numbers as they are, or with ``relu`` those above 0: a network to compare with."""

    step, middle = 1.0, 0.0

    def __init__(self, relu: bool) -> None:
        self._relu = relu

    def __call__(self, reals: Reals) -> Reals:
        """Themselves, or 0."""
        return np.maximum(reals, 0) if self._relu else reals

    def passes(self, reals: Reals) -> NDArray[np.bool_]:
        """Everywhere, or above 0."""
        return reals > 0 if self._relu else np.ones(reals.shape, np.bool_)


@dataclass(frozen=True)
class Quantizer:
    """Of one operand type: values are multiples of ``step``, which is what 1 stands for."""

    operand: Operand
    step: float

    @classmethod
    def of_weights(cls, operand: Operand) -> Quantizer:
        """Weights are kept as real numbers from -1 to 1."""
        return cls(operand, 1.0 / max(1, -operand.least))

    @classmethod
    def of_activations(cls, operand: Operand) -> Quantizer:
        """Activations are normalized: bipolar ones from -1 to 1, unsigned ones from 0 to 2."""
        return cls(operand, 1.0 if operand.encoding == BIPOLAR else RANGE / operand.largest)

    @property
    def middle(self) -> float:
        """What a normalized activation should be on average."""
        return self.step * (self.operand.least + self.operand.largest) / 2

    def __call__(self, reals: Reals) -> Reals:
        """The nearest values, halves to the larger one."""
        if self.operand.encoding == BIPOLAR:
            gap = np.floor((reals / self.step - self.operand.least + 1) / 2)
            values = self.operand.least + 2 * gap
        else:
            values = np.floor(reals / self.step + 0.5)
        return np.clip(values, self.operand.least, self.operand.largest).astype(reals.dtype)

    def passes(self, reals: Reals) -> NDArray[np.bool_]:
        """Where a gradient comes back: within the range of the values."""
        return (reals >= self.operand.least * self.step) & (reals <= self.operand.largest * self.step)

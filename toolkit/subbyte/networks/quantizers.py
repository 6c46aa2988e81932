"""How real numbers become the few values of a layer during training, and which gradients pass through.

The forward pass rounds; the backward pass acts as if it did not, within the range of the values: the straight-through
estimator (Bengio et al., arXiv 1308.3432; binary networks: Hubara et al., arXiv 1602.02830).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from subbyte.workload.operand import BIPOLAR, Operand

Reals = NDArray[np.floating]
RANGE = 2.0
"""Upper end of the range of an unsigned activation, before it is divided by its step."""


class Rounding(Protocol):
    """Maps real numbers to the values that are multiplied, multiples of ``step``; ``middle`` is the average to aim
    for."""

    @property
    def step(self) -> float:
        """The real number that a value of 1 represents."""
        ...

    @property
    def middle(self) -> float:
        """The average that real numbers should have."""
        ...

    def __call__(self, reals: Reals) -> Reals:
        """The values for real numbers."""
        ...

    def passes(self, reals: Reals) -> NDArray[np.bool_]:
        """Where the gradient passes."""
        ...


class Unrounded:
    """Real numbers unchanged or, with ``relu``, clipped at 0: for a network to compare with."""

    step, middle = 1.0, 0.0

    def __init__(self, relu: bool) -> None:
        self._relu = relu

    def __call__(self, reals: Reals) -> Reals:
        """The numbers, or 0 for negative ones with ``relu``."""
        return np.maximum(reals, 0) if self._relu else reals

    def passes(self, reals: Reals) -> NDArray[np.bool_]:
        """Everywhere, or above 0."""
        return reals > 0 if self._relu else np.ones(reals.shape, np.bool_)


@dataclass(frozen=True)
class Quantizer:
    """The quantizer of one operand type: values are multiples of ``step``, the real number that 1 represents."""

    operand: Operand
    step: float

    @classmethod
    def of_weights(cls, operand: Operand) -> Quantizer:
        """For weights, which are real numbers from -1 to 1 during training."""
        return cls(operand, 1.0 / max(1, -operand.least))

    @classmethod
    def of_activations(cls, operand: Operand) -> Quantizer:
        """For normalized activations: bipolar ones from -1 to 1, unsigned ones from 0 to 2."""
        return cls(operand, 1.0 if operand.encoding == BIPOLAR else RANGE / operand.largest)

    @property
    def middle(self) -> float:
        """The average that a normalized activation should have."""
        return self.step * (self.operand.least + self.operand.largest) / 2

    def __call__(self, reals: Reals) -> Reals:
        """The nearest values, with halves going to the larger one."""
        if self.operand.encoding == BIPOLAR:
            gap = np.floor((reals / self.step - self.operand.least + 1) / 2)
            values = self.operand.least + 2 * gap
        else:
            values = np.floor(reals / self.step + 0.5)
        return np.clip(values, self.operand.least, self.operand.largest).astype(reals.dtype)

    def passes(self, reals: Reals) -> NDArray[np.bool_]:
        """Where the gradient passes: within the range of the values."""
        return (reals >= self.operand.least * self.step) & (reals <= self.operand.largest * self.step)

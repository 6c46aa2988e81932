"""What a network gives: logits, and every layer's values for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.networks.parameters import Parameters
from subbyte.numerics.arrays import Int32Array


@dataclass(frozen=True, eq=False)
class LayerOutput:
    """``values`` of a layer [N,P,Q,K], what the next one reads (None of the last), and ``sums`` int32 before pooling
    and thresholds where something reads them: a later layer (of windows of which it adds the largest, these), or the
    logits."""

    name: str
    values: NDArray[np.int8] | None
    sums: Int32Array | None

    def differing(self, other: LayerOutput) -> int:
        """Elements that differ. Raises InvalidInput where the two are not of one layer or shape."""
        count = 0
        for own, theirs in ((self.values, other.values), (self.sums, other.sums)):
            if getattr(own, "shape", None) != getattr(theirs, "shape", None):
                raise InvalidInput(f"layer {self.name} cannot be compared with {other.name}: other outputs")
            if own is not None:
                count += int(np.count_nonzero(own != theirs))
        return count

    @property
    def elements(self) -> int:
        """Of values and sums."""
        return sum(one.size for one in (self.values, self.sums) if one is not None)


@dataclass(frozen=True, eq=False)
class NetworkResult:
    """``logits`` int64 [N, classes] and each layer's output. ``label`` says what the parameters are."""

    network: str
    logits: NDArray[np.int64]
    layers: tuple[LayerOutput, ...]
    label: str

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the largest logit of each image, of equal ones the first: int64 [N]."""
        return self.logits.argmax(axis=1)

    def layer(self, name: str) -> LayerOutput:
        """The output of a layer. Raises InvalidInput with the names there are."""
        for one in self.layers:
            if one.name == name:
                return one
        raise InvalidInput(f"layer {name!r}: allowed: {', '.join(one.name for one in self.layers)}")

    def differing(self, other: NetworkResult) -> dict[str, int]:
        """Elements that differ, by layer."""
        return {one.name: one.differing(theirs) for one, theirs in zip(self.layers, other.layers, strict=True)}

    @classmethod
    def of(cls, network: str, parameters: Parameters, outputs: Sequence[LayerOutput]) -> NetworkResult:
        """Of all layers' outputs."""
        sums = outputs[-1].sums
        assert sums is not None
        return cls(network, parameters.logits.apply(sums), tuple(outputs), parameters.label)

"""The output of a network: logits, and every layer's values for comparison."""

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
    """``values`` of a layer [N,P,Q,K], which the next one reads (None for the last), and ``sums`` int32 before pooling
    and thresholds if something reads them: the logits, or a later layer (if that adds the maxima of windows, the
    maxima)."""

    name: str
    values: NDArray[np.int8] | None
    sums: Int32Array | None

    def differing(self, other: LayerOutput) -> int:
        """Number of elements that differ. Raises InvalidInput if the two are not of the same layer and shape."""
        count = 0
        for own, theirs in ((self.values, other.values), (self.sums, other.sums)):
            if getattr(own, "shape", None) != getattr(theirs, "shape", None):
                raise InvalidInput(f"layer {self.name} cannot be compared with {other.name}: other outputs")
            if own is not None:
                count += int(np.count_nonzero(own != theirs))
        return count

    @property
    def elements(self) -> int:
        """Number of values and sums."""
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
        """The class with the largest logit for each image, the first one in a tie: int64 [N]."""
        return self.logits.argmax(axis=1)

    def layer(self, name: str) -> LayerOutput:
        """The output of a layer. Raises InvalidInput with the available names."""
        for one in self.layers:
            if one.name == name:
                return one
        raise InvalidInput(f"layer {name!r}: allowed: {', '.join(one.name for one in self.layers)}")

    def differing(self, other: NetworkResult) -> dict[str, int]:
        """Number of differing elements, by layer."""
        return {one.name: one.differing(theirs) for one, theirs in zip(self.layers, other.layers, strict=True)}

    @classmethod
    def of(cls, network: str, parameters: Parameters, outputs: Sequence[LayerOutput]) -> NetworkResult:
        """The result made from all layers' outputs."""
        sums = outputs[-1].sums
        assert sums is not None
        return cls(network, parameters.logits.apply(sums), tuple(outputs), parameters.label)

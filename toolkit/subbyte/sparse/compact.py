"""A layer without its dead channels: a smaller dense layer that gives the same sums.

An input channel is dead when no weight reads it, a filter when all of its weights are 0. The kernel itself skips
nothing: it is an ordinary kernel for a smaller layer, on any GPU. This is the first thing to try for weights pruned by
channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, shown
from subbyte.numerics import Requantization
from subbyte.numerics.arrays import check_array
from subbyte.numerics.values import check_values
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


@dataclass(frozen=True, eq=False)
class Compacted:
    """``workload`` is the smaller layer, ``w`` its weights [K', R, S, C']; ``channels`` and ``filters`` are the indices
    of those of ``layer`` that remain, ascending. If all are dead, one is kept."""

    layer: ConvWorkload
    workload: ConvWorkload
    w: NDArray[Any]
    channels: NDArray[np.int64]
    filters: NDArray[np.int64]

    @property
    def gain(self) -> float:
        """Products of the layer divided by those of the smaller one."""
        return self.layer.macs / self.workload.macs

    def inputs(self, x: NDArray[Any]) -> NDArray[Any]:
        """Activations [N, H, W, C] of the layer reduced to those of the smaller one. Raises InvalidInput."""
        w = self.layer
        given = check_values(x, "x", w.precision.activations, (w.n, w.h, w.w, w.c))
        return np.ascontiguousarray(given[..., self.channels])

    def requantization(self, requant: Requantization) -> Requantization:
        """The layer's requantization for the remaining filters. Raises InvalidInput."""
        self._of_layer(requant)
        rows = {name: getattr(requant, name)[self.filters] for name in ("bias", "multiplier", "shift")}
        return replace(requant, **rows)

    def outputs(self, y: NDArray[Any], requant: Requantization | None = None) -> NDArray[Any]:
        """The smaller layer's result, [N, P, Q, K'], expanded to the layer's output: sums int32, 0 for a dead filter;
        with the layer's ``requant``, requantized values, for a dead filter those of the sum 0. Raises InvalidInput."""
        w = self.workload
        dtype = np.dtype("int32" if requant is None else w.precision.output.dtype)
        given = check_array(y, "y", dtype.type, (w.n, w.p, w.q, w.k))
        nothing = np.zeros(self.layer.k, np.int32)
        if requant is not None:
            self._of_layer(requant)
        dead = nothing if requant is None else requant.apply(nothing)
        whole = np.broadcast_to(dead, (*given.shape[:3], self.layer.k)).astype(given.dtype)
        whole[..., self.filters] = given
        return whole

    def _of_layer(self, requant: Requantization) -> None:
        if requant.channels != self.layer.k:
            raise InvalidInput(f"requantization of {requant.channels} channels: the layer has {self.layer.k}")

    def __str__(self) -> str:
        of, now = self.layer, self.workload
        return (
            f"{of}: {now.c} of {of.c} input channels and {now.k} of {of.k} filters are alive, {self.gain:.2f} times "
            "fewer products"
        )


@checked
def compact(layer: ConvWorkload | str, w: NDArray[Any]) -> Compacted:
    """The layer without the dead input channels and filters of its weights ``w`` [K, R, S, C], values of its weights'
    type.

    Weights that lost channels become dense weights: the 2:4 pattern of neighbouring channels no longer holds. Raises
    InvalidInput for an unknown layer, another shape or dtype, and numbers that are not values of the type.
    """
    found = workload_named(layer)
    if not isinstance(w, np.ndarray):
        raise InvalidInput(f"w={shown(w)}: expected a numpy array [K, R, S, C]")
    given = check_values(w, "w", found.precision.weights, (found.k, found.r, found.s, found.c))
    filters, channels = (_alive(np.asarray(given.any(axis=axes))) for axes in ((1, 2, 3), (0, 1, 2)))
    types = found.precision
    if len(channels) < found.c:
        types = replace(types, weights=types.weights.dense)
    smaller = replace(found, c=len(channels), k=len(filters), precision=types, name="")
    kept = np.ascontiguousarray(given[filters][..., channels])
    return Compacted(found, smaller, kept, channels, filters)


def _alive(marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    found = np.flatnonzero(marks)
    return found if len(found) else np.zeros(1, np.int64)

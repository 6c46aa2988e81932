"""What lies between the kernels of a network: windows of pixels, and what no kernel does yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.networks.layer import NetworkLayer, lowered
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.bit_layer import pooled_ranks
from subbyte.numerics.residual import from_residual, to_residual
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.conv import ConvWorkload

if TYPE_CHECKING:
    from subbyte.networks.network import Network

RESIDUAL_LIMIT = (1 << 15) - 1
"""Of a sum that 16 bits hold whatever its sign."""


def windows(workload: ConvWorkload, x: NDArray[np.int8]) -> NDArray[np.int8]:
    """Pixels [N,H,W,C] of the first layer -> the channels of its :func:`~subbyte.networks.layer.lowered` workload,
    [N,P,Q,R*S*C]; beyond the border they are 0."""
    wl = workload
    if lowered(wl) == wl:
        return x
    padded = np.pad(x, [(0, 0), (wl.pad, wl.pad), (wl.pad, wl.pad), (0, 0)])
    view = np.lib.stride_tricks.sliding_window_view(padded, (wl.r, wl.s), axis=(1, 2))
    taken = view[:, :: wl.stride, :: wl.stride].transpose(0, 1, 2, 4, 5, 3)
    return np.ascontiguousarray(taken).reshape(len(x), wl.p, wl.q, -1)


def beside_the_kernel(network: Network, layer: NetworkLayer) -> str:
    """What of a layer its kernel does not do, in words; empty where it does all.

    This and :func:`finished` are the place where that is decided.
    """
    kept = "keeps its sums for a later layer" if layer.name in network.residuals else ""
    added = f"adds the sums of {layer.residual}" if layer.residual else ""
    pooling = f"pools {layer.pool} x {layer.pool}" if layer.pool > 1 else ""
    return " and ".join(filter(None, (added, pooling, kept)))


def finished(
    layer: NetworkLayer, sums: Int32Array, thresholds: Thresholds, residual: Int32Array | None
) -> tuple[NDArray[Any], Int32Array]:
    """Sums of a kernel int32 [N,P,Q,K] -> values that the next layer reads, and the sums with the residual.

    As a kernel would: thresholds first, then pooling of the few bits; residuals go through their words of 16 bits
    where they fit.
    """
    if residual is not None:
        sums = sums.copy()
        sums[..., : residual.shape[3]] += residual
    if np.abs(sums).max() <= RESIDUAL_LIMIT:
        n, _, _, k = sums.shape
        sums = from_residual(to_residual(sums), n, k)
    ranks = pooled_ranks(thresholds.ranks(sums), thresholds, layer.pool, layer.pool_order)
    return np.array(sorted(thresholds.output.values), thresholds.output.dtype)[ranks], sums

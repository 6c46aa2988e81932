"""What a network asks of its kernels, what happens between them, and what the CPU does if a kernel cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.networks.layer import NetworkLayer
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.bit_layer import pooled_ranks
from subbyte.numerics.fusion import Fusion
from subbyte.numerics.residual import LARGEST, NARROW, WIDE
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.networks.network import Network

RESIDUAL_LIMIT = LARGEST[NARROW]
"""Largest magnitude of a sum that 16 bits hold, whatever its sign."""


def fusion(network: Network, layer: NetworkLayer) -> Fusion:
    """The operations fused between a layer's sums and its output."""
    source = network.layer(layer.residual).workload if layer.residual else None
    return Fusion(
        layer.pool, layer.pool_order, source.k if source else 0, waiting_pool(network, layer) if source else 1,
        layer.name in network.residuals, bits_of(network, layer.residual), bits_of(network, layer.name),
        network.kept_pool(layer.name),
    )  # fmt: skip


def waiting_pool(network: Network, layer: NetworkLayer) -> int:
    """Size, in each direction, of the windows of kept sums of which a layer adds the maximum."""
    return network.shortcut_pool(layer) // network.kept_pool(layer.residual)


def bits_of(network: Network, name: str) -> int:
    """Bits in which a layer's sums are kept for a later one: 16 if these are enough for all operands, else 32."""
    return WIDE if name in network.residuals and network.largest_sums()[name] > LARGEST[NARROW] else NARROW


def request(network: Network, layer: NetworkLayer) -> tuple[ConvWorkload, str]:
    """The workload and the output of a kernel that does a whole layer: for the last layer, the sums."""
    if layer is network.layers[-1]:
        return layer.workload, SUMS
    return layer.workload, layer.workload.precision.output.name + fusion(network, layer).text


def unproven(network: Network, layer: NetworkLayer) -> str:
    """Why no kernel may keep or add a layer's sums; empty if 32 bits are enough for all operands."""
    largest = network.largest_sums()
    waiting = [name for name in (layer.residual, layer.name) if name in network.residuals]
    wide = next((name for name in waiting if largest[name] > LARGEST[WIDE]), None)
    most = f"{LARGEST[WIDE]:,}"
    return f"sums of {wide} may be as large as {largest[wide]:,}, residuals of 32 bits go up to {most}" if wide else ""


def finished(
    layer: NetworkLayer, sums: Int32Array, thresholds: Thresholds, residual: Int32Array | None
) -> tuple[NDArray[Any], Int32Array]:
    """A kernel's sums int32 [N,P,Q,K] -> the values that the next layer reads, and the sums with the residual: the part
    that the CPU does if no kernel does; thresholds first, then pooling of the few bits."""
    if residual is not None:
        sums = sums.copy()
        sums[..., : residual.shape[3]] += residual
    ranks = pooled_ranks(thresholds.ranks(sums), thresholds, layer.pool, layer.pool_order)
    return np.array(sorted(thresholds.output.values), thresholds.output.dtype)[ranks], sums

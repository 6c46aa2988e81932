"""A network computed by the reference: values, layer by layer; no bits, no lowering, no kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from subbyte.networks.layer import Images, pixel_values
from subbyte.networks.parameters import Parameters
from subbyte.networks.result import LayerOutput
from subbyte.networks.steps import waiting_pool
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.bit_layer import layer_reference, pooled
from subbyte.numerics.reference import reference

if TYPE_CHECKING:
    from subbyte.networks.network import Network


def reference_layers(network: Network, parameters: Parameters, images: Images) -> Iterator[LayerOutput]:
    """Each layer's output in turn; sums are kept as long as a later layer may add them."""
    whole = network.at(len(images))
    x = pixel_values(images)
    waiting: dict[str, Int32Array] = {}
    for layer, w, thresholds in zip(whole.layers[:-1], parameters.weights, parameters.thresholds, strict=False):
        residual = waiting.get(layer.residual)
        if residual is not None:
            residual = pooled(residual, waiting_pool(network, layer))
        found = layer_reference(layer.workload, x, w, thresholds, residual, layer.pool, layer.pool_order)
        x, sums = found.values, None
        if layer.name in whole.residuals and found.sums is not None:
            sums = waiting[layer.name] = pooled(found.sums, network.kept_pool(layer.name))
        yield LayerOutput(layer.name, x, sums)
    last = whole.layers[-1]
    yield LayerOutput(last.name, None, reference(last.workload, x, parameters.weights[-1]))

"""Chooses the kernels of a network's layers: the best known ones that do all of a layer and read the previous layer's
words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import Unsupported
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.kernel.choose import compile as best_kernel
from subbyte.kernel.kernel import Kernel
from subbyte.networks.layer import NetworkLayer
from subbyte.networks.steps import request, unproven
from subbyte.numerics.bit_layer import LayerResult
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.networks.network import Network


@dataclass(frozen=True)
class LayerKernel:
    """The ``kernel`` of a ``layer``; ``cpu`` says why it only returns the sums and the CPU does the rest, "" if it does
    everything."""

    layer: NetworkLayer
    kernel: Kernel
    cpu: str

    def run(
        self, x: NDArray[np.int8], w: NDArray[np.int8], thresholds: Thresholds | None,
        residual: NDArray[np.int32] | None, place: str,
    ) -> LayerResult:  # fmt: skip
        """Values x of the layer's type and weights [K,R,S,C] -> the layer's values, and the sums if it keeps them; for
        a kernel that returns sums, only these, as ``values``."""
        if self.kernel.output == SUMS or thresholds is None:
            return LayerResult(self.kernel.run(x, w, None, place), None)
        found = self.kernel.run_layer(x, w, thresholds, residual, place)
        return LayerResult(found.values, found.sums)


def layer_kernels(network: Network, arch: str) -> tuple[LayerKernel, ...]:
    """A kernel for each layer. Raises Unsupported with the reason if there is none."""
    made: list[LayerKernel] = []
    for place, layer in enumerate(network.layers):
        before = made[-1].kernel if made and not made[-1].cpu else None
        words = before.argument("Out").form if before else ""
        cpu = unproven(network, layer)
        if not cpu:
            try:
                made.append(LayerKernel(layer, _whole(network, place, arch, words), ""))
                continue
            except Unsupported as error:
                cpu = str(error)
        made.append(LayerKernel(layer, best_kernel(layer.workload, arch, output=SUMS), cpu))
    return tuple(made)


def _whole(network: Network, place: int, arch: str, words: str) -> Kernel:
    """The best known kernel that does all of a layer, reads the words of the previous layer and, if there is a next
    layer, writes those that its best known kernel reads. Raises Unsupported."""
    layer = network.layers[place]
    workload, output = request(network, layer)
    if output == SUMS:
        return best_kernel(workload, arch, output=output, reads=words)
    following, wanted = request(network, network.layers[place + 1])
    try:
        config, _ = best_known(following, arch, output=wanted)
        reads = Kernel(make_plan(following, config, arch, wanted, None, "fixed")).argument("A").form
        return best_kernel(workload, arch, output=output, reads=words, writes=reads)
    except Unsupported:
        return best_kernel(workload, arch, output=output, reads=words)

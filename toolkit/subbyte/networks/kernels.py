"""Which kernels the layers of a network get: the best known ones that do all of a layer and read the words before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import Unsupported
from subbyte.kernel.choose import compile as best_kernel
from subbyte.kernel.kernel import Kernel
from subbyte.networks.layer import NetworkLayer, lowered
from subbyte.networks.steps import request, unproven
from subbyte.numerics.bit_layer import LayerResult
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.networks.network import Network


@dataclass(frozen=True)
class LayerKernel:
    """The ``kernel`` of a ``layer``; ``cpu`` says why it gives the sums alone and the CPU does the rest, "" where it
    does all."""

    layer: NetworkLayer
    kernel: Kernel
    cpu: str

    def weights(self, w: NDArray[np.int8]) -> NDArray[np.int8]:
        """The layer's weights [K,R,S,C] in the shape in which the kernel takes them: of the first layer's a window is
        a row of channels."""
        wl = self.kernel.workload
        return w.reshape(wl.k, wl.r, wl.s, wl.c)

    def run(
        self, x: NDArray[np.int8], w: NDArray[np.int8], thresholds: Thresholds | None,
        residual: NDArray[np.int32] | None, place: str,
    ) -> LayerResult:  # fmt: skip
        """Values x of the layer's type and weights [K,R,S,C] -> the layer's values, and the sums where it keeps them;
        of a kernel that gives sums these alone, as ``values``."""
        if self.kernel.output == SUMS or thresholds is None:
            return LayerResult(self.kernel.run(x, self.weights(w), None, place), None)
        found = self.kernel.run_layer(x, self.weights(w), thresholds, residual, place)
        return LayerResult(found.values.reshape(len(x), *self.layer.output), found.sums)


def layer_kernels(network: Network, arch: str) -> tuple[LayerKernel, ...]:
    """A kernel for each layer, the first one lowered. Raises Unsupported with the reason where there is none."""
    made: list[LayerKernel] = []
    for layer in network.layers:
        workload, output = request(network, layer)
        before = made[-1].kernel if made and not made[-1].cpu else None
        words = before.argument("Out").form if before else ""
        cpu = unproven(network, layer)
        if not cpu:
            try:
                made.append(LayerKernel(layer, best_kernel(workload, arch, output=output, reads=words), ""))
                continue
            except Unsupported as error:
                cpu = str(error)
        plain = lowered(layer, pooled=False) if layer is network.layers[0] else layer.workload
        made.append(LayerKernel(layer, best_kernel(plain, arch, output=SUMS), cpu))
    return tuple(made)

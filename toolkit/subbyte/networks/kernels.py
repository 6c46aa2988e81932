"""Which kernels the layers of a network get: the best known ones, where possible readers of the words before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import arch as arch_named
from subbyte.errors import SubbyteError, Unsupported
from subbyte.families.registry import newest_first
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import compile as best_kernel
from subbyte.kernel.kernel import Kernel, build
from subbyte.networks.layer import NetworkLayer, lowered
from subbyte.networks.steps import beside_the_kernel
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.networks.network import Network

TRIES = 32
"""Configurations of a family that are looked at for one that reads given words."""


@dataclass(frozen=True)
class LayerKernels:
    """The kernels of a ``layer``: one, or several of which each multiplies a band of the input rows, where the weights
    of a fully connected layer do not fit a block; then their sums are added. ``cpu`` says what they leave to the CPU.
    """

    layer: NetworkLayer
    parts: tuple[Kernel, ...]
    cpu: str

    @property
    def output(self) -> str:
        """Of the kernels: a type, or ``int32``."""
        return self.parts[0].output

    @property
    def config(self) -> str:
        """The key of their configuration."""
        count = len(self.parts)
        return self.parts[0].config.key + (f" x {count}" if count > 1 else "")

    def weights(self, w: NDArray[np.int8]) -> NDArray[np.int8]:
        """The layer's weights [K,R,S,C] in the shape in which the kernels take them: of the first layer's a window is
        a row of channels."""
        first = self.parts[0].workload
        return w.reshape(first.k, -1, first.s, first.c)

    def run(self, x: NDArray[np.int8], w: NDArray[np.int8], thresholds: Thresholds | None, place: str) -> NDArray[Any]:
        """Values x of the layer's type and its :meth:`weights` -> values of the output type, or sums int32."""
        if len(self.parts) == 1:
            return self.parts[0].run(x, w, thresholds, place)
        rows = self.parts[0].workload.h
        bands = [slice(first, first + rows) for first in range(0, x.shape[1], rows)]
        pieces = zip(self.parts, bands, strict=True)
        total = np.zeros((len(x), 1, 1, len(w)), np.int32)
        for part, band in pieces:
            total += part.run(np.ascontiguousarray(x[:, band]), np.ascontiguousarray(w[:, band]), None, place)
        return total


def layer_kernels(network: Network, arch: str) -> tuple[LayerKernels, ...]:
    """Kernels for each layer, the first one lowered. Raises Unsupported with the reason where there are none."""
    made: list[LayerKernels] = []
    for place, layer in enumerate(network.layers):
        workload = layer.workload if place else lowered(layer.workload)
        cpu = beside_the_kernel(network, layer)
        output = SUMS if cpu or place == len(network.layers) - 1 else workload.precision.output.name
        words = made[-1].parts[0].argument("Out").form if made and made[-1].output != SUMS else ""
        try:
            made.append(LayerKernels(layer, (_kernel(workload, arch, output, words),), cpu))
        except Unsupported as error:
            made.append(_in_bands(layer, workload, arch, cpu, error))
    return tuple(made)


def _kernel(workload: ConvWorkload, arch: str, output: str, words: str) -> Kernel:
    """The best known kernel; where it does not read ``words``, the one estimated fastest that does, if there is one."""
    kernel = best_kernel(workload, arch, output=output)
    if not words or kernel.argument("A").form == words:
        return kernel
    for family in newest_first():
        for config in islice(family.candidates(workload, arch_named(arch)), TRIES):
            try:
                plan = make_plan(workload, config, arch, output, None, "fixed")
                if Kernel(plan).argument("A").form == words:
                    return build(workload, config, arch, output=output)
            except SubbyteError:
                continue
    return kernel


def _in_bands(layer: NetworkLayer, workload: ConvWorkload, arch: str, cpu: str, error: Unsupported) -> LayerKernels:
    """A fully connected layer as the fewest bands of rows for which there is a kernel. Raises ``error``."""
    for bands in range(2, workload.h + 1) if layer.kind == "fc" else ():
        if workload.h % bands:
            continue
        band = replace(workload, h=workload.h // bands, r=workload.h // bands)
        try:
            kernel = best_kernel(band, arch, output=SUMS)
        except Unsupported:
            continue
        also = " and ".join(filter(None, (f"adds the sums of {bands} kernels", cpu)))
        return LayerKernels(layer, (kernel,) * bands, also)
    raise error

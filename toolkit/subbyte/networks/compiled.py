"""A network as kernels: built for an architecture, run in the emulator or on a GPU, timed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, Unsupported, WrongResult
from subbyte.kernel.chain import Chain
from subbyte.kernel.execute import EMULATOR, resolve_device
from subbyte.networks.check import CheckedLayer, NetworkCheck
from subbyte.networks.kernels import LayerKernel, layer_kernels
from subbyte.networks.layer import Images, pixel_values
from subbyte.networks.parameters import Parameters
from subbyte.networks.reference import reference_layers
from subbyte.networks.result import LayerOutput, NetworkResult
from subbyte.networks.steps import finished, waiting_pool
from subbyte.numerics.arrays import Int32Array, check_array
from subbyte.numerics.bit_layer import pooled

if TYPE_CHECKING:
    from subbyte.gpu.timing import Timing, TimingProtocol
    from subbyte.networks.network import Network


class CompiledNetwork:
    """The kernels of a network's layers, with its parameters. :meth:`Network.compile` creates one.

    A kernel reads the bits of the previous layer and writes those for the next: it pools, adds a residual and keeps
    one. If no kernel can do all of a layer, one returns int32 sums and the CPU does the rest
    (:func:`~subbyte.networks.steps.finished`). Pixels are integers from the first layer on, and the logits are
    integers.
    """

    def __init__(
        self, network: Network, parameters: Parameters, arch: str, kernels: tuple[LayerKernel, ...] | None = None
    ) -> None:
        self.network, self.parameters, self.arch = network, parameters, arch
        self.kernels: tuple[LayerKernel, ...] = layer_kernels(network, arch) if kernels is None else kernels

    @property
    def apart(self) -> dict[str, str]:
        """The layers of which the CPU does a part, and which part."""
        return {one.layer.name: one.cpu for one in self.kernels if one.cpu}

    @checked
    def run(self, images: Images, device: str = "auto") -> NetworkResult:
        """Logits of any number of images uint8 [N,H,W,C], one batch at a time, and every layer's output.

        ``device`` is ``auto``, ``emulator`` or ``cuda:0``. Raises InvalidInput, MissingDependency.
        """
        place = resolve_device(device, self.arch)
        given = self.network.check_images(images)
        batches = [tuple(self.layers(batch, place)) for batch in self.batches(given)]
        outputs = [_joined(parts, len(given)) for parts in zip(*batches, strict=True)]
        return NetworkResult.of(self.network.name, self.parameters, outputs)

    @checked
    def check(
        self, images: Images, device: str = "auto", *, labels: NDArray[np.int64] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> NetworkCheck:  # fmt: skip
        """Compare every element of every layer with the reference, one layer at a time, so that at most two are in
        memory.

        ``labels`` int64 [N] of the images, if known, give the accuracy; ``report`` is called with the name of each
        layer compared. Raises InvalidInput, MissingDependency.
        """
        place = resolve_device(device, self.arch)
        given = self.network.check_images(images)
        known = None if labels is None else check_array(labels, "labels", np.int64, (len(given),))
        counts = {layer.name: [0, 0] for layer in self.network.layers}
        sums: list[Int32Array] = []
        for batch in self.batches(given):
            ours = self.layers(batch, place)
            for own, right in zip(ours, reference_layers(self.network, self.parameters, batch), strict=True):
                counts[own.name][0] += own.elements
                counts[own.name][1] += own.differing(right)
                if own.values is None and own.sums is not None:
                    sums.append(own.sums)
                if report is not None:
                    report(own.name)
        logits = self.parameters.logits.apply(np.concatenate(sums)[: len(given)])
        predictions = logits.argmax(axis=1)
        layers = tuple(
            CheckedLayer(
                name, one.kernel.workload.spec, one.kernel.config.key, one.kernel.output, one.cpu, *counts[name]
            )
            for name, one in zip(counts, self.kernels, strict=True)
        )
        accuracy = None if known is None else float((predictions == known).mean())
        return NetworkCheck(self.network.name, place, self.arch, self.parameters.label, len(given), layers,
                            tuple(predictions.tolist()), accuracy)  # fmt: skip

    def layers(self, images: Images, place: str) -> Iterator[LayerOutput]:
        """Each layer's output in turn for one batch, on a resolved device."""
        x: NDArray[np.int8] = pixel_values(images)
        waiting: dict[str, Int32Array] = {}
        parameters = zip(self.parameters.weights, [*self.parameters.thresholds, None], strict=True)
        for one, (w, thresholds) in zip(self.kernels, parameters, strict=True):
            layer, residual = one.layer, waiting.get(one.layer.residual)
            found = one.run(x, w, thresholds, None if one.cpu else residual, place)
            if thresholds is None:
                yield LayerOutput(layer.name, None, found.values)
                return
            x, sums = found.values, found.sums
            if one.cpu:
                if residual is not None:
                    residual = pooled(residual, waiting_pool(self.network, layer))
                x, sums = finished(layer, found.values, thresholds, residual)
                sums = pooled(sums, self.network.kept_pool(layer.name))
            if layer.name not in self.network.residuals:
                sums = None
            if sums is not None:
                waiting[layer.name] = sums
            yield LayerOutput(layer.name, x, sums)

    @checked
    def time(self, protocol: TimingProtocol | None = None, device: str = "auto", seed: int = 0) -> Timing:
        """Time of all layers in one CUDA graph, after every element of every layer was compared with the reference.

        The timed part starts with the pixels as bytes in GPU memory. Raises Unsupported if the CPU does a part of a
        layer, MissingDependency without a GPU, WrongResult.
        """
        self.require_whole()
        place = resolve_device("cuda:0" if device == "auto" else device, self.arch)
        images = self.network.random_images(seed)
        self.verified(images, place)
        return self.timed(images, place, protocol)

    def require_whole(self) -> None:
        """Raise Unsupported if the CPU does a part of a layer: then there is no chain of all kernels."""
        if self.apart:
            name, reason = next(iter(self.apart.items()))
            raise Unsupported(f"{self.network.name}: the whole network cannot be timed, since the CPU computes part of "
                              f"{len(self.apart)} of its {len(self.kernels)} layers; {name}: {reason}")  # fmt: skip

    def verified(self, images: Images, place: str) -> NetworkCheck:
        """The check that precedes timing on a resolved device. Raises InvalidInput in the emulator, WrongResult."""
        if place == EMULATOR:
            raise InvalidInput("the emulator has no meaningful times; use device='cuda:0'")
        found = self.check(images, place)
        if wrong := [layer for layer in found.layers if layer.differing]:
            raise WrongResult(f"{self.network.name}: {wrong[0].differing} elements of layer {wrong[0].name} differ "
                              "from the reference; no time was taken")  # fmt: skip
        return found

    def timed(self, images: Images, place: str, protocol: TimingProtocol | None = None) -> Timing:
        """Time of all layers in one CUDA graph on ``cuda:N``, without the check."""
        with self.chain().on_gpu(pixel_values(images), int(place.partition(":")[2])) as chain:
            return chain.time(protocol)

    def chain(self) -> Chain:
        """All kernels back to back, each reading the words that the previous one wrote. Raises InvalidInput if one
        cannot read them."""
        places = {one.layer.name: place for place, one in enumerate(self.kernels)}
        residuals = [places.get(one.layer.residual) for one in self.kernels]
        thresholds = [*self.parameters.thresholds, None]
        return Chain([one.kernel for one in self.kernels], self.parameters.weights, thresholds, residuals)

    def batches(self, images: Images) -> Iterator[Images]:
        """Batches of the network's size, the last one padded with black images."""
        for first in range(0, len(images), self.network.batch):
            part = images[first : first + self.network.batch]
            yield np.pad(part, [(0, self.network.batch - len(part)), *[(0, 0)] * 3])


def _joined(parts: tuple[LayerOutput, ...], images: int) -> LayerOutput:
    """The outputs of a layer for several batches joined into one, without the padding images."""
    values = [part.values for part in parts if part.values is not None]
    sums = [part.sums for part in parts if part.sums is not None]
    return LayerOutput(
        parts[0].name,
        np.concatenate(values)[:images] if values else None,
        np.concatenate(sums)[:images] if sums else None,
    )

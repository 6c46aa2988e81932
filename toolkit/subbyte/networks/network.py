"""Networks as frozen data: their layers, and what they compute on images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from subbyte.arguments import checked, one_of, whole
from subbyte.errors import InvalidInput
from subbyte.html import table
from subbyte.networks.layer import PIXEL, Images, NetworkLayer
from subbyte.networks.parameters import SPEED_ONLY, Parameters, random_parameters
from subbyte.networks.result import NetworkResult
from subbyte.numerics.arrays import check_array

if TYPE_CHECKING:
    from subbyte.networks.compiled import CompiledNetwork
    from subbyte.networks.timeline import NetworkTimeline
MANY_SUMS = 1 << 21
"""From this many sums on, kernels keep only the largest sum of each window."""
WINDOW = 2
"""Size, in each direction, of the windows of which kernels keep the largest sum."""


@dataclass(frozen=True)
class Network:
    """A network with a batch size: ``name`` (``tcbnn.resnet18@64``), its ``layers``, and where they come from
    (``source``).

    ``trained`` names the weights that ship with the package; without them parameters are random, for speed only. The
    first layer reads pixels; every other one reads the output of the previous layer. Raises InvalidInput if two layers
    do not fit.
    """

    name: str
    layers: tuple[NetworkLayer, ...]
    source: str
    trained: str = ""

    def __post_init__(self) -> None:
        if len(self.layers) < 2:
            raise InvalidInput(f"network {self.name}: expected at least two layers")
        if len({layer.name for layer in self.layers}) < len(self.layers):
            raise InvalidInput(f"network {self.name}: two layers have the same name")
        for place, layer in enumerate(self.layers):
            if layer.residual:
                self._check_residual(place, layer)
        for before, after in zip(self.layers, self.layers[1:], strict=False):
            wl, types = after.workload, (before.workload.precision.output, after.workload.precision.activations)
            given, taken = (before.workload.n, *before.output), (wl.n, wl.h, wl.w, wl.c)
            if given != taken or types[0] != types[1]:
                raise InvalidInput(f"network {self.name}: layer {before.name} gives {types[0]} {list(given)}, "
                                   f"{after.name} takes {types[1]} {list(taken)}")  # fmt: skip
        if self.layers[0].workload.precision.activations != PIXEL:
            raise InvalidInput(f"network {self.name}: the first layer must take pixels, {PIXEL}")
        last = self.layers[-1]
        if (last.workload.p, last.workload.q, last.pool, last.residual) != (1, 1, 1, ""):
            raise InvalidInput(f"network {self.name}: the last layer must give one sum for each class and nothing else")

    def _check_residual(self, place: int, layer: NetworkLayer) -> None:
        earlier = {one.name: one.workload for one in self.layers[:place]}
        if layer.residual not in earlier:
            raise InvalidInput(f"network {self.name}: {layer.name} adds sums of {layer.residual}: no earlier layer")
        source, own = earlier[layer.residual], layer.workload
        pool = source.p // own.p
        if pool < 1 or (source.p // pool, source.q // pool) != (own.p, own.q) or source.k > own.k:
            raise InvalidInput(f"network {self.name}: sums of {layer.residual} do not fit those of {layer.name}")

    @property
    def stem(self) -> str:
        """The name without the batch."""
        return self.name.partition("@")[0]

    @property
    def batch(self) -> int:
        """Images per run."""
        return self.layers[0].workload.n

    @property
    def image(self) -> tuple[int, int, int]:
        """Rows, columns and colours of an image."""
        wl = self.layers[0].workload
        return wl.h, wl.w, wl.c

    @property
    def classes(self) -> int:
        """Logits of an image."""
        return self.layers[-1].workload.k

    @property
    def operations(self) -> int:
        """Operations per batch: two for each multiply-accumulate."""
        return sum(layer.workload.operations for layer in self.layers)

    @property
    def residuals(self) -> frozenset[str]:
        """Names of the layers whose sums a later one adds."""
        return frozenset(layer.residual for layer in self.layers if layer.residual)

    @property
    def label(self) -> str:
        """What its results are good for."""
        return f"trained on {self.trained}" if self.trained else SPEED_ONLY

    def largest_sums(self) -> dict[str, int]:
        """Upper bound on each layer's sums, by name, residuals included: it decides whether 16 bits hold a residual."""
        found: dict[str, int] = {}
        for layer in self.layers:
            found[layer.name] = layer.largest_sum + found.get(layer.residual, 0)
        return found

    def layer(self, name: str) -> NetworkLayer:
        """The layer with this name. Raises InvalidInput with the available names."""
        known = {one.name: one for one in self.layers}
        return known[one_of(name, "layer", known)]

    def shortcut_pool(self, layer: NetworkLayer) -> int:
        """How many outputs of the residual's layer, in each direction, are reduced to one."""
        return self.layer(layer.residual).workload.p // layer.workload.p

    def kept_pool(self, name: str) -> int:
        """Size of the windows of a layer's sums of which only the largest is kept for later layers: 2 if all of these
        layers want the maximum of 2 x 2 and there are many sums, else 1. A small number of sums is kept as it is: a
        kernel finds window maxima two rows at a time, and with few rows multiprocessors would idle
        (benchmarks/results/bits/layers-windows-h200-2026-11-23.json)."""
        wanted = {self.shortcut_pool(layer) for layer in self.layers if layer.residual == name}
        w = self.layer(name).workload
        return WINDOW if wanted == {WINDOW} and w.n * w.p * w.q * w.k >= MANY_SUMS else 1

    @checked
    def at(self, batch: int) -> Network:
        """The same network with another batch size. Raises InvalidInput."""
        images = whole(batch, "batch", 1)
        return replace(self, name=f"{self.stem}@{images}", layers=tuple(layer.at(images) for layer in self.layers))

    @cached_property
    def parameters(self) -> Parameters:
        """The trained parameters if there are any, else random ones with seed 0."""
        if not self.trained:
            return self.random_parameters(0)
        from subbyte.networks.trained import trained_parameters

        return trained_parameters(self)

    @checked
    def random_parameters(self, seed: int = 0) -> Parameters:
        """Random weights and batch normalizations with biases, negative and zero gammas: "speed only"."""
        return random_parameters(self.layers, whole(seed, "seed"))

    @checked
    def random_images(self, seed: int = 0) -> Images:
        """A batch of noise, uint8 [N,H,W,C]."""
        return np.random.default_rng(whole(seed, "seed")).integers(0, 256, (self.batch, *self.image), np.uint8)

    def check_images(self, images: Images) -> Images:
        """``images`` if they are uint8 [N,H,W,C] of the network's size. Raises InvalidInput."""
        return check_array(images, "images", np.uint8, (None, *self.image))

    @checked
    def reference(self, images: Images, parameters: Parameters | None = None) -> NetworkResult:
        """Exact logits of any number of images uint8 [N,H,W,C], and every layer's values, computed on values: no bits,
        no kernel. Raises InvalidInput."""
        from subbyte.networks.reference import reference_layers

        given = (parameters or self.parameters).check(self.layers)
        outputs = tuple(reference_layers(self, given, self.check_images(images)))
        return NetworkResult.of(self.name, given, outputs)

    @checked
    def compile(self, arch: str = "sm_90a", *, parameters: Parameters | None = None) -> CompiledNetwork:
        """Kernels for all layers. No GPU is needed. Raises Unsupported with the reason if a layer has none."""
        from subbyte.networks.compiled import CompiledNetwork

        return CompiledNetwork(self, (parameters or self.parameters).check(self.layers), arch)

    @checked
    def timeline(self, arch: str = "sm_90a") -> NetworkTimeline:
        """What each layer computes and moves, and the least time that this takes. No GPU is needed."""
        from subbyte.networks.timeline import timeline

        return timeline(self, arch)

    def __repr__(self) -> str:
        return f"Network({self.name}, {len(self.layers)} layers, {self.label})"

    def _repr_html_(self) -> str:
        rows = (
            (layer.name, layer.workload.spec, layer.kind, layer.pool, layer.residual, f"{layer.workload.operations:,}")
            for layer in self.layers
        )
        caption = f"{self.name}: {self.source}; {self.label}"
        return table(rows, ("layer", "workload", "kind", "pool", "adds sums of", "operations"), caption)

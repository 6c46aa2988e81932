"""A small convolutional network, trained on handwritten digits and pruned: its int4 weights and what they read.

Trained, pruned and stored by ``benchmarks/sparse pruning``; the file holds only the integers for each density.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.networks.images import DIGITS, image_set
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload, Precision

TYPES = Precision.of("w4a4:signed.unsigned")
"""int4 weights; the layers' inputs and outputs, after their ReLU, are uint4."""
LAYERS: Mapping[str, tuple[int, int, int, int, int, int]] = {
    "conv1": (8, 1, 32, 3, 1, 1),
    "conv2": (8, 32, 32, 3, 1, 2),
    "conv3": (4, 32, 32, 3, 1, 1),
    "linear": (4, 32, 10, 4, 0, 1),
}
"""Layer -> rows of its square input, channels, filters, kernel size, padding, stride."""
DENSITIES = (100, 50, 25, 10)
"""Shares of weights, in percent, that pruning keeps in each layer but the first."""
SHADES = 16
"""Pixel steps per uint4 step of an image."""


def layer_of(name: str, images: int) -> ConvWorkload:
    """A layer for this number of images."""
    rows, c, k, window, pad, stride = LAYERS[name]
    return ConvWorkload(images, rows, rows, c, k, window, window, pad, stride, name=name, precision=TYPES)


def first_values(images: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Images as the uint4 values that the first layer reads."""
    return np.clip((images.astype(np.int32) + SHADES // 2) // SHADES, 0, 15).astype(np.int8)


@dataclass(frozen=True)
class PrunedLayer:
    """A layer's integers: weights int8 [K,R,S,C], bias int32 [K] in steps of a sum, and the scale [K] of its output."""

    name: str
    weights: NDArray[np.int8]
    bias: NDArray[np.int32]
    scale: NDArray[np.float64]


def walk(
    layers: tuple[PrunedLayer, ...], images: NDArray[np.uint8]
) -> Iterator[tuple[PrunedLayer, NDArray[np.int8], NDArray[np.int64]]]:
    """Each layer with the values that it reads, and its sums with the bias: those of the last layer are logits."""
    x = first_values(images)
    for one in layers:
        sums = reference(layer_of(one.name, len(images)), x, one.weights)
        yield one, x, sums.astype(np.int64) + one.bias
        if one.name != layers[-1].name:
            x = Requantization.from_scale(one.scale, one.bias, relu=True, output=TYPES.output).apply(sums)


def accuracy(layers: tuple[PrunedLayer, ...], images: NDArray[np.uint8], labels: NDArray[np.int64]) -> float:
    """Share of images that the integer network classifies correctly."""
    *_, (_, _, logits) = walk(layers, images)
    return float((logits.reshape(len(images), -1).argmax(1) == labels).mean())


@cache
def pruned_layers(percent: int) -> tuple[PrunedLayer, ...]:
    """The shipped layers of a density, in percent. Raises InvalidInput for one that was not trained."""
    if percent not in DENSITIES:
        raise InvalidInput(f"density {percent} %: networks were pruned to {', '.join(map(str, DENSITIES))} %")
    with files(__package__).joinpath("pruned.npz").open("rb") as opened, np.load(opened) as held:
        return tuple(
            PrunedLayer(name, *(held[f"{percent}.{name}.{part}"] for part in ("weights", "bias", "scale")))
            for name in LAYERS
        )


def pruned_arrays(percent: int) -> dict[str, NDArray[np.int8]]:
    """Weights [filters, R*S*C], and the values that each layer reads [pixels, C] for the images not used in training,
    by name.

    Raises InvalidInput for another density, MissingDependency without scikit-learn, which contains the images.
    """
    given = image_set(DIGITS)
    found: dict[str, NDArray[np.int8]] = {}
    for one, x, _ in walk(pruned_layers(percent), given.images[given.test]):
        found[f"{one.name} weights"] = one.weights.reshape(len(one.weights), -1)
        found[f"{one.name} reads"] = x.reshape(-1, x.shape[-1])
    return found

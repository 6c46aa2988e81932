"""Trains a few-bit perceptron in plain numpy: straight-through gradients, batch normalization, Adam.

Real numbers exist only here. The result is integers: weights, thresholds and the scale of the logits
(:class:`~subbyte.networks.parameters.Parameters`). The trained network is evaluated in both forms, and no prediction
may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.networks.catalogue import perceptron
from subbyte.networks.images import ImageSet, image_set
from subbyte.networks.layer import pixel_values
from subbyte.networks.network import Network
from subbyte.networks.parameters import Logits, Parameters
from subbyte.networks.quantizers import Quantizer, Reals, Rounding, Unrounded
from subbyte.numerics.thresholds import Thresholds

EPS = 1e-5
EPOCHS = {"digits": 60, "mnist": 16}
BATCH = 100
RATE = 2e-3
LOGIT_SCALE = 0.3
"""Scale of the normalized sums of the last layer, before the softmax."""
Report = Callable[[int, int], None]
"""Called after each epoch with its number, from 1, and the number of epochs."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network: ``parameters`` in integers, ``accuracy`` of the integer network on the ``images`` of the test
    split, ``float_accuracy`` of the same network evaluated in floating point, and the number of ``differing``
    predictions."""

    network: Network
    parameters: Parameters
    data: str
    images: int
    accuracy: float
    float_accuracy: float
    differing: int
    epochs: int
    seed: int
    predictions: NDArray[np.int64]
    float_predictions: NDArray[np.int64]
    labels: NDArray[np.int64]

    def text(self) -> str:
        """Three lines for a terminal."""
        right = round(self.accuracy * self.images)
        return (
            f"{self.network.stem}: {self.epochs} epochs, seed {self.seed}\n"
            f"integers   {right} of {self.images} test images as they should be: {self.accuracy:.1%}\n"
            f"reals      {self.float_accuracy:.1%}; {self.differing} predictions differ"
        )

    @property
    def summary(self) -> dict[str, str | int | float]:
        """All fields except the arrays."""
        return {"network": self.network.stem, "data": self.data, "test_images": self.images,
                "accuracy": self.accuracy, "float_accuracy": self.float_accuracy, "differing": self.differing,
                "epochs": self.epochs, "seed": self.seed}  # fmt: skip


@dataclass(eq=False)
class _Layer:
    """Real weights [C,K], and the normalization of their sums, [K] each."""

    weights: Reals
    gamma: Reals
    beta: Reals
    mean: Reals
    variance: Reals
    quantizer: Rounding
    output: Rounding | None

    def sums(self, x: Reals) -> Reals:
        return x @ self.quantizer(self.weights)

    def normalized(self, sums: Reals) -> Reals:
        return self.gamma * ((sums - self.mean) / np.sqrt(self.variance + EPS)) + self.beta

    def forward(self, x: Reals) -> Reals:
        """The forward pass after training: values of the next layer, or logits."""
        y = self.normalized(self.sums(x))
        return y if self.output is None else self.output(y)


@checked
def train(
    data: str, precision: str = "w1a1", *, epochs: int | None = None, seed: int = 0,
    widths: tuple[int, ...] | None = None, bagged: bool = False, report: Report | None = None,
) -> Trained:  # fmt: skip
    """Train the network of a data set (``digits``, ``mnist``) in a precision such as ``w1a2``, and check that its
    integers predict the same as its real numbers.

    ``bagged`` draws the same number of training images with replacement, as members of an ensemble do. Takes seconds
    for digits, about half a minute for mnist on one core. Raises InvalidInput for types that cannot be trained,
    MissingDependency without the images.
    """
    given = image_set(data)
    rounds = EPOCHS[data] if epochs is None else whole(epochs, "epochs", 1, 10_000)
    network = perceptron(data, precision, widths=widths)
    rng = np.random.default_rng(whole(seed, "seed"))
    places = rng.choice(given.train, len(given.train)) if bagged else given.train
    layers = _fitted(network, given, places, rounds, rng, report)
    return _evaluated(network, layers, given, rounds, seed)


@checked
def float_accuracy(
    data: str, *, epochs: int | None = None, seed: int = 0, widths: tuple[int, ...] | None = None
) -> float:
    """Accuracy on the test split of the same network with real weights and ReLU: what the bits cost."""
    given = image_set(data)
    rounds = EPOCHS[data] if epochs is None else whole(epochs, "epochs", 1, 10_000)
    rng = np.random.default_rng(whole(seed, "seed"))
    layers = _fitted(perceptron(data, "w1a1", widths=widths), given, given.train, rounds, rng, None, rounded=False)
    return float((_real_predictions(layers, given) == given.labels[given.test]).mean())


def _real_predictions(layers: list[_Layer], given: ImageSet) -> NDArray[np.int64]:
    """Predictions for the test images, in float64."""
    reals: Reals = _pixels(given.images[given.test]).astype(np.float64)
    for layer in layers:
        reals = layer.forward(reals)
    return reals.argmax(axis=1)


def _evaluated(network: Network, layers: list[_Layer], given: ImageSet, epochs: int, seed: int) -> Trained:
    label = f"trained on {given.name}: {epochs} epochs, seed {seed}"
    parameters = _integers(network, layers, label)
    images, labels = given.images[given.test], given.labels[given.test]
    ours = network.reference(images, parameters).predictions
    floats = _real_predictions(layers, given)
    accuracy, of_floats = (float((found == labels).mean()) for found in (ours, floats))
    differing = int(np.count_nonzero(ours != floats))
    return Trained(network, parameters, given.name, len(labels), accuracy, of_floats, differing, epochs, seed, ours,
                   floats, labels)  # fmt: skip


def _integers(network: Network, layers: list[_Layer], label: str) -> Parameters:
    """The kernels' parameters; normalizations become thresholds by exact arithmetic."""
    weights = []
    for layer, spec in zip(layers, network.layers, strict=True):
        wl = spec.workload
        weights.append(layer.quantizer(layer.weights).T.reshape(wl.k, wl.r, wl.s, wl.c).astype(np.int8))
    thresholds = [
        Thresholds.from_batch_norm(one.gamma, one.beta, one.mean, one.variance, eps=EPS, step=one.output.step,
                                   output=one.output.operand)
        for one in layers if isinstance(one.output, Quantizer)
    ]  # fmt: skip
    last = layers[-1]
    logits = Logits.from_batch_norm(last.gamma, last.beta, last.mean, last.variance, EPS)
    return Parameters(tuple(weights), tuple(thresholds), logits, label).check(network.layers)


def _pixels(images: NDArray[np.uint8]) -> NDArray[np.int8]:
    return pixel_values(images).reshape(len(images), -1)


def _fitted(
    network: Network, given: ImageSet, places: NDArray[np.int64], epochs: int, rng: np.random.Generator,
    report: Report | None, rounded: bool = True,
) -> list[_Layer]:  # fmt: skip
    x, labels = _pixels(given.images[places]).astype(np.float32), given.labels[places]
    layers = [_layer(network, number, rng, rounded) for number in range(len(network.layers))]
    moments = [_Adam(p) for one in layers for p in (one.weights, one.gamma, one.beta)]
    for epoch in range(epochs):
        rate = RATE * (1 - 0.9 * epoch / epochs)
        order = rng.permutation(len(x))
        for first in range(0, len(x) - BATCH + 1, BATCH):
            batch = order[first : first + BATCH]
            gradients = _gradients(layers, x[batch], labels[batch])
            for moment, gradient in zip(moments, gradients, strict=True):
                moment.step(gradient, rate)
            for one in layers if rounded else ():
                np.clip(one.weights, -1, 1, out=one.weights)
        if report is not None:
            report(epoch + 1, epochs)
    return _settled(layers, x)


def _layer(network: Network, number: int, rng: np.random.Generator, rounded: bool) -> _Layer:
    wl = network.layers[number].workload
    weights: Rounding = Quantizer.of_weights(wl.precision.weights) if rounded else Unrounded(relu=False)
    output: Rounding | None = None
    if number < len(network.layers) - 1:
        output = Quantizer.of_activations(wl.precision.output) if rounded else Unrounded(relu=True)
    spread = 0.1 if wl.precision.weights.bits == 1 else 0.25
    drawn = np.clip(rng.normal(0, spread, (wl.r * wl.s * wl.c, wl.k)), -1, 1).astype(np.float32)
    zeros, ones = np.zeros(wl.k, np.float32), np.ones(wl.k, np.float32)
    beta = np.full(wl.k, output.middle if output else 0.0, np.float32)
    return _Layer(drawn, ones.copy(), beta, zeros, ones, weights, output)


def _settled(layers: list[_Layer], x: Reals) -> list[_Layer]:
    """The same layers with mean and variance over all training images, in float64."""
    found: list[_Layer] = []
    values: Reals = x.astype(np.float64)
    for one in layers:
        sums = values @ one.quantizer(one.weights).astype(np.float64)
        settled = _Layer(one.weights.astype(np.float64), one.gamma.astype(np.float64), one.beta.astype(np.float64),
                         sums.mean(axis=0), sums.var(axis=0), one.quantizer, one.output)  # fmt: skip
        found.append(settled)
        values = settled.forward(values)
    return found


def _gradients(layers: list[_Layer], x: Reals, labels: NDArray[np.int64]) -> list[Reals]:
    """Gradients of the weights, gamma and beta of each layer, for the mean cross-entropy of a batch."""
    kept = []
    for one in layers:
        weights = one.quantizer(one.weights)
        sums = x @ weights
        mean, deviation = sums.mean(axis=0), np.sqrt(sums.var(axis=0) + EPS)
        normal = (sums - mean) / deviation
        y = one.gamma * normal + one.beta
        kept.append((x, weights, normal, deviation, y))
        x = y if one.output is None else one.output(y)
    scores = LOGIT_SCALE * x
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(len(labels)), labels] -= 1
    gradient = scores * (LOGIT_SCALE / len(labels))
    found: list[Reals] = []
    for one, (values, weights, normal, deviation, y) in zip(reversed(layers), reversed(kept), strict=True):
        if one.output is not None:
            gradient = gradient * one.output.passes(y) / one.output.step
        gamma, beta = (gradient * normal).sum(axis=0), gradient.sum(axis=0)
        scaled = gradient * one.gamma
        scaled = (scaled - scaled.mean(axis=0) - normal * (scaled * normal).mean(axis=0)) / deviation
        found = [values.T @ scaled, gamma, beta, *found]
        gradient = scaled @ weights.T
    return found


class _Adam:
    """Adam for one array, which it updates in place."""

    def __init__(self, array: Reals) -> None:
        self._array, self._first, self._second, self._count = array, np.zeros_like(array), np.zeros_like(array), 0

    def step(self, gradient: Reals, rate: float) -> None:
        self._count += 1
        self._first += 0.1 * (gradient - self._first)
        self._second += 0.001 * (gradient * gradient - self._second)
        first, second = self._first / (1 - 0.9**self._count), self._second / (1 - 0.999**self._count)
        self._array -= rate * first / (np.sqrt(second) + 1e-8)

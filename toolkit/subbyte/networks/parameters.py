"""The parameters of a network, trained or random: weights, thresholds and the scale of its logits."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.networks.layer import NetworkLayer
from subbyte.numerics.arrays import Int32Array, check_array, describe
from subbyte.numerics.bit_layer import check_thresholds
from subbyte.numerics.thresholds import Thresholds
from subbyte.numerics.values import check_values, random_values
from subbyte.workload.conv import ConvWorkload

LOGIT_BITS = 24
"""Bits of the largest multiplier of a network's logits: products with sums stay far below 63 bits."""
SPEED_ONLY = "speed only: random parameters, which classify nothing"


@dataclass(frozen=True, eq=False)
class Logits:
    """``logit = sum * multiplier + bias`` for each class: both int64 [K]. Raises InvalidInput."""

    multiplier: NDArray[np.int64]
    bias: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_array(self.multiplier, "multiplier", np.int64, (None,))
        check_array(self.bias, "bias", np.int64, self.multiplier.shape)

    def apply(self, sums: Int32Array) -> NDArray[np.int64]:
        """Sums int32 [N,1,1,K] -> logits int64 [N,K]. Raises InvalidInput."""
        given = check_array(sums, "sums", np.int32, (None, 1, 1, self.bias.size))
        return given[:, 0, 0].astype(np.int64) * self.multiplier + self.bias

    @classmethod
    def from_batch_norm(
        cls, gamma: NDArray[Any], beta: NDArray[Any], mean: NDArray[Any], variance: NDArray[Any], eps: float = 1e-5
    ) -> Logits:
        """``gamma (sum - mean) / sqrt(variance + eps) + beta`` in fixed point, float64 [K] each: multipliers of at most
        24 bits, with the same number of fractional bits for all classes."""
        scale = gamma / np.sqrt(variance + eps)
        bits = LOGIT_BITS - 1 - ceil(log2(max(float(np.abs(scale).max()), 2.0**-20)))
        multiplier = np.rint(np.ldexp(scale, bits)).astype(np.int64)
        return cls(multiplier, np.rint(np.ldexp(beta - scale * mean, bits)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Parameters:
    """For each layer ``weights`` [K,R,S,C], values of its type; for each but the last ``thresholds``; and ``logits``.

    ``label`` says where they come from.
    """

    weights: tuple[NDArray[np.int8], ...]
    thresholds: tuple[Thresholds, ...]
    logits: Logits
    label: str

    def check(self, layers: tuple[NetworkLayer, ...]) -> Parameters:
        """Returns itself. Raises InvalidInput if the parameters do not fit these layers."""
        given = (len(self.weights), len(self.thresholds) + 1)
        if given != (len(layers), len(layers)):
            raise InvalidInput(f"parameters hold {given[0]} weights and {given[1] - 1} thresholds: the network has "
                               f"{len(layers)} layers, all but the last with thresholds")  # fmt: skip
        for layer, w in zip(layers, self.weights, strict=True):
            wl = layer.workload
            check_values(w, f"weights of {layer.name}", wl.precision.weights, (wl.k, wl.r, wl.s, wl.c))
        for layer, thresholds in zip(layers, self.thresholds, strict=False):
            check_thresholds(thresholds, layer.workload)
        if self.logits.bias.size != layers[-1].workload.k:
            raise InvalidInput(f"logits are {describe(self.logits.bias)}: expected {layers[-1].workload.k} classes")
        return self


def random_parameters(layers: tuple[NetworkLayer, ...], seed: int) -> Parameters:
    """Random parameters that cover all cases: batch normalizations with biases, a quarter of the gammas negative, one
    in sixteen 0, folded into thresholds."""
    rng = np.random.default_rng(seed)
    weights = [_random_weights(layer.workload, rng) for layer in layers]
    spread = 0.0
    spreads: dict[str, float] = {}
    thresholds = []
    for layer in layers[:-1]:
        spread = float(np.hypot(_spread(layer.workload), spreads.get(layer.residual, 0.0)))
        spreads[layer.name] = spread
        thresholds.append(_random_thresholds(layer.workload, spread, rng))
    last = layers[-1].workload
    scale, shift = rng.uniform(0.5, 1.5, last.k), rng.normal(0.0, 0.25, last.k)
    logits = Logits.from_batch_norm(scale, shift, np.zeros(last.k), np.full(last.k, _spread(last) ** 2))
    return Parameters(tuple(weights), tuple(thresholds), logits, SPEED_ONLY)


def _random_weights(wl: ConvWorkload, rng: np.random.Generator) -> NDArray[np.int8]:
    return random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)


def _spread(wl: ConvWorkload) -> float:
    """The standard deviation of the sums of random values."""
    weights, activations = (np.array(one.values, float) for one in (wl.precision.weights, wl.precision.activations))
    return float(np.sqrt((weights**2).mean() * (activations**2).mean() * wl.r * wl.s * wl.c))


def _random_thresholds(wl: ConvWorkload, spread: float, rng: np.random.Generator) -> Thresholds:
    gamma = rng.uniform(0.5, 1.5, wl.k) * np.where(rng.random(wl.k) < 0.25, -1.0, 1.0)
    gamma[rng.random(wl.k) < 1 / 16] = 0.0
    output = wl.precision.output
    middle = (output.least + output.largest) / 2
    step = 1.0 if output.bits == 1 else 2.0 / output.largest
    beta = middle * step + rng.normal(0.0, 0.5, wl.k)
    mean, variance = rng.normal(0.0, spread / 4, wl.k), np.full(wl.k, spread**2)
    return Thresholds.from_batch_norm(gamma, beta, mean, variance, bias=rng.normal(0.0, 1.0, wl.k), step=step,
                                      output=output)  # fmt: skip

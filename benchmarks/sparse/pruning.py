"""Train and prune a small network on scikit-learn's digits: its accuracy and the densities of its weights.

Trains a network of three convolutions and a fully connected layer in numpy, on the CPU, then prunes a copy to each
density: the smallest weights of each layer but the first become 0, more with each epoch (the cubic schedule of Zhu and
Gupta, "To prune, or not to prune", arXiv 1710.01878, 2017), while training goes on. Each is rounded to int4 weights and
uint4 activations. Writes the integers to NPZ and accuracy and densities to RECORD; ``--print RECORD`` shows a table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared.command import answering, parser_of
from subbyte.errors import InvalidInput
from subbyte.files import prove_writable, write_file
from subbyte.gpu.timing import command_line
from subbyte.networks.images import DIGITS, ImageSet, image_set
from subbyte.numerics import quantize, scale_for
from subbyte.sparse.pruned import DENSITIES, LAYERS, PrunedLayer, accuracy, first_values, walk

Reals = NDArray[np.floating[Any]]
BATCH, RATE = 50, 2e-3
CALIBRATION = 99.9
"""Percentile of a layer's outputs, over the training images, that becomes the largest of its uint4 values."""


class Net:
    """Real weights [R*S*C, K] and biases [K] of each layer, masks of what is kept, and Adam's moments."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.weights: dict[str, Reals] = {}
        self.bias: dict[str, Reals] = {}
        for name, (_, c, k, window, _, _) in LAYERS.items():
            depth = window * window * c
            self.weights[name] = rng.normal(0, np.sqrt(2 / depth), (depth, k)).astype(np.float32)
            self.bias[name] = np.zeros(k, np.float32)
        self.masks = {name: np.ones_like(one, bool) for name, one in self.weights.items()}
        self._moments: dict[tuple[str, int], list[Reals]] = {}
        self._turn = 0

    def copy(self) -> Net:
        """The same weights, to prune."""
        made = Net(np.random.default_rng(0))
        for name in LAYERS:
            made.weights[name], made.bias[name] = self.weights[name].copy(), self.bias[name].copy()
        return made

    def forward(self, x: Reals) -> tuple[Reals, list[tuple[str, Reals, Reals]]]:
        """Logits [N, 10], and of each layer its lowered input and output [N,P,Q,K]."""
        kept = []
        for name in LAYERS:
            lowered = lower(x, name)
            x = lowered @ self.weights[name] + self.bias[name]
            if name != "linear":
                x = np.maximum(x, 0)
            kept.append((name, lowered, x))
        return x.reshape(len(x), -1), kept

    def step(self, x: Reals, labels: NDArray[np.int64], rate: float) -> None:
        """One step of Adam on the cross-entropy of a batch; pruned weights stay 0."""
        logits, kept = self.forward(x)
        scores = np.exp(logits - logits.max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
        scores[np.arange(len(labels)), labels] -= 1
        gradient = (scores / len(labels)).reshape(len(labels), 1, 1, -1)
        self._turn += 1
        for name, lowered, y in reversed(kept):
            if name != "linear":
                gradient = gradient * (y > 0)
            flat = gradient.reshape(-1, gradient.shape[-1])
            back = raised(gradient @ self.weights[name].T, name) if name != "conv1" else gradient
            self._adam(name, 0, lowered.reshape(len(flat), -1).T @ flat, rate)
            self._adam(name, 1, flat.sum(0), rate)
            self.weights[name] *= self.masks[name]
            gradient = back

    def _adam(self, name: str, which: int, gradient: Reals, rate: float) -> None:
        array = (self.weights, self.bias)[which][name]
        first, second = self._moments.setdefault((name, which), [np.zeros_like(array), np.zeros_like(array)])
        first += 0.1 * (gradient - first)
        second += 0.001 * (gradient * gradient - second)
        array -= rate * (first / (1 - 0.9**self._turn)) / (np.sqrt(second / (1 - 0.999**self._turn)) + 1e-8)

    def prune(self, density: float) -> None:
        """Keep this share of the weights of each layer but the first: those of largest magnitude."""
        for name, weights in self.weights.items():
            if name == "conv1":
                continue
            keep = round(weights.size * density)
            order = np.argsort(np.abs(weights), axis=None, kind="stable")[::-1]
            mask = np.zeros(weights.size, bool)
            mask[order[:keep]] = True
            self.masks[name] = mask.reshape(weights.shape)
            weights *= self.masks[name]


def lower(x: Reals, name: str) -> Reals:
    """Input [N,H,W,C] as lowered matrix [N,P,Q,R*S*C]."""
    _, c, _, window, pad, stride = LAYERS[name]
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (1, 2))[:, ::stride, ::stride]
    return views.transpose(0, 1, 2, 4, 5, 3).reshape(*views.shape[:3], window * window * c)


def raised(gradient: Reals, name: str) -> Reals:
    """Gradient of a lowered matrix as that of the input."""
    rows, c, _, window, pad, stride = LAYERS[name]
    n, p, q, _ = gradient.shape
    parts = gradient.reshape(n, p, q, window, window, c)
    found = np.zeros((n, rows + 2 * pad, rows + 2 * pad, c), np.float32)
    for r, s in np.ndindex(window, window):
        found[:, r : r + p * stride : stride, s : s + q * stride : stride][:, :p, :q] += parts[:, :, :, r, s]
    return found[:, pad : pad + rows, pad : pad + rows]


def fit(net: Net, given: ImageSet, epochs: int, rng: np.random.Generator, density: float = 1.0) -> None:
    """Train; below a density of 1 prune before each of the first two thirds of the epochs."""
    x, labels = first_values(given.images[given.train]).astype(np.float32) / 15, given.labels[given.train]
    ramp = max(1, epochs * 2 // 3)
    for epoch in range(epochs):
        if density < 1 and epoch < ramp:
            net.prune(1 - (1 - density) * (1 - (1 - (epoch + 1) / ramp) ** 3))
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = rng.permutation(len(labels))
        for first in range(0, len(labels), BATCH):
            places = order[first : first + BATCH]
            net.step(x[places], labels[places], rate)


def integers(net: Net, given: ImageSet) -> tuple[PrunedLayer, ...]:
    """int4 weights, a scale for each filter (of the last layer one), and outputs calibrated on the training images."""
    _, kept = net.forward(first_values(given.images[given.train]).astype(np.float32) / 15)
    scale_in, found = 1 / 15, []
    for name, _, y in kept:
        _, c, k, window, _, _ = LAYERS[name]
        columns = net.weights[name].T.astype(np.float64)
        scales = np.array([scale_for(one) for one in (columns if name != "linear" else columns[None])])
        scales = np.broadcast_to(scales, (k,))
        weights = np.stack([quantize(one, scale) for one, scale in zip(columns, scales, strict=True)])
        bias = np.rint(net.bias[name] / (scale_in * scales)).astype(np.int32)
        scale_out = float(np.percentile(y, CALIBRATION)) / 15
        shaped = np.ascontiguousarray(weights.reshape(k, window, window, c))
        found.append(PrunedLayer(name, shaped, bias, scale_in * scales / scale_out))
        scale_in = scale_out
    return tuple(found)


def row(net: Net, layers: tuple[PrunedLayer, ...], given: ImageSet, percent: int, seconds: float) -> dict[str, Any]:
    """What the record says of a density."""
    images, labels = given.images[given.test], given.labels[given.test]
    logits, _ = net.forward(first_values(images).astype(np.float32) / 15)
    about = [
        {"layer": one.name, "shape": list(one.weights.shape), "kept": float(net.masks[one.name].mean()),
         "weights": float((one.weights != 0).mean()), "activations": float((x != 0).mean())}
        for one, x, _ in walk(layers, images)
    ]  # fmt: skip
    return {"percent": percent, "seconds": round(seconds, 2), "layers": about,
            "float_accuracy": float((logits.argmax(1) == labels).mean()),
            "int4_accuracy": accuracy(layers, images, labels)}  # fmt: skip


def make(npz: Path, record: Path, epochs: int, finetune: int, seed: int) -> int:
    """Train, prune, round, write."""
    for path in (npz, record):
        prove_writable(path)
    given, arrays, rows = image_set(DIGITS), dict[str, NDArray[Any]](), []
    started = time.perf_counter()
    dense = Net(np.random.default_rng(seed))
    fit(dense, given, epochs, np.random.default_rng(seed + 1))
    for percent in DENSITIES:
        net = dense.copy()
        if percent < 100:
            started = time.perf_counter()
            fit(net, given, finetune, np.random.default_rng(seed + 1 + percent), percent / 100)
        layers = integers(net, given)
        rows.append(row(net, layers, given, percent, time.perf_counter() - started))
        for one in layers:
            parts = {"weights": one.weights, "bias": one.bias, "scale": one.scale}
            arrays |= {f"{percent}.{one.name}.{part}": held for part, held in parts.items()}
        print(f"{percent} %: float {rows[-1]['float_accuracy']:.4f}, int4 {rows[-1]['int4_accuracy']:.4f}", flush=True)
    with npz.open("wb") as opened:
        np.savez_compressed(opened, **arrays)
    said = {"schema": 1, "kind": "pruning", "command": command_line(), "date": datetime.now(UTC).date().isoformat(),
            "data": given.name, "train_images": len(given.train), "test_images": len(given.test), "seed": seed,
            "epochs": epochs, "finetune_epochs": finetune, "schedule": "cubic, two thirds of the epochs",
            "rows": rows}  # fmt: skip
    write_file(record, (json.dumps(said, indent=1) + "\n").encode())
    return 0


def table(record: Mapping[str, Any]) -> list[str]:
    """A record as a table: a line for each density."""
    names = [one["layer"] for one in record["rows"][0]["layers"]]
    made = [f"| pruned to | float | int4 | {' | '.join(f'{name} weights, reads' for name in names)} |",
            f"| ---: | ---: | ---: |{' ---: |' * len(names)}"]  # fmt: skip
    for one in record["rows"]:
        parts = [f"{layer['weights']:.3f}, {layer['activations']:.3f}" for layer in one["layers"]]
        made.append(f"| {one['percent']} % | {one['float_accuracy']:.1%} | {one['int4_accuracy']:.1%} | "
                    f"{' | '.join(parts)} |")  # fmt: skip
    return made


@answering
def main(arguments: Sequence[str]) -> int:
    """Train, or print."""
    parser = parser_of("sparse pruning", __doc__)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="NPZ RECORD")
    parser.add_argument("--print", type=Path, dest="shown", metavar="RECORD")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--finetune", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    if asked.shown:
        print("\n".join(table(json.loads(asked.shown.read_text(encoding="utf-8")))))
        return 0
    if len(asked.files) != 2:
        raise InvalidInput(f"{len(asked.files)} files: expected NPZ and RECORD, or --print RECORD")
    npz, record = asked.files
    return make(npz, record, asked.epochs, asked.finetune, asked.seed)

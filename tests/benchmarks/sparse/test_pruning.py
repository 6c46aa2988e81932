"""Pruned weights: gradients against differences, what pruning keeps, and the shipped integers against their record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.shared.command import RESULTS
from benchmarks.sparse import pruning
from benchmarks.sparse.pruning import Net
from subbyte import sparse
from subbyte.errors import InvalidInput
from subbyte.networks.images import image_set
from subbyte.sparse.pruned import DENSITIES, LAYERS, PrunedLayer, accuracy, layer_of, pruned_layers, walk

RECORD = json.loads((RESULTS / "sparse" / "pruning-digits-2026-11-27.json").read_text())


def test_gradients_are_those_of_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, at single weights of each layer."""
    rng = np.random.default_rng(4)
    net = Net(rng)
    for held in (net.weights, net.bias):
        held.update({name: one.astype(np.float64) for name, one in held.items()})
    net.bias = {name: one + 0.05 for name, one in net.bias.items()}
    x, labels = rng.random((3, 8, 8, 1)), np.array([1, 7, 3])
    found: dict[tuple[str, int], np.ndarray] = {}

    def keep(self: Net, name: str, which: int, gradient: np.ndarray, rate: float) -> None:
        found[name, which] = gradient

    def loss() -> float:
        logits, _ = net.forward(x)
        return float((np.log(np.exp(logits).sum(1)) - logits[np.arange(3), labels]).mean())

    monkeypatch.setattr(Net, "_adam", keep)
    net.step(x, labels, 0.0)
    for (name, which), gradient in found.items():
        array = (net.weights, net.bias)[which][name]
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        both = []
        for step in (1e-5, -2e-5):
            array[place] += step
            both.append(loss())
        array[place] += 1e-5
        assert (both[0] - both[1]) / 2e-5 == pytest.approx(gradient[place], rel=1e-4)
    assert len(found) == 2 * len(LAYERS)


def test_the_largest_weights_stay_and_pruned_ones_do_not_come_back() -> None:
    net, rng = Net(np.random.default_rng(0)), np.random.default_rng(1)
    before = {name: one.copy() for name, one in net.weights.items()}
    net.prune(0.25)
    net.step(rng.random((4, 8, 8, 1)).astype(np.float32), np.arange(4), 0.01)
    assert net.masks["conv1"].all()
    for name in ("conv2", "conv3", "linear"):
        mask, old = net.masks[name], np.abs(before[name])
        assert mask.mean() == pytest.approx(0.25, abs=1e-3)
        assert old[mask].min() >= old[~mask].max()
        assert not net.weights[name][~mask].any()
        assert (net.weights[name][mask] != before[name][mask]).any()


@pytest.mark.parametrize(
    "percent", [DENSITIES[-1], *(pytest.param(one, marks=pytest.mark.deep) for one in DENSITIES[:-1])]
)
def test_what_is_shipped_has_the_recorded_accuracy_and_densities(percent: int) -> None:
    (said,) = (one for one in RECORD["rows"] if one["percent"] == percent)
    given, layers = image_set("digits"), pruned_layers(percent)
    images, labels = given.images[given.test], given.labels[given.test]
    assert accuracy(layers, images, labels) == said["int4_accuracy"]
    for (one, x, _), row in zip(walk(layers, images), said["layers"], strict=True):
        assert ((one.weights != 0).mean(), (x != 0).mean()) == (row["weights"], row["activations"])
        assert row["weights"] <= row["kept"] <= (1 if one.name == "conv1" else percent / 100 + 1e-3)
    spoilt = [PrunedLayer(one.name, np.clip(-one.weights, -8, 7), one.bias, one.scale) for one in layers]
    assert accuracy((*layers[:-1], spoilt[-1]), images, labels) < 0.5


def test_a_layers_sums_are_those_of_a_loop() -> None:
    images = image_set("digits").images[:2]
    steps = list(walk(pruned_layers(10), images))
    layer, x, sums = steps[1]
    wl = layer_of(layer.name, 2)
    padded = np.pad(x.astype(int), ((0, 0), (1, 1), (1, 1), (0, 0)))
    for p, q in ((0, 0), (1, 3), (3, 2)):
        window = padded[:, p * wl.stride : p * wl.stride + 3, q * wl.stride : q * wl.stride + 3]
        right = np.einsum("nrsc,krsc->nk", window, layer.weights.astype(int)) + layer.bias
        np.testing.assert_array_equal(sums[:, p, q], right)


def test_they_are_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subbyte.sparse.pruned.DENSITIES", (10,))
    found = sparse.profile("pruned")
    (said,) = (one for one in RECORD["rows"] if one["percent"] == 10)
    assert [one.name for one in found.arrays][:2] == ["10 % conv1 weights", "10 % conv1 reads"]
    densities = [one.density for one in found.arrays]
    assert densities == pytest.approx([row[part] for row in said["layers"] for part in ("weights", "activations")])


def test_wrong_words_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="density 33 %: networks were pruned to 100, 50, 25, 10 %"):
        pruned_layers(33)
    assert pruning.main([str(tmp_path / "a.npz")]) == 2
    assert "1 files: expected NPZ and RECORD" in capsys.readouterr().err
    assert len(pruning.table(RECORD)) == 2 + len(DENSITIES)

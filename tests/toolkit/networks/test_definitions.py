"""Networks as data: the papers' sizes, what fits together, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.networks import CATALOGUE, Network
from subbyte.numerics.thresholds import ALWAYS, NEVER


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_network_is_built_for_any_batch(name: str) -> None:
    found = subbyte.network(f"{name.upper()}@24")
    assert (found.name, found.batch, found.at(3).batch) == (f"{name}@24", 24, 3)
    assert found.layers[0].workload.precision.activations.name == "int8"
    assert found.classes in (10, 1000)


def test_resnet18_is_tcbnns() -> None:
    """Operations without first and fully connected layers, the largest residual and the widths of bits.md 9."""
    found = subbyte.network("tcbnn.resnet18@1")
    layers = {layer.name: layer for layer in found.layers}
    assert sum(layer.workload.operations for name, layer in layers.items() if name.startswith("stage")) == 3_352_559_616
    assert layers["stem"].output == (56, 56, 64)
    assert (layers["fc1"].workload.c * 7 * 7, layers["fc1"].workload.k, found.classes) == (25088, 512, 1000)
    assert max(found.largest_sums()[name] for name in found.residuals) == 31_488 <= 32_767
    assert [found.shortcut_pool(layer) for layer in found.layers if layer.residual] == [1, 1, 2, 1, 2, 1, 2, 1]


def test_wider_activations_may_need_wider_residuals() -> None:
    found = subbyte.network("apnn.resnet18@1")
    assert max(found.largest_sums()[name] for name in found.residuals) > 32_767


def test_fully_connected_layers_read_maps_as_they_lie() -> None:
    for name, width in (("tcbnn.alexnet", 7 * 7 * 256), ("apnn.vgg", 7 * 7 * 512), ("tcbnn.mlp", 784)):
        first = next(layer for layer in subbyte.network(name).layers if layer.kind == "fc").workload
        assert first.r * first.s * first.c == width
        assert (first.p, first.q) == (1, 1)


@pytest.mark.parametrize("name", ["tcbnn.resnet", "resnet18", "", "digits.w1a1@0", "digits.w1a1@x"])
def test_unknown_networks_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        subbyte.network(name)
    if "@" not in name:
        assert all(known in str(refused.value) for known in CATALOGUE)


def _changed(found: Network, place: int, **changes: object) -> Network:
    layers = list(found.layers)
    layers[place] = replace(layers[place], **changes)  # type: ignore[arg-type]
    return replace(found, layers=tuple(layers))


def test_layers_that_do_not_fit_are_refused() -> None:
    found = subbyte.network("tcbnn.resnet18@1")
    with pytest.raises(InvalidInput, match="layer stem gives"):
        _changed(found, 0, pool=2)
    with pytest.raises(InvalidInput, match="no earlier layer"):
        _changed(found, 2, residual="stage4.1a")
    with pytest.raises(InvalidInput, match="do not fit"):
        _changed(found, 1, residual="stem", pool_order="before", workload=replace(found.layers[1].workload, k=32))
    with pytest.raises(InvalidInput, match="two layers have the same name"):
        _changed(found, 1, name="stem")
    with pytest.raises(InvalidInput, match="must take pixels"):
        replace(found, layers=found.layers[-2:])
    with pytest.raises(InvalidInput, match="pool=57"):
        _changed(found, 0, pool=57)


def test_random_parameters_leave_nothing_out() -> None:
    """Negative and zero gammas, biases; they say what they are good for."""
    found = subbyte.network("tcbnn.cifar_vgg@1")
    given = found.random_parameters(3)
    assert given.label.startswith("speed only")
    assert found.label == given.label
    flips = np.concatenate([one.flip for one in given.thresholds])
    levels = np.concatenate([one.levels[0] for one in given.thresholds])
    constant = np.isin(levels, (ALWAYS, NEVER))
    assert 0.15 < flips.mean() < 0.35
    assert 0.03 < constant.mean() < 0.1
    assert len(set(given.logits.multiplier)) > 1
    with pytest.raises(InvalidInput, match="the network has 9 layers"):
        replace(given, weights=given.weights[1:]).check(found.layers)
    with pytest.raises(InvalidInput, match="weights of conv1"):
        replace(given, weights=(given.weights[1], *given.weights[1:])).check(found.layers)

"""Networks as kernels in the emulator, every layer beside the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subbyte.errors import InvalidInput, Unsupported
from subbyte.networks import Network, network, perceptron
from subbyte.networks.builder import Builder
from subbyte.networks.steps import finished, windows
from subbyte.numerics.bit_layer import BEFORE, layer_reference
from subbyte.numerics.values import random_values
from subbyte.workload import ConvWorkload, Precision


def test_pooling_residuals_and_shortcuts_equal_the_reference() -> None:
    made = Builder(3, (12, 12, 3), "w1a2", BEFORE).conv(16, 3, stride=2, name="stem")
    made.conv(40, 3, stride=2, residual="stem", pool=2, name="added").fc(10)
    found = Network("small@3", made.layers, "made up here")
    compiled = found.compile()
    record = compiled.check(found.random_images(1)[[0, 1, 2, 0]], "emulator")
    assert record.differing == 0
    assert [(layer.name, layer.elements) for layer in record.layers] == [
        ("stem", 6 * 2 * 6 * 6 * 16), ("added", 6 * 1 * 1 * 40), ("fc1", 60)
    ]  # fmt: skip
    assert record.layers[0].cpu == "keeps its sums for a later layer"
    assert record.layers[1].cpu == "adds the sums of stem and pools 2 x 2"
    assert record.predictions[0] == record.predictions[3]
    with pytest.raises(Unsupported, match="layer stem keeps its sums for a later layer, which no kernel does yet"):
        compiled.time()


def test_a_trained_network_is_one_chain_of_kernels() -> None:
    found = network("digits.w1a2@8")
    compiled = found.compile()
    images = found.random_images(2)
    ours, right = compiled.run(images[:5], "emulator"), found.reference(images[:5])
    assert set(ours.differing(right).values()) == {0}
    np.testing.assert_array_equal(ours.logits, right.logits)
    assert compiled.apart == {}
    sums = compiled.chain().run(compiled.first_values(images), "emulator")
    np.testing.assert_array_equal(sums, found.reference(images).layer("fc3").sums)
    with pytest.raises(InvalidInput, match="the emulator has no meaningful times"):
        compiled.time(device="emulator")


def test_other_parameters_are_seen_to_differ() -> None:
    found = perceptron("digits", "w1a1", 4, (32,))
    images, given = found.random_images(), found.random_parameters(0)
    other = replace(given, weights=(-given.weights[0], *given.weights[1:]))
    counts = found.reference(images, given).differing(found.reference(images, other))
    assert counts["fc1"] > 0
    with pytest.raises(InvalidInput, match="images"):
        found.reference(images[..., 0], given)
    with pytest.raises(InvalidInput, match="layer 'conv1'"):
        found.reference(images, given).layer("conv1")


@pytest.mark.parametrize("order", ["before", "after"])
def test_what_the_cpu_does_is_the_reference(order: str) -> None:
    """Thresholds of few bits pooled as bits, against pooled sums; channels of the residual that are missing."""
    rng = np.random.default_rng(0)
    wl = ConvWorkload(2, 5, 6, 8, 12, 3, 3, 1, precision=Precision.of("w1a2"))
    x, w = (random_values(one, shape, rng) for one, shape in (
        (wl.precision.activations, (2, 5, 6, 8)), (wl.precision.weights, (12, 3, 3, 8))))  # fmt: skip
    made = Builder(2, (5, 6, 3), "w1a2", order).conv(8, 3).conv(12, 3, pool=2)
    thresholds = Network("two@2", Builder(2, (5, 6, 3), "w1a2", order).conv(8, 3).conv(12, 3).fc(3).layers, "here")
    rule = thresholds.random_parameters(1).thresholds[1]
    residual = rng.integers(-40, 40, (2, 5, 6, 7), np.int32)
    right = layer_reference(wl, x, w, rule, residual, 2, order)
    sums = layer_reference(wl, x, w, rule).sums
    values, kept = finished(made.layers[1], sums, rule, residual)
    np.testing.assert_array_equal(values, right.values)
    np.testing.assert_array_equal(kept, right.sums)


def test_windows_are_what_a_kernel_reads() -> None:
    wl = ConvWorkload(1, 5, 4, 2, 3, 3, 3, 1, 2)
    x = np.arange(1, 41, dtype=np.int8).reshape(1, 5, 4, 2)
    found = windows(wl, x).reshape(wl.p, wl.q, 3, 3, 2)
    np.testing.assert_array_equal(found[1, 1], x[0, 1:4, 1:4])
    assert not found[0, 0, 0].any()
    assert not found[0, 0, :, 0].any()

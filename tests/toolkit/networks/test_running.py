"""Networks as kernels in the emulator, every layer beside the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import subbyte
from subbyte.errors import InvalidInput, Unsupported
from subbyte.kernel.execute import expected_layer, random_operands
from subbyte.networks import Network, network, perceptron
from subbyte.networks.builder import Builder
from subbyte.networks.layer import pixel_values
from subbyte.networks.steps import finished, request, unproven
from subbyte.numerics.bit_layer import AFTER, BEFORE, layer_reference
from subbyte.numerics.residual import LARGEST, WIDE
from subbyte.numerics.values import random_values
from subbyte.workload import ConvWorkload, Precision


def test_a_network_with_pooling_and_residuals_is_one_chain_of_kernels() -> None:
    """A first layer on blocks of pixels that pools, sums that are kept, and added to smaller maps of more channels."""
    made = Builder(3, (32, 32, 3), "w1a2", BEFORE).conv(32, 3, stride=2, pool=2, name="stem")
    made.conv(32, 3, name="kept").conv(64, 3, stride=2, residual="kept", name="added").fc(10)
    found = Network("small@3", made.layers, "made up here")
    compiled = found.compile()
    images = found.random_images(1)[[0, 1, 2, 0]]
    record = compiled.check(images, "emulator")
    assert record.differing == 0
    assert [(layer.name, layer.elements, layer.output, layer.cpu) for layer in record.layers] == [
        ("stem", 6 * 64 * 32, "uint2+pool2", ""), ("kept", 6 * 2 * 64 * 32, "uint2+keep", ""),
        ("added", 6 * 16 * 64, "uint2+addpool2x32", ""), ("fc1", 60, "int32", ""),
    ]  # fmt: skip
    assert record.predictions[0] == record.predictions[3]
    sums = compiled.chain().run(pixel_values(images[:3]), "emulator")
    np.testing.assert_array_equal(sums, found.reference(images[:3]).layer("fc1").sums)
    with pytest.raises(InvalidInput, match="the emulator has no meaningful times"):
        compiled.time(device="emulator")


def test_a_layer_of_many_channels_writes_pairs_of_rows_for_the_next() -> None:
    kernel = subbyte.compile("n8h5w6c128k32r3s3p1:w1a1", output="bipolar1+keep", writes="nb8r")
    assert (kernel.argument("A").form, kernel.argument("Out").form) == ("nhwcnc.planes", "nb8r")
    x, w, rule = random_operands(kernel, 0)
    found, right = kernel.run_layer(x, w, rule, device="emulator"), expected_layer(kernel, x, w, rule)
    np.testing.assert_array_equal(found.values, right.values)
    np.testing.assert_array_equal(found.sums, right.sums)
    with pytest.raises(Unsupported, match="no kernel of it gives bipolar1 and reads nb8r"):
        subbyte.compile("n8h5w6c128k32r3s3p1:w1a1", output="bipolar1", reads="nb8r")


@pytest.mark.deep
def test_what_no_kernel_does_the_cpu_does() -> None:
    made = Builder(3, (9, 9, 3), "w1a2", AFTER).conv(16, 3, name="stem")
    made.conv(40, 3, residual="stem", pool=3, name="odd")
    found = Network("odd@3", made.fc(10).layers, "made up here")
    compiled = found.compile()
    record = compiled.check(found.random_images(1), "emulator")
    assert record.differing == 0
    assert [layer.output for layer in record.layers] == ["uint2+keep", "int32", "int32"]
    assert "no kernel of it gives uint2+add16+pool3after" in record.layers[1].cpu
    assert "the CPU does what follows the sums of odd" in record.text()
    with pytest.raises(Unsupported, match="the CPU computes part of 1 of its 3 layers; odd: "):
        compiled.time()


def test_sums_that_16_bits_may_not_hold_have_32() -> None:
    found = network("apnn.resnet18@1")
    assert found.largest_sums()["stage3.1b"] == 36_096
    asked = {layer.name: request(found, layer)[1] for layer in found.layers}
    assert asked["stage1.1b"].endswith("+add64+keep")
    assert asked["stage3.1b"].endswith("+keep32")
    assert asked["stage3.2b"].endswith("b32+keep32")
    assert not any(unproven(found, layer) for layer in found.layers)
    assert not [one for one in (request(network("tcbnn.resnet18"), layer)[1] for layer in found.layers) if "32" in one]


@pytest.mark.deep
def test_a_network_hands_on_sums_of_32_bits() -> None:
    """A stem of 11 x 11 x 3 pixels of up to 128: its sums may be as large as 46,464."""
    made = Builder(8, (4, 4, 3), "w1a2", BEFORE).conv(32, 11, name="stem")
    found = Network("two@8", made.conv(32, 3, stride=2, residual="stem", name="added").fc(10).layers, "made up here")
    compiled = found.compile()
    assert [one.kernel.output for one in compiled.kernels] == ["uint2+keep32", "uint2+addpool2x32b32", "int32"]
    assert not any(one.cpu for one in compiled.kernels)
    assert compiled.check(found.random_images(1), "emulator").differing == 0


def test_sums_that_no_bits_hold_are_left_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LARGEST, WIDE, 36_000)
    found = network("apnn.resnet18@1")
    assert unproven(found, found.layer("stage1.1b")) == ""
    assert "sums of stage3.1b may be as large as 36,096" in unproven(found, found.layer("stage3.2b"))


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

"""Whole networks: packed for another machine, and compared with a direct convolution of values."""

from __future__ import annotations

import numpy as np

from benchmarks.bits.networks import direct, packed, unpacked
from subbyte.networks import Network, network
from subbyte.networks.builder import Builder


def test_the_direct_convolution_is_the_reference() -> None:
    for order in ("before", "after"):
        made = Builder(3, (16, 16, 3), "w1a2", order).conv(16, 3, stride=2, name="stem").conv(16, 3, pool=2)
        made.conv(24, 3, name="kept").conv(40, 3, stride=2, residual="kept", name="added").fc(10)
        found = Network("small@3", made.layers, "made up here")
        given, images = found.random_parameters(2), found.random_images(1)
        right = found.reference(images, given)
        for ours, layer in zip(direct(found, given, images, np), right.layers, strict=True):
            np.testing.assert_array_equal(ours[0], layer.sums if layer.values is None else layer.values)
            if layer.sums is not None:
                np.testing.assert_array_equal(ours[1], layer.sums)


def test_a_pack_is_the_network() -> None:
    found = network("digits.w1a1@8")
    given = packed(found)
    assert [one["output"] for one in given["layers"]] == ["bipolar1", "bipolar1", "int32"]
    back = unpacked(given)
    for one, other in zip(back.kernels, found.compile().kernels, strict=True):
        assert one.kernel.cubin == other.kernel.cubin
        assert one.kernel.plan == other.kernel.plan
        assert one.kernel.resources == other.kernel.resources

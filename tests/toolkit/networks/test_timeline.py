"""What a network computes and moves, layer by layer."""

from __future__ import annotations

import pytest

from subbyte.device.peaks import measured_peaks
from subbyte.errors import Unsupported
from subbyte.networks import Network, network
from subbyte.networks.builder import Builder
from subbyte.networks.steps import fusion, request
from subbyte.numerics.bit_layer import BEFORE


def test_bytes_of_residuals_and_the_reason_of_what_no_kernel_does() -> None:
    """A stem of 11 x 11 x 3 pixels of up to 128: 46,464 do not fit 16 bits; one of 7 x 7 has 18,816."""
    for kernel, bits in ((11, 32), (7, 16)):
        made = Builder(8, (8, 8, 3), "w1a2", BEFORE).conv(32, kernel, name="stem")
        found = Network(
            "two@8", made.conv(64, 3, stride=2, residual="stem", name="added").fc(10).layers, "made up here"
        )
        record = found.timeline()
        stem, added, last = record.layers
        size = 8 * 8 * 8 * 32 * bits // 8
        assert (stem.residual_read, stem.residual_written, added.residual_read) == (0, size, size)
        assert (stem.residual_bits, added.residual_bits, last.residual_bits) == (bits, bits, 0)
        assert (stem.input_bytes, stem.weight_bytes, stem.output_bytes) == (
            8 * 64 * 3, 32 * 3 * kernel**2 // 8, 8 * 64 * 32 * 2 // 8
        )  # fmt: skip
        assert (stem.bit_products, added.bit_products) == (0, 2 * added.operations)  # pixels are multiplied as bytes
        peaks = measured_peaks(record.peaks_of)
        assert stem.multiply == pytest.approx(stem.operations / peaks.peak("s8.wgmma.m64n128k32") / 1e6)
        assert added.multiply == pytest.approx(added.bit_products / peaks.peak("b1.wgmma.m64n128k256") / 1e6)
        moved = sum(layer.bytes_moved for layer in record.layers)
        assert record.residual_share == pytest.approx(2 * size / moved)
        assert ("16 bits are not proven" in record.text()) == (bits == 32)
        assert stem.cpu == added.cpu == ""
        assert record.estimate is not None


def test_kernels_are_asked_for_whole_layers() -> None:
    found = network("tcbnn.resnet18@8")
    asked = [request(found, layer)[1] for layer in found.layers]
    assert asked[:3] == ["bipolar1+keep", "bipolar1", "bipolar1+add64+keep"]
    assert asked[6] == "bipolar1+addpool2x64+keep"
    assert asked[-3:] == ["bipolar1+add512", "bipolar1", "int32"]
    vgg = network("tcbnn.vgg16@8")
    assert fusion(vgg, vgg.layer("conv2")).text == "+pool2after"
    assert fusion(network("apnn.vgg"), network("apnn.vgg").layer("conv4")).text == "+pool2"


def test_no_floors_of_a_gpu_that_nobody_measured() -> None:
    with pytest.raises(Unsupported, match="no GPU of this architecture was measured"):
        network("tcbnn.mlp").timeline("sm_75")

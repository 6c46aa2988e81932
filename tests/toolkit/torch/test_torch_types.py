"""Conv2d on 8-bit types, unsigned int4 and zero points: every element against the independent reference, on the CPU."""

from dataclasses import replace

import numpy as np
import pytest

from subbyte.errors import InvalidInput, Unsupported
from subbyte.numerics import quantize, random_output, random_values, reference
from subbyte.workload import ConvWorkload, Precision

ARCH, SCALE = "sm_80", 0.3
SIZES = ConvWorkload(2, 4, 5, 40, 32, 3, 3, 1)
TYPES = {
    "w4a4:signed.unsigned": "int8",
    "w4a4:signed.offset-z3": "int8",
    "w8a8:signed.signed": "int8",
    "w8a8:signed.unsigned": "uint8",
    "w4a8:signed.offset-z37": "int16",
}
"""Precision, and the dtype of its values."""


@pytest.fixture(scope="module")
def make(torch):
    """A layer of random weights, its x [N,H,W,C] and what the reference gives: ``make(precision, **options)``."""
    from subbyte.torch import Conv2d

    def layer(precision, workload=SIZES, x=None, **options):
        wl = replace(workload, precision=Precision.of(precision))
        rng = np.random.default_rng(3)
        w = random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)
        drawn = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
        x = drawn if x is None else x
        requant = random_output(wl, rng)
        made = Conv2d(np.ascontiguousarray(w.transpose(0, 3, 1, 2)), requant, (wl.n, wl.h, wl.w), padding=wl.pad,
                      arch=ARCH, precision=precision, input_scale=SCALE, output_scale=0.5, **options)  # fmt: skip
        return made, x, requant.apply(reference(wl, x, w))

    return layer


def _nchw(torch, values):
    return torch.from_numpy(np.ascontiguousarray(values)).permute(0, 3, 1, 2)


@pytest.mark.sample("w4a4:signed.unsigned", "w8a8:signed.unsigned", "w4a8")
@pytest.mark.parametrize("precision", TYPES)
def test_values_and_real_numbers_of_every_type(torch, make, precision):
    layer, x, right = make(precision)
    y = layer(_nchw(torch, x))
    assert str(y.dtype) == f"torch.{TYPES[precision]}"
    assert torch.equal(y, _nchw(torch, right))
    activations = layer.workload.precision.activations
    middle = (activations.least + activations.largest) / 2
    real = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)) * 0.2 * activations.magnitude + middle
    real = real * SCALE  # a few lie beyond the type on either side
    found = make(precision, x=quantize(real.double().numpy(), SCALE, activations))[2]
    assert torch.equal(layer(real.permute(0, 3, 1, 2)), _nchw(torch, found))


def test_values_beyond_a_type_with_a_zero_point_become_the_nearest(torch, make):
    layer, x, _ = make("w4a8:signed.offset-z37")
    wide = np.where(x > 100, np.int16(30000), np.where(x < -20, np.int16(-30000), x))
    right = make("w4a8:signed.offset-z37", x=np.clip(wide, -37, 218).astype(np.int16))[2]
    assert torch.equal(layer(_nchw(torch, wide)), _nchw(torch, right))


def test_packed_between_layers_in_one_graph_and_exported(torch, make):
    precision = "w8a8:signed.offset-z37"
    first, x, between = make(precision, gives="packed")
    second, _, right = make(precision, ConvWorkload(2, 4, 5, 32, 24, 1, 1, 0), x=between, gives="float")
    network, given = torch.nn.Sequential(first, second), _nchw(torch, x)
    wanted = _nchw(torch, right.astype(np.float32) * np.float32(0.5))
    assert torch.equal(network(given), wanted)
    assert torch.equal(torch.compile(network, fullgraph=True, backend="aot_eager")(given), wanted)
    assert torch.equal(torch.export.export(network, (given,)).module()(given), wanted)


def test_operators_pass_opcheck(torch, make):
    layer, x, _ = make("w4a8:signed.offset-z37")
    ops, nhwc = torch.ops.subbyte, torch.from_numpy(x)
    for values in (nhwc, nhwc * SCALE):
        given = values, layer.thresholds, layer.reads, ARCH, layer.takes
        assert set(torch.library.opcheck(ops.pack.default, given).values()) == {"SUCCESS"}
    words = ops.conv2d(ops.pack(nhwc, None, layer.reads, ARCH, layer.takes), layer.weight, layer.requantization,
                       layer.kernel)  # fmt: skip
    given = words, layer.shape, layer.writes, ARCH, layer.element, layer.makes
    assert set(torch.library.opcheck(ops.unpack.default, given).values()) == {"SUCCESS"}


def test_a_float_layer_in_bytes(torch):
    """Its answers are 16 times nearer to the float layer's than those of int4 are."""
    from subbyte.torch import Conv2d

    torch.manual_seed(3)
    convolution, norm = torch.nn.Conv2d(40, 32, 3, padding=1), torch.nn.BatchNorm2d(32).eval()
    sample = torch.relu(torch.randn(2, 40, 4, 5))
    with torch.no_grad():
        right = torch.relu(norm(convolution(sample)))
    error = {}
    for precision in ("", "w8a8:signed.unsigned"):
        layer = Conv2d.from_float(convolution, (2, 4, 5), norm=norm, relu=True, sample=sample, arch=ARCH,
                                  precision=precision)  # fmt: skip
        error[precision] = float((layer(sample) - right).abs().max())
    assert error["w8a8:signed.unsigned"] * 16 < error[""]
    with pytest.raises(InvalidInput, match="uint8 values go from 0 to 255"):
        Conv2d.from_float(convolution, (2, 4, 5), sample=sample - 1, precision="w8a8:signed.unsigned")


def test_what_does_not_fit_the_types_is_refused(torch, make):
    layer, x, _ = make("w8a8:signed.unsigned")
    with pytest.raises(InvalidInput, match=r"x is torch.int8 .*: must be \[N,H,W,C\] of uint8, float16"):
        layer(_nchw(torch, x).to(torch.int8))
    with pytest.raises(InvalidInput, match="gives='int8': uint8 values are given as packed, uint8 or float"):
        make("w8a8:signed.unsigned", gives="int8")
    requant = random_output(layer.workload, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="requantization to uint8: the layer gives int8"):
        type(layer)(np.zeros((32, 8, 1, 1), np.int8), requant, (1, 2, 2), precision="w8a8:signed.signed", arch=ARCH)
    with pytest.raises(InvalidInput, match="requantization of 32 channels: the layer has 8"):
        type(layer)(np.zeros((8, 8, 1, 1), np.int8), requant, (1, 2, 2), arch=ARCH)
    with pytest.raises(InvalidInput, match="weight"):
        type(layer)(np.full((8, 8, 1, 1), 100, np.int8), None, (1, 2, 2), precision="w4a8:signed.unsigned", arch=ARCH)


def test_what_is_no_plain_tensor_or_layer_is_refused(torch, make):
    layer, x, _ = make("w8a8:signed.signed")
    kind, nn, given = type(layer), torch.nn, _nchw(torch, x)
    float_layer = kind.from_float
    scales = {"input_scale": 1.0, "output_scale": 1.0, "arch": ARCH}
    for call, message in (
        (lambda: layer(x), "x is a ndarray: must be a dense torch tensor"),
        (lambda: layer(given.float().to_sparse()), "x is a sparse tensor"),
        (lambda: kind(torch.zeros(8, 8, 1, 1), None, (1, 2, 2)), "weight is torch.float32: must be torch.int8"),
        (lambda: float_layer(nn.ConvTranspose2d(8, 8, 3), (1, 4, 4), **scales), "is a ConvTranspose2d: must be a"),
        (lambda: float_layer(nn.Conv2d(8, 8, 3), (1, 4, 4), sample=torch.zeros(1, 3, 4, 4)), r"must be a tensor \[N,8"),
        (lambda: torch.ops.subbyte.unpack(layer.weight, [2, 4], "nhwcnc", ARCH, "int8"), "shape has 2 sizes"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()
    with pytest.raises(Unsupported, match="precision w2a2: a module takes and gives 4 or 8 bits"):
        kind(np.zeros((8, 8, 1, 1), np.int8), None, (1, 2, 2), precision="w2a2", arch=ARCH)


def test_thresholds_stay_exact_in_a_network_of_half_precision(torch, make):
    layer = make("w8a8:signed.signed")[0]
    real = torch.randn(2, 40, 4, 5, generator=torch.Generator().manual_seed(0)) * 30
    right = layer(real.half())
    assert torch.equal(torch.nn.Sequential(layer).half()(real.half()), right)
    assert layer.thresholds.dtype == torch.float32

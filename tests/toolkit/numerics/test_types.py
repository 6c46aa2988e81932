"""Layouts, the reference and requantization of every type of operand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from operand_types import operand_types, precisions

from subbyte.errors import InvalidInput
from subbyte.numerics import (
    Requantization,
    accumulator_bound,
    encode,
    float_words,
    from_hwnc_words,
    from_nhwc_words,
    from_nhwcnc,
    quantize,
    random_values,
    reference,
    relayout,
    scale_for,
    to_hwnc_words,
    to_nhwc_words,
    to_nhwcnc,
)
from subbyte.numerics.requant import product_moments
from subbyte.workload import INT4, ConvWorkload, Operand, Precision, workload

seeds = st.integers(0, 999)


@settings(max_examples=60, deadline=None)
@given(operand_types(), st.sampled_from((None, "planes")), st.tuples(*[st.integers(1, 5)] * 2), st.integers(1, 10),
       st.sampled_from((1, 3, 31, 33, 64, 127, 129, 200)), seeds)  # fmt: skip
def test_layouts_hold_every_value_at_its_place(operand, storage, size, n, c, seed):
    x = random_values(operand, (n, *size, c), np.random.default_rng(seed))
    words = to_nhwcnc(x, operand, storage)
    bits, planes = operand.bits, storage == "planes" or not operand.packed
    blocks = -(-c // 128) * bits if planes else -(-c * bits // 128)
    assert words.shape == (-(-n // 8), *size, blocks, 8, 4)
    np.testing.assert_array_equal(from_nhwcnc(words, n, c, operand, storage), x)
    np.testing.assert_array_equal(from_nhwc_words(to_nhwc_words(x, operand, storage), n, c, operand, storage), x)
    np.testing.assert_array_equal(from_hwnc_words(to_hwnc_words(x, operand, storage), n, c, operand, storage), x)
    np.testing.assert_array_equal(relayout(words, "nhwcnc", "nhwc"), to_nhwc_words(x, operand, storage))
    rng, codes, flat = np.random.default_rng(seed), encode(x, operand), words.ravel()
    for _ in range(20):
        i, h, w, channel = (int(rng.integers(0, extent)) for extent in x.shape)
        pixel = (i // 8 * size[0] + h) * size[1] + w
        for t in range(bits):
            if planes:  # the index of bit networks: plane t of 128 channels
                block, word, place = channel // 128 * bits + t, channel % 128 // 32, channel % 32
            else:
                at = channel * bits + t
                block, word, place = at // 128, at % 128 // 32, at % 32
            index = ((pixel * blocks + block) * 8 + i % 8) * 4 + word
            assert int(flat[index]) >> place & 1 == codes[i, h, w, channel] >> t & 1
    used = np.bitwise_count(flat).sum()
    assert used == np.bitwise_count(codes).sum()  # what fills up is all zero bits


def loops(wl, x, w):
    """The definition on values, in Python integers."""
    y = np.zeros((wl.n, wl.p, wl.q, wl.k), dtype=np.int64)
    outside = {"zero": 0, "minus": wl.precision.activations.least, "plus": wl.precision.activations.largest}
    for n, p, q, k in np.ndindex(y.shape):
        for r, s, c in np.ndindex(wl.r, wl.s, wl.c):
            i, j = p * wl.stride + r * wl.dilation - wl.pad, q * wl.stride + s * wl.dilation - wl.pad
            inside = 0 <= i < wl.h and 0 <= j < wl.w
            y[n, p, q, k] += (int(x[n, i, j, c]) if inside else outside[wl.precision.padding]) * int(w[k, r, s, c])
    return y


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_reference_agrees_with_plain_loops(data):
    size, kernel = st.integers(1, 5), st.integers(1, 3)
    h, w, r, s = (data.draw(part) for part in (size, size, kernel, kernel))
    pad, stride, dilation = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))
    assume((r - 1) * dilation < h + 2 * pad and (s - 1) * dilation < w + 2 * pad)
    sizes = (data.draw(st.integers(1, 2)), h, w, data.draw(st.integers(1, 5)), 2, r, s, pad, stride, dilation)
    wl = ConvWorkload(*sizes, precision=data.draw(precisions()))
    rng = np.random.default_rng(data.draw(seeds))
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    weights = random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)
    y = reference(wl, x, weights)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, loops(wl, x, weights))
    assert np.abs(y.astype(np.int64)).max() <= accumulator_bound(wl)


def planes_product(wl, x, w):
    """1x1 sums from the planes of codes alone: the identities that kernels on bit planes rest on."""
    total = np.zeros((wl.n, wl.h, wl.w, wl.k), np.int64)
    terms = []
    for operand, values in ((wl.precision.activations, x), (wl.precision.weights, w)):
        # value = alpha * code - zeta for every affine encoding; the top plane of two's complement is negative
        planes = [(encode(values, operand).astype(np.int64) >> t) & 1 for t in range(operand.bits)]
        scales = [1 << t for t in range(operand.bits)]
        if operand.encoding == "signed":
            scales[-1] = -scales[-1]
        alpha = 2 if operand.encoding == "bipolar" else 1
        zeta = (1 << operand.bits) - 1 if operand.encoding == "bipolar" else operand.zero_point
        terms.append(([alpha * one for one in scales], planes, zeta))
    (a, xs, x_zero), (b, ws, w_zero) = terms
    ws = [plane[:, 0, 0, :] for plane in ws]
    for (alpha, px), (beta, pw) in product(zip(a, xs, strict=True), zip(b, ws, strict=True)):
        total += alpha * beta * (px @ pw.T)
    total -= w_zero * sum(alpha * px.sum(-1) for alpha, px in zip(a, xs, strict=True))[..., None]
    total -= x_zero * sum(beta * pw.sum(-1) for beta, pw in zip(b, ws, strict=True))
    return total + x_zero * w_zero * wl.c


@settings(max_examples=60, deadline=None)
@given(precisions(), st.sampled_from((1, 31, 130)), seeds)
def test_sums_follow_from_bit_planes(precision, channels, seed):
    wl = ConvWorkload(2, 2, 3, channels, 4, 1, 1, precision=precision)
    rng = np.random.default_rng(seed)
    x = random_values(precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    w = random_values(precision.weights, (wl.k, 1, 1, wl.c), rng)
    np.testing.assert_array_equal(reference(wl, x, w), planes_product(wl, x, w))


def test_padding_means_what_the_type_says():
    x, w = np.full((1, 1, 1, 2), 1, np.int8), np.full((1, 3, 3, 2), 1, np.int8)
    for padding, border in (("zero", 0), ("minus", -1), ("plus", 1)):
        wl = workload(f"n1h1w1c2k1r3s3p1:w1a1:{padding}")
        assert reference(wl, x, w).item() == 2 + 16 * border


def test_the_reference_refuses_values_of_other_types_and_sums_beyond_32_bits():
    wl = workload("n1h2w2c4k3r1s1:w1a2")
    x, w = np.zeros((1, 2, 2, 4), np.int8), np.ones((3, 1, 1, 4), np.int8)
    reference(wl, x, w)
    with pytest.raises(InvalidInput, match="w holds the value 0: expected bipolar1 values -1, 1"):
        reference(wl, x, w * 0)
    with pytest.raises(InvalidInput, match="x holds values from 4 to 4: expected uint2 values 0 to 3"):
        reference(wl, x + np.int8(4), w)
    wide = workload("n1h1w1c80000k1r1s1:w8a8")
    with pytest.raises(InvalidInput, match=r"32640\*R\*S\*C = 2611200000 overflows"):
        reference(wide, np.zeros((1, 1, 1, 80000), np.uint8), np.zeros((1, 1, 1, 80000), np.int8))


@settings(max_examples=60, deadline=None)
@given(operand_types(patterns=("dense",)), st.booleans(), seeds)
def test_requantization_fills_the_range_of_its_output(output, relu, seed):
    wl = ConvWorkload(1, 4, 4, 64, 3, 3, 3, 1, precision=Precision(Operand(3), Operand(2, "unsigned"), output))
    rng = np.random.default_rng(seed)
    if not output.contiguous:
        with pytest.raises(InvalidInput, match="expected a type of consecutive integers"):
            Requantization.random(wl, rng)
        return
    requant = Requantization.random(wl, rng, relu=relu)
    assert (requant.output, requant.clip[1]) == (output, output.largest)
    sums = rng.integers(-(1 << 31), 1 << 31, (50, 3), np.int32)
    sums[:25] = rng.integers(-400, 400, (25, 3))
    y = requant.apply(sums)
    assert y.dtype == output.dtype
    exact = ((sums.astype(object) + requant.bias) * requant.multiplier.astype(object) * 2) // 2 ** requant.shift.astype(
        object
    )
    low = max(0, output.least) if relu else output.least
    np.testing.assert_array_equal(y, np.clip((exact + 1) // 2, low, output.largest).astype(int))
    assert Requantization.from_scale(0.01, workload=wl).output == output


@pytest.mark.parametrize("types", ["w1a2", "w2a2", "w1a1o4", "w8a8:signed.signed", "w4a4:signed-2of4.unsigned", ""])
def test_random_requantization_uses_the_whole_range(types):
    wl = workload(f"n2h6w6c64k20r3s3p1{types and ':'}{types}")
    rng = np.random.default_rng(3)
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    w = random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)
    y = Requantization.random(wl, rng).apply(reference(wl, x, w))
    levels = wl.precision.output.largest - wl.precision.output.least + 1
    parts = (y.astype(int) - wl.precision.output.least) * min(levels, 16) // levels  # of many values sixteenths
    shares = np.bincount(parts.ravel(), minlength=min(levels, 16)) / y.size
    assert (shares > 0.1 / len(shares)).all()
    assert shares.max() < 4 / len(shares)


def test_requantization_to_a_type():
    uint4 = Operand(4, "unsigned")
    one = Requantization.per_tensor(2, 1, 1, output=uint4)
    np.testing.assert_array_equal(one.apply(np.array([[-9, 9], [100, 4]], np.int32)), [[0, 5], [15, 2]])
    assert one.to_dict()["output"] == "uint4"
    assert "output" not in Requantization.per_tensor(2, 1, 1).to_dict()
    assert float_words(one, 32, 0, 10) is None  # its 15 steps are int4's
    assert Requantization.per_tensor(2, 1, 1).clip == (-8, 7)
    with pytest.raises(InvalidInput, match="expected 0 <= lo <= hi <= 15"):
        Requantization(one.bias, one.multiplier, one.shift, (-8, 7), output=uint4)
    with pytest.raises(InvalidInput, match="output='uint4'"):
        Requantization(one.bias, one.multiplier, one.shift, output="uint4")


def test_moments_of_products():
    assert product_moments(INT4.weights, INT4.activations) == (0.25, 462.1875)
    assert product_moments(Operand(1, "bipolar"), Operand(1, "bipolar")) == (0, 1)
    assert product_moments(Operand(4, sparsity="2:4"), Operand(4))[0] == 0.125


@given(operand_types(patterns=("dense",)), seeds)
def test_quantized_numbers_are_the_nearest_values(operand, seed):
    real = np.random.default_rng(seed).uniform(min(operand.least, 0), max(operand.largest, 0.1), 50)
    if not (operand.least < 0 < operand.largest):
        real = np.abs(real) if operand.largest > 0 else -np.abs(real)
    scale = scale_for(real, operand)
    found = quantize(real, scale, operand)
    assert found.dtype == operand.dtype
    values = np.array(sorted(set(operand.values)))
    distance = np.abs(real[:, None] / scale - values).min(axis=1)
    np.testing.assert_allclose(np.abs(real / scale - found), distance)
    assert (real / scale <= operand.largest + 1e-9).all()


def test_numbers_of_a_sign_that_a_type_lacks_are_refused():
    with pytest.raises(InvalidInput, match="array goes from -1 to 2: uint4 values go from 0 to 15"):
        scale_for([-1.0, 2.0], Operand(4, "unsigned"))

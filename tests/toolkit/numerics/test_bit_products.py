"""The closed form by popcounts against the reference, which multiplies values; what the reference itself obeys."""

from dataclasses import replace
from importlib import import_module
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from operand_types import operand_types

from subbyte.errors import InvalidInput, Unsupported
from subbyte.numerics import (
    bit_products,
    border_classes,
    planes_of,
    random_values,
    range_reason,
    reference,
    sums_by_popcounts,
)
from subbyte.numerics.bit_products import (
    bit_code,
    channel_constants,
    count_constants,
    count_form,
    pixel_sum_dtype,
    pixel_sums,
    plain_operation,
)
from subbyte.workload import ConvWorkload, Operand, Precision, gemm, workload

ENCODINGS = ("unsigned", "signed", "offset", "bipolar")
closed_form = import_module("subbyte.numerics.bit_products")  # whose name is that of a function as well
PADDINGS = ("zero", "minus", "plus")
seeds = st.integers(0, 999)


def operands(wl, seed=0):
    rng = np.random.default_rng(seed)
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    return x, random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)


def check(wl, x, w, operation="and"):
    """The closed form, and its parts put together, equal the reference."""
    wanted = reference(wl, x, w)
    np.testing.assert_array_equal(sums_by_popcounts(wl, x, w, operation), wanted)
    return wanted


@settings(max_examples=70)
@given(st.data())
def test_bit_products_are_exact(data):
    types = Precision(
        data.draw(operand_types()), data.draw(operand_types()), padding=data.draw(st.sampled_from(PADDINGS))
    )
    h, w, r, s = (data.draw(st.integers(1, most)) for most in (5, 5, 3, 3))
    pad, stride, dilation = (data.draw(st.sampled_from(part)) for part in ((0, 1, 2, 3), (1, 2, 4), (1, 2)))
    assume((r - 1) * dilation < h + 2 * pad and (s - 1) * dilation < w + 2 * pad)
    c, k = data.draw(st.sampled_from((1, 31, 33, 65, 130))), data.draw(st.integers(1, 5))
    wl = ConvWorkload(data.draw(st.integers(1, 2)), h, w, c, k, r, s, pad, stride, dilation, precision=types)
    check(wl, *operands(wl, data.draw(seeds)), data.draw(st.sampled_from(("and", "xor"))))


def counted(wl, x, w, operation):
    """What varies with the pixel in a kernel that counts bits by one operation, and how often that is the sum."""
    form = count_form(wl.precision, operation)
    pixels, taps = closed_form.pixel_words(wl, x), closed_form.tap_words(wl, w)
    windows = np.stack([pixels[:, :, rows, columns] for rows, columns in closed_form._windows(wl)], axis=-2)
    compare = {"and": np.bitwise_and, "xor": np.bitwise_xor}[operation]
    total = form.pixel * pixel_sums(wl, x).astype(np.int64)[..., None]
    for t, one in enumerate(windows.reshape(*windows.shape[:4], 1, -1)):
        for s, other in enumerate(taps.reshape(*taps.shape[:2], -1)):
            total = total + form.factor(s, t) * np.bitwise_count(compare(one, other)).sum(axis=-1, dtype=np.int64)
    return form, total


@settings(max_examples=40)
@given(st.data())
def test_forms_of_counts_are_exact(data):
    types = Precision(
        data.draw(operand_types()), data.draw(operand_types()), padding=data.draw(st.sampled_from(PADDINGS))
    )
    pad, c = data.draw(st.sampled_from((0, 1, 2))), data.draw(st.sampled_from((1, 33, 130)))
    wl = ConvWorkload(2, 3, 4, c, 3, 3, 2, pad, data.draw(st.sampled_from((1, 2))), 1, precision=types)
    x, w = operands(wl, data.draw(seeds))
    form, varying = counted(wl, x, w, data.draw(st.sampled_from(("and", "xor"))))
    constants = count_constants(wl, w, form.operation)
    of = border_classes(wl).of if len(constants) > 1 else np.zeros((wl.p, wl.q), np.int64)
    np.testing.assert_array_equal(varying + constants[of], form.scale * reference(wl, x, w).astype(np.int64))
    least, largest = form.span(wl)
    assert least <= varying.min()
    assert varying.max() <= largest


def test_xor_of_two_signs_needs_no_counts_of_one_side():
    form = count_form("w1a1", "xor")
    assert (form.scale, form.product, form.pixel, form.window) == (1, -2, 0, 2)
    assert count_form("w2a2", "xor").scale == 2
    assert count_form("w1a2", "and").window == 0
    wanted = {
        "w1a1": "xor",
        "w1a2": "xor",
        "w3a2:bipolar.unsigned": "xor",
        "w2a2": "and",
        "w2a1:unsigned.bipolar": "and",
    }
    assert {types: plain_operation(types) for types in wanted} == wanted
    with pytest.raises(InvalidInput, match="did you mean xor"):
        count_form("w1a1", "xnor")


@pytest.mark.sample(6)
@pytest.mark.parametrize("weights", ENCODINGS)
@pytest.mark.parametrize("activations", ENCODINGS)
def test_every_pair_of_encodings(weights, activations):
    for p, q in product((1, 3, 8), repeat=2):
        wl = gemm(2, 3, 37, f"w{p}a{q}:{weights}.{activations}")
        x, w = operands(wl, 10 * p + q)
        for operation in ("and", "xor"):
            check(wl, x, w, operation)


@pytest.mark.parametrize("c", [512, 1024])
@pytest.mark.parametrize("types", ["w1a1", "w1a2", "w2a2", "w1a1:minus"])
def test_many_channels(c, types):
    """The published kernels of APNN-TC leave out a part of the sum where 9 C / 128 is a multiple of 4."""
    wl = workload(f"n1h3w3c{c}k3r3s3p1:{types}")
    x, w = operands(wl, c)
    y = check(wl, x, w)
    without = w.copy()
    without[..., -128:] = wl.precision.weights.values[0]
    assert (reference(wl, x, without) != y).any()


@pytest.mark.sample(12)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("kernel", [(3, 1), (5, 2), (7, 3), (11, 2)])
def test_borders(padding, stride, kernel):
    size, pad = kernel
    wl = workload(f"n2h8w9c40k4r{size}s{size}p{pad}u{stride}:w1a1:{padding}")
    x, w = operands(wl)
    y = check(wl, x, w)
    others = [replace(wl, precision=replace(wl.precision, padding=name)) for name in PADDINGS if name != padding]
    for other in others:  # a kernel that takes one padding for another is found out
        assert (reference(other, x, w) != y).any()
    plain = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=0)
    if padding == "zero" and stride == 1:  # by shifted images, in another order
        total = sum(
            plain[:, r : r + wl.p, s : s + wl.q].astype(int) @ w[:, r, s].astype(int).T
            for r in range(size) for s in range(size)
        )  # fmt: skip
        np.testing.assert_array_equal(y, total)


CASES = ["w1a1", "w1a1:plus", "w1a2", "w2a1", "w2a2", "w2a2:signed.unsigned", "w3a2:bipolar.signed", "w8a8"]


def ones_of(operand, shape):
    return np.full(shape, operand.values[-1], operand.dtype)  # all bits set


@pytest.mark.parametrize("types", CASES)
def test_particular_operands(types):
    wl = workload(f"n2h4w5c70k5r3s3p1:{types}")
    a, b = wl.precision.activations, wl.precision.weights
    x, w = operands(wl)
    shapes = x.shape, w.shape
    even = sum(np.indices(shapes[0])) % 2 == 0
    zeros = [np.full(shape, one.values[0], one.dtype) for one, shape in zip((a, b), shapes, strict=True)]
    spot = zeros[0].copy()
    spot[1, 2, 3, 69] = a.largest
    for given_x in (ones_of(a, shapes[0]), zeros[0], spot, np.where(even, a.least, a.largest).astype(a.dtype), x):
        for given_w in (ones_of(b, shapes[1]), zeros[1], w):
            check(wl, given_x, given_w)


@pytest.mark.parametrize("types", CASES)
def test_channels_in_another_order(types):
    wl = workload(f"n2h4w4c70k5r3s3p1u2:{types}")
    x, w = operands(wl)
    y, order = check(wl, x, w), np.random.default_rng(5).permutation(70)
    np.testing.assert_array_equal(check(wl, x[..., order], w[..., order]), y)
    assert (check(wl, x[..., order], w) != y).any()


@pytest.mark.parametrize("padding", PADDINGS)
def test_complements(padding):
    """Bipolar weights with every bit turned over give the negative sum."""
    for types in ("w1a1", "w1a3:bipolar.unsigned", "w2a2:bipolar.bipolar"):
        wl = workload(f"n2h4w4c70k5r3s3p1:{types}:{padding}")
        x, w = operands(wl)
        np.testing.assert_array_equal(check(wl, x, -w), -check(wl, x, w))


@settings(max_examples=20)
@given(st.integers(1, 8), st.integers(1, 8), seeds)
def test_the_sum_of_planes(p, q, seed):
    """A product of wide operands is the sum of one-bit products of their planes, each with its powers of two."""
    wl = workload(f"n1h3w3c40k3r3s3p1:w{p}a{q}:unsigned.unsigned")
    x, w = operands(wl, seed)
    one = Operand(1, "unsigned")
    single = replace(wl, precision=Precision(one, one))
    total = np.zeros((1, 3, 3, 3), np.int64)
    for s, w_plane in enumerate(planes_of(w, wl.precision.weights)):
        for t, x_plane in enumerate(planes_of(x, wl.precision.activations)):
            total += reference(single, x_plane.view(np.int8), w_plane.view(np.int8)).astype(np.int64) << (s + t)
    np.testing.assert_array_equal(reference(wl, x, w), total)


@pytest.mark.parametrize("types", CASES)
def test_matrix_products(types):
    wl = gemm(11, 6, 300, types)
    x, w = operands(wl)
    y = check(wl, x, w).reshape(11, 6)
    np.testing.assert_array_equal(y, x.reshape(11, 300).astype(int) @ w.reshape(6, 300).astype(int).T)


@given(operand_types())
def test_values_are_sums_of_bits(operand):
    form = bit_code(operand)
    for code, value in enumerate(operand.values):
        bits = sum(weight * (code >> plane & 1) for plane, weight in enumerate(form.weights))
        assert form.alpha * bits - form.zeta == value


@pytest.mark.parametrize(
    ("types", "formula", "per_pixel", "per_channel", "border", "fill"),
    [
        ("w1a1", "4 U - 2 S - 2 P + n", True, True, "classes", 0),
        ("w1a1:minus", "4 U - 2 S - 2 P + n", True, True, "constant", 0),
        ("w1a1:plus", "4 U - 2 S - 2 P + n", True, True, "constant", 1),
        ("w1a2", "2 U - S", True, False, "nothing", 0),
        ("w1a2:minus", "2 U - S", True, False, "nothing", 0),
        ("w1a2:plus", "2 U - S", True, False, "constant", 3),
        ("w1a1:unsigned.bipolar", "2 U - P", False, True, "classes", 0),
        ("w2a2", "U - 2 S", True, False, "nothing", 0),
        ("w2a2:signed.unsigned", "U", False, False, "nothing", 0),
        ("w2a2:signed.signed:plus", "U", False, False, "constant", 1),
        ("w4a4:signed.offset", "U - 8 P", False, True, "constant", 8),
        ("w3a3:bipolar.bipolar", "4 U - 14 S - 14 P + 49 n", True, True, "classes", 0),
    ],
)
def test_what_each_precision_needs(types, formula, per_pixel, per_channel, border, fill):
    form = bit_products(types)
    assert form.formula == formula
    assert (form.per_pixel, form.per_channel, form.border, form.fill) == (per_pixel, per_channel, border, fill)
    assert form.xor_formula == ("n - 2 X" if types.startswith("w1a1") and "unsigned" not in types else None)
    assert form.plane_pairs == form.precision.weights.bits * form.precision.activations.bits


def test_border_classes():
    found = border_classes(workload("n1h5w6c1k1r3s3p1:w1a1"))
    assert found.of.tolist() == [[0, 1, 1, 1, 1, 2], *[[3, 4, 4, 4, 4, 5]] * 3, [6, 7, 7, 7, 7, 8]]
    assert found.taps.sum(axis=(1, 2)).tolist() == [4, 6, 4, 6, 9, 6, 4, 6, 4]
    assert found.taps[0].tolist() == [[False] * 3, [False, True, True], [False, True, True]]
    assert len(border_classes(workload("n1h8w8c1k1r3s3p1u2:w1a1")).taps) == 4  # stride 2 never reaches the far border
    assert len(border_classes(workload("n1h5w5c1k1r1s1:w1a1")).taps) == 1
    wide = border_classes(workload("n1h9w9c1k1r5s5p2:w1a1"))
    assert len(wide.taps) == 25
    assert (wide.of.min(), wide.of.max()) == (0, 24)


def test_parts_of_the_closed_form():
    wl = workload("n2h4w5c40k6r3s3p1:w1a1")
    x, w = operands(wl)
    constants, sums = channel_constants(wl, w), pixel_sums(wl, x)
    assert (constants.shape, sums.shape, sums.dtype) == ((9, 6), (2, 4, 5), np.int32)
    np.testing.assert_array_equal(constants[4], -w.sum(axis=(1, 2, 3), dtype=int))  # n - 2 P in the middle
    np.testing.assert_array_equal(sums[:, 1, 1], (x[:, 0:3, 0:3] > 0).sum(axis=(1, 2, 3)))
    filled = replace(wl, precision=Precision.of("w1a1:plus"))
    assert channel_constants(filled, w).shape == (1, 6)
    assert pixel_sums(filled, x)[0, 0, 0] == (x[0, :2, :2] > 0).sum() + 5 * 40


def test_the_range_of_sums():
    fits = workload("n1h3w3c1024k1r3s3p1:w8a8:unsigned.unsigned")  # 4 U would not fit: all is modulo 2^32
    assert range_reason(fits) is None
    bipolar = workload("n1h1w1c9216k2r1s1:w8a8:bipolar.bipolar")
    most = np.full((1, 1, 1, 9216), 255, np.int16), np.full((2, 1, 1, 9216), 255, np.int16)
    assert check(bipolar, *most).tolist() == [[[[9216 * 255 * 255] * 2]]]
    wide = workload("n1h1w1c33026k1r1s1:w8a8:unsigned.unsigned")
    assert "range: 33026 products of 8 and 8 bits count up to 2147515650" in range_reason(wide)
    with pytest.raises(Unsupported, match="use fewer channels"):
        sums_by_popcounts(wide, np.zeros((1, 1, 1, 33026), np.int16), np.zeros((1, 1, 1, 33026), np.int16))
    sizes = {"c3640k1r3s3p1:w1a1": "int16", "c3641k1r3s3p1:w1a1": "int32", "c1213k1r3s3p1:w1a2": "int16",
             "c1214k1r3s3p1:w1a2": "int32"}  # fmt: skip
    for text, dtype in sizes.items():
        assert pixel_sum_dtype(workload(f"n1h3w3{text}")) == dtype


def test_what_has_no_closed_form_is_refused(powers):
    with pytest.raises(Unsupported, match="pow3 values are no sums of bits"):
        bit_products(Precision(Operand(3, powers), Operand(2)))
    with pytest.raises(InvalidInput, match="operand types 'w1'"):
        bit_products("w1")
    wl = workload("n1h2w2c3k1r1s1:w1a1")
    x, w = operands(wl)
    with pytest.raises(InvalidInput, match="operation='xnor'"):
        sums_by_popcounts(wl, x, w, "xnor")
    with pytest.raises(InvalidInput, match="x holds the value 0"):
        sums_by_popcounts(wl, x * 0, w)
    with pytest.raises(InvalidInput, match=r"w is int8 \[1, 1, 1, 2\]"):
        sums_by_popcounts(wl, x, w[..., :2])


FAULTS = {
    "border class off by one": ("channel_constants", lambda found: np.roll(found, 1, axis=0)),
    "constants of the inside everywhere": (
        "channel_constants",
        lambda found: np.repeat(found[4:5], len(found), axis=0),
    ),
    "S of the row below": ("pixel_sums", lambda found: np.roll(found, 1, axis=1)),
    "no S": ("pixel_sums", lambda found: found * 0),
    "a plane pair twice": ("_counts", lambda found: 2 * found),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault, monkeypatch):
    name, change = FAULTS[fault]
    right = getattr(closed_form, name)
    wl = workload("n2h5w6c70k5r3s3p1:w1a1")
    x, w = operands(wl)
    check(wl, x, w)
    monkeypatch.setattr(closed_form, name, lambda *given: change(right(*given)))
    with pytest.raises(AssertionError):
        check(wl, x, w)


def test_a_set_filling_bit_is_found(monkeypatch):
    """Bits beyond C count where both operands have them, as words of another channel count would."""
    right = closed_form.plane_words
    wl = workload("n2h3w3c70k5r3s3p1:w1a2")
    x, w = operands(wl)
    monkeypatch.setattr(closed_form, "plane_words", lambda codes, bits: right(codes, bits) | FILLING)
    with pytest.raises(AssertionError):
        check(wl, x, w)


FILLING = np.array([0, 0, 0, 1 << 31], np.uint32)

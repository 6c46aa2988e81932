"""Requantization against Python integers, at every extreme."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subbyte.errors import InvalidInput
from subbyte.numerics import Requantization, accumulator_bound, reference
from subbyte.workload import workload

LOW, HIGH = -(2**31), 2**31 - 1
int32 = st.one_of(st.integers(LOW, HIGH), st.sampled_from([LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH]))
multipliers = st.one_of(st.integers(0, HIGH), st.sampled_from([0, 1, 2**30, HIGH]))
shifts = st.one_of(st.integers(1, 62), st.sampled_from([1, 31, 32, 62]))
clips = st.tuples(st.integers(-8, 7), st.integers(-8, 7)).map(lambda pair: (min(pair), max(pair)))


def exact(acc, bias, multiplier, shift, clip):
    """The definition, in Python integers."""
    return min(max(((acc + bias) * multiplier + (1 << (shift - 1))) >> shift, clip[0]), clip[1])


def array(*values):
    return np.array(values, dtype=np.int32)


@given(st.lists(int32, min_size=1, max_size=6), int32, multipliers, shifts, clips)
def test_apply_is_exact_for_every_int32(accs, bias, multiplier, shift, clip):
    requant = Requantization(array(bias), array(multiplier), array(shift), clip)
    got = requant.apply(np.array(accs, dtype=np.int32)[:, None])
    assert got.dtype == np.int8
    assert got[:, 0].tolist() == [exact(acc, bias, multiplier, shift, clip) for acc in accs]


@pytest.mark.parametrize("shift", [1, 62])
def test_the_outermost_corner_does_not_overflow(shift):
    requant = Requantization(array(LOW, HIGH), array(HIGH, HIGH), array(shift, shift))
    got = requant.apply(np.array([[LOW, HIGH]], dtype=np.int32))
    clip = (-8, 7)
    assert got.tolist() == [[exact(LOW, LOW, HIGH, shift, clip), exact(HIGH, HIGH, HIGH, shift, clip)]]


def test_halves_round_up():
    requant = Requantization.per_tensor(1, multiplier=1, shift=1)
    assert requant.apply(np.arange(-4, 5, dtype=np.int32)[:, None])[:, 0].tolist() == [-2, -1, -1, 0, 0, 1, 1, 2, 2]


def test_channels_have_their_own_parameters():
    requant = Requantization(array(0, 10), array(1, 3), array(1, 2), (0, 7))
    assert requant.apply(np.array([[[4, -9], [-4, -8]]], dtype=np.int32)).tolist() == [[[2, 1], [0, 2]]]


def fixed_form(words, scaled):
    """What a kernel computes from the fixed form's words: one product, one 64-bit offset, the upper word."""
    factor, low, high = (int(row) for row in words[:, 0])
    return (scaled * factor + (high * 2**32 + low % 2**32)) >> 32


@pytest.mark.parametrize("scale_log2", [0, 8])
@given(st.lists(int32, min_size=1, max_size=6), int32, st.integers(0, 2**22), st.integers(1, 24))
def test_the_fixed_form_is_exact_wherever_it_is_offered(scale_log2, accs, bias, multiplier, shift):
    requant = Requantization(array(bias), array(multiplier), array(shift))
    words = requant.fixed_words(1, scale_log2)
    if words is None:
        assert multiplier << (32 - scale_log2 - shift) > HIGH or abs(bias * multiplier << (32 - shift)) >= 2**61
        return
    for acc in accs:
        acc >>= scale_log2
        result = fixed_form(words, acc << scale_log2)
        assert LOW <= result <= HIGH
        assert min(max(result, -8), 7) == exact(acc, bias, multiplier, shift, (-8, 7))


def test_one_channel_outside_the_fixed_form_takes_it_from_all():
    assert Requantization(array(0, 0), array(1, 1), array(24, 24)).fixed_words(32, 8) is not None
    assert Requantization(array(0, 0), array(1, 1), array(24, 25)).fixed_words(32, 8) is None
    assert Requantization(array(0, 0), array(1, HIGH), array(24, 23)).fixed_words(32, 8) is None
    assert Requantization(array(0, HIGH), array(1, HIGH), array(24, 24)).fixed_words(32, 8) is None
    with pytest.raises(InvalidInput, match="k_padded=1"):
        Requantization(array(0, 0), array(1, 1), array(24, 24)).fixed_words(1, 8)


def test_fixed_words_pad_with_zeros():
    words = Requantization(array(-5), array(3), array(20)).fixed_words(3, 8)
    assert words.tolist() == [[3 << 4, 0, 0], [2**31 - (15 << 12), 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("text", ["resnet50.stage2", "resnet50.stage5", "n1h4w4c3k8r1s1"])
def test_from_scale_takes_the_fixed_form_and_says_its_error(text):
    wl = workload(text)
    scales = np.geomspace(2, 40, wl.k) * 8 / accumulator_bound(wl)
    requant = Requantization.from_scale(scales, np.full(wl.k, -7, np.int32), relu=True, workload=wl)
    assert requant.fixed_words(wl.k, 8) is not None
    real = requant.multiplier / 2.0**requant.shift
    assert requant.scale_error == pytest.approx(np.abs(real / scales - 1).max(), rel=1e-6)
    assert 0 < requant.scale_error <= 2.0**-9
    assert requant.clip == (0, 7)


@pytest.mark.parametrize("scale", [1e-7, 2.0**-20 * 1.3, 200.0])
def test_from_scale_keeps_31_bits_where_the_fixed_form_would_be_coarse(scale):
    requant = Requantization.from_scale(scale, k=3)
    assert requant.fixed_words(3, 8) is None
    assert requant.scale_error <= 2.0**-30


@pytest.mark.parametrize("scale", [1e-25, 2.0**-40, 1 - 2.0**-40, 2.0**29])
def test_from_scale_at_the_ends_of_its_range(scale):
    requant = Requantization.from_scale(scale, k=1)
    real = int(requant.multiplier[0]) / 2.0 ** int(requant.shift[0])
    assert abs(real / scale - 1) == pytest.approx(requant.scale_error, abs=2.0**-30)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 2.0**40, "a", [[1.0]]])
def test_from_scale_refuses(scale):
    with pytest.raises(InvalidInput, match="scale"):
        Requantization.from_scale(scale, k=1)


def test_from_scale_needs_one_number_of_channels():
    with pytest.raises(InvalidInput, match="none given"):
        Requantization.from_scale(0.5)
    with pytest.raises(InvalidInput, match="scale: 2, k: 3"):
        Requantization.from_scale([0.5, 0.5], k=3)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("text", ["n2h6w6c32k16r3s3p1", "n4h8w8c3k8r7s7p3u2", "n2h7w7c256k16r1s1"])
def test_random_uses_the_whole_range(text, wide):
    wl, rng = workload(text), np.random.default_rng(0)
    x = rng.integers(-8, 8, (wl.n, wl.h, wl.w, wl.c), dtype=np.int8)
    w = rng.integers(-8, 8, (wl.k, wl.r, wl.s, wl.c), dtype=np.int8)
    requant = Requantization.random(wl, rng, wide=wide)
    y = requant.apply(reference(wl, x, w))
    assert set(np.unique(y).tolist()) == set(range(-8, 8))
    counts = np.bincount(y.ravel() + 8, minlength=16)
    assert counts[[0, 15]].sum() < 0.3 * y.size
    assert (requant.fixed_words(wl.k, 8) is None) is wide


def test_words_pad_with_0_0_1():
    requant = Requantization(array(-5, 6), array(3, 4), array(7, 62))
    words = requant.words(4)
    assert words.dtype == np.int32
    assert words.tolist() == [[-5, 6, 0, 0], [3, 4, 0, 0], [7, 62, 1, 1]]
    with pytest.raises(InvalidInput, match="k_padded=1"):
        requant.words(1)


@pytest.mark.parametrize(
    ("bias", "multiplier", "shift", "clip", "words"),
    [
        (array(0), array(-1), array(1), (-8, 7), "multiplier holds -1"),
        (array(0), array(1), array(0), (-8, 7), "shift holds 0 to 0: expected 1 to 62"),
        (array(0), array(1), array(63), (-8, 7), "expected 1 to 62"),
        (array(0, 0), array(1), array(1), (-8, 7), r"multiplier is int32 \[1\]: expected int32 \[2\]"),
        (np.zeros(1, np.int64), array(1), array(1), (-8, 7), r"bias is int64 \[1\]"),
        (array(), array(), array(), (-8, 7), "bias is empty"),
        (array(0), array(1), array(1), (-9, 7), "clip"),
        (array(0), array(1), array(1), (3, 2), "clip"),
        (array(0), array(1), array(1), (1, 2, 3), "clip"),
    ],
)
def test_wrong_parameters_are_named(bias, multiplier, shift, clip, words):
    with pytest.raises(InvalidInput, match=words):
        Requantization(bias, multiplier, shift, clip)


def test_a_requantization_cannot_change_afterwards():
    bias = array(1)
    requant = Requantization(bias, array(1), array(1))
    bias[0] = 9
    assert requant.bias.tolist() == [1]
    with pytest.raises(ValueError, match="read-only"):
        requant.bias[0] = 2


def test_accumulators_of_another_dtype_or_width_are_refused():
    requant = Requantization.per_tensor(2, 1, 1)
    with pytest.raises(InvalidInput, match="acc is int64"):
        requant.apply(np.zeros((1, 2), np.int64))
    with pytest.raises(InvalidInput, match=r"acc is int32 \[2, 1\]: expected a numpy array int32 \[..., 2\]"):
        requant.apply(np.zeros((2, 1), np.int32))


def test_per_tensor_refuses_what_is_no_int32():
    with pytest.raises(InvalidInput, match="multiplier holds"):
        Requantization.per_tensor(2, 2**31, 1)
    with pytest.raises(InvalidInput, match="bias is float64"):
        Requantization.per_tensor(2, 1, 1, bias=0.5)
    with pytest.raises(InvalidInput, match="k=0"):
        Requantization.per_tensor(0, 1, 1)


def test_to_dict_is_plain_data():
    assert Requantization.per_tensor(2, 3, 4, bias=-1, relu=True).to_dict() == {
        "bias": [-1, -1], "multiplier": [3, 3], "shift": [4, 4], "clip": [0, 7], "scale_error": 0.0,
    }  # fmt: skip


def test_a_residual_is_added_before_rounding():
    rng = np.random.default_rng(5)
    count = 40
    bias = rng.integers(-(1 << 31), 1 << 31, count, np.int32)
    multiplier = rng.integers(0, 1 << 31, count, np.int32)
    shift, added = rng.integers(1, 63, count, np.int32), rng.integers(-(1 << 24), (1 << 24) + 1, count, np.int32)
    requant = Requantization(bias, multiplier, shift, added=added)
    acc = rng.integers(-(1 << 31), 1 << 31, (3, count), np.int32)
    acc[0] = np.where(bias < 0, -(1 << 31), (1 << 31) - 1)
    residual = rng.integers(-128, 128, (3, count), np.int8)
    for place in np.ndindex(acc.shape):
        k = place[1]
        product = (int(acc[place]) + int(bias[k])) * int(multiplier[k]) + int(residual[place]) * int(added[k])
        wanted = min(max((product + (1 << (int(shift[k]) - 1))) >> int(shift[k]), -8), 7)
        assert requant.apply(acc, residual)[place] == wanted
    assert requant.words(64).shape == (4, 64)
    assert requant.fixed_words(64, 8) is None  # shifts beyond 24
    assert Requantization.from_scale(0.01, k=count, added=0.5).fixed_words(64, 8).shape == (4, 64)
    assert Requantization.from_scale(0.01, k=count, added=200.0).fixed_words(64, 8) is None  # 31 bits
    for wrong in (None, residual[:, 1:]):
        with pytest.raises(InvalidInput, match="residual"):
            requant.apply(acc, wrong)
    with pytest.raises(InvalidInput, match="residual given: this requantization adds none"):
        Requantization(bias, multiplier, shift).apply(acc, residual)


@pytest.mark.parametrize("factor", [0.0, -0.4, 1.0, 37.5])
def test_scales_of_a_residual_are_met(factor):
    requant = Requantization.from_scale(0.0123, 7, k=5, added=factor)
    assert requant.added is not None
    assert np.allclose(requant.added / np.exp2(requant.shift), factor, rtol=1e-6)
    assert np.allclose(requant.multiplier / np.exp2(requant.shift), 0.0123, rtol=5e-4)


@pytest.mark.parametrize(
    ("scale", "added", "says"),
    [
        (0.1, [1.0, 2.0], "one or \\[5\\]"),
        (0.1, np.nan, "magnitude"),
        (1e-9, 1e6, "too far apart"),
        (0.1, "a", "numeric"),
    ],
)
def test_scales_of_a_residual_that_cannot_be_met_are_refused(scale, added, says):
    with pytest.raises(InvalidInput, match=says):
        Requantization.from_scale(scale, k=5, added=added)

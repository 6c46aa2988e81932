"""Requantization in floating point: exact wherever it is offered, and refused elsewhere."""

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.numerics import Requantization, float_words
from subbyte.numerics.float_requant import LARGEST_PRODUCT
from subbyte.workload import ConvWorkload

SCALE_LOG2 = 8


def computed(words, sums):
    """What the kernel computes: one fma (exact here in 64 bits of mantissa), its bits saturated to 0..15, minus 8."""
    bits = (sums.astype(np.int64) * 2**SCALE_LOG2 + words[0]).astype(np.int32)
    factor, offset = (words[row].view(np.float32).astype(np.longdouble) for row in (1, 2))
    units = (bits.view(np.float32) * factor + offset) / np.ldexp(np.longdouble(1), -149)
    return np.rint(np.clip(units, 0, 15)).astype(np.int8) - 8


def check(requant, terms, rng):
    """True when offered and right for every tried sum; False when refused."""
    words = float_words(requant, requant.channels, SCALE_LOG2, terms)
    if words is None:
        return False
    limit = LARGEST_PRODUCT * terms
    edges = [-limit, 1 - limit, -1, 0, 1, limit - 1, limit]
    rough = np.concatenate([rng.integers(-limit, limit + 1, 200), rng.integers(-limit, limit + 1, 2000) // 16, edges])
    sums = np.repeat(rough[:, None], requant.channels, axis=1).astype(np.int32)
    ideal = (np.arange(-8, 9) - 0.5)[:, None] * np.ldexp(1.0 / np.maximum(requant.multiplier, 1e-9), requant.shift)
    near = np.clip(np.rint(ideal) - requant.bias.astype(np.float64), -limit, limit)
    steps = np.concatenate([np.clip(near + d, -limit, limit) for d in range(-3, 4)]).astype(np.int32)
    for tried in (sums, steps):
        assert np.array_equal(computed(words, tried), requant.apply(tried))
    return True


@pytest.mark.sample(4)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("shape", [(64, 64, 3), (512, 512, 3), (2048, 256, 1), (3, 64, 7)])
def test_realistic_layers_are_always_offered(shape, wide):
    channels, filters, taps = shape
    workload = ConvWorkload(8, 14, 14, channels, filters, taps, taps, taps // 2)
    rng = np.random.default_rng(1)
    for _ in range(3):
        assert check(Requantization.random(workload, rng, wide=wide), taps * taps * channels, rng)


def test_powers_of_two_whose_steps_fall_between_two_sums():
    rng = np.random.default_rng(2)
    for shift in range(1, 12):
        for bias in (0, -7, 1000, -40_000, 2**31 - 1, -(2**31)):
            assert check(Requantization.per_tensor(1, 1, shift, bias), 576, rng)


def test_every_slope_up_to_a_binade_of_sums():
    """2,000 channels of any slope whose 15 steps lie within 2^23 patterns of a scaled sum."""
    rng = np.random.default_rng(3)
    scale = np.exp2(rng.uniform(-11, 8, 2000))
    shift = rng.integers(12, 20, 2000).astype(np.int32)
    multiplier = np.maximum(np.rint(np.ldexp(scale, shift)), 1).astype(np.int32)
    bias = rng.integers(-20_000, 20_000, 2000).astype(np.int32)
    assert check(Requantization(bias, multiplier, shift), 1152, rng)


@pytest.mark.parametrize("bias", [0, 5, -(2**31), 2**31 - 1])
def test_channels_without_a_step_are_constant(bias):
    rng = np.random.default_rng(4)
    for multiplier, shift in ((0, 5), (1, 62)):
        assert check(Requantization.per_tensor(32, multiplier, shift, bias), 4608, rng)


def test_refuses_steps_that_span_more_than_a_binade():
    rng = np.random.default_rng(5)
    assert check(Requantization.per_tensor(1, 1, 11), 4608, rng)
    assert not check(Requantization.per_tensor(1, 1, 13), 4608, rng)


def test_refuses_sums_beyond_the_positive_floats():
    requant = Requantization.per_tensor(1, 1, 7)
    assert float_words(requant, 1, SCALE_LOG2, 40_000) is not None
    assert float_words(requant, 1, SCALE_LOG2, 100_000) is None


def test_one_wrong_channel_is_found():
    """A line that is off by one sum must not count as proven."""
    from subbyte.numerics import float_requant

    requant, limit = Requantization.per_tensor(1, 37, 12, 5), LARGEST_PRODUCT * 576
    steps = float_requant._steps(requant, limit)
    words = float_words(requant, 1, SCALE_LOG2, 576)
    assert float_requant._proven(steps, limit, SCALE_LOG2, words)
    for shift in (-1, 1):
        moved = words + np.array([[shift * 2**SCALE_LOG2], [0], [0]], np.int32)
        assert not float_requant._proven(steps, limit, SCALE_LOG2, moved)


def test_padding_gives_zero_and_too_few_places_are_refused():
    requant = Requantization.per_tensor(3, 37, 12)
    words = float_words(requant, 32, SCALE_LOG2, 576)
    assert (words.dtype, words.shape) == (np.int32, (3, 32))
    for sums in (0, -36_864, 36_864):
        assert not computed(words, np.full((1, 32), sums))[:, 3:].any()
    with pytest.raises(InvalidInput, match="k_padded=2"):
        float_words(requant, 2, SCALE_LOG2, 576)

"""Thresholds against batch normalization and rounding in exact arithmetic; pooling; whole layers and chains."""

from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subbyte import Thresholds
from subbyte.errors import InvalidInput
from subbyte.numerics import (
    layer_reference,
    pack_planes,
    pooled,
    pooled_ranks,
    random_values,
    reference,
    sums_by_popcounts,
    threshold_words,
    to_residual,
)
from subbyte.numerics.thresholds import ALWAYS, NEVER, _floor
from subbyte.workload import ConvWorkload, Operand, Precision, gemm, workload

BIT, UINT2 = Operand(1, "bipolar"), Operand(2, "unsigned")
OUTPUTS = [BIT, Operand(1, "unsigned"), UINT2, Operand(3, "unsigned"), Operand(2, "bipolar"), Operand(3),
           Operand(2, "offset"), Operand(1)]  # fmt: skip
sixteenths = st.integers(-64, 64).map(lambda value: value / 16)


def rounded(value, output, step):
    """The nearest value of a type to value / step, halves to the larger one, clipped: by trying each."""
    values = sorted(output.values)
    best = values[0]
    for low, high in pairwise(values):
        if value >= Fraction(low + high, 2) * step:
            best = high
    return best


@settings(max_examples=60)
@given(st.sampled_from(OUTPUTS), sixteenths, sixteenths, st.integers(-800, 800), st.integers(1, 60),
       st.sampled_from((0.25, 1.0, 3.0)), st.sampled_from((1.0, 0.5, 3.0)), sixteenths, st.integers(0, 99))  # fmt: skip
def test_thresholds_are_batch_normalization_in_rationals(output, gamma, beta, mean, root, step, scale, bias, seed):
    # The root of the variance is rational here, so that the normalization is: root / 4.
    found = Thresholds.from_batch_norm(
        [gamma], [beta], [mean / 8], [root * root / 16], eps=0.0, step=step, scale=scale, bias=bias, output=output
    )
    sums = np.random.default_rng(seed).integers(-300, 300, 12)
    near = [level + d for level in found.levels.ravel().tolist() if ALWAYS < level < NEVER for d in (-1, 0, 1)]
    sums = np.array([[value] for value in [*sums.tolist(), *near, ALWAYS, NEVER - 1] if ALWAYS <= value < NEVER])
    g, b, m, s = map(Fraction, (gamma, beta, mean / 8, scale))
    wanted = [
        rounded(g * (s * int(v) + Fraction(bias) - m) / Fraction(root, 4) + b, output, Fraction(step)) for (v,) in sums
    ]
    got = found.apply(sums.astype(np.int32))
    assert got.dtype == output.dtype
    assert got[:, 0].tolist() == wanted
    assert found.flip.tolist() == [gamma < 0]
    codes = found.codes(sums.astype(np.int32))
    assert [output.values[code] for code in codes[:, 0]] == wanted
    if gamma == 0:
        assert set(found.levels.ravel().tolist()) <= {ALWAYS, NEVER}


@settings(max_examples=40)
@given(st.integers(-64, 64), st.integers(-64, 64), st.integers(-800, 800), st.floats(1e-6, 1e6), st.integers(1, 3))
def test_irrational_roots_are_exact(gamma, beta, mean, variance, bits):
    found = Thresholds.from_batch_norm(gamma / 16, beta / 16, [mean / 8], variance, eps=2**-16, bits=bits, step=0.25)
    getcontext().prec = 80
    root = (Decimal(variance) + Decimal(2) ** -16).sqrt()
    for level, need in zip(found.levels[:, 0].tolist(), (values_between(found.output)), strict=True):
        if ALWAYS < level < NEVER:
            passed = [(Decimal(gamma) / 16 * (v - Decimal(mean) / 8) / root + Decimal(beta) / 16) >= need / 4
                      for v in (level - 1, level)]  # fmt: skip
            assert passed == ([True, False] if gamma < 0 else [False, True])


def values_between(output):
    values = sorted(output.values)
    return [Decimal(low + high) / 2 for low, high in pairwise(values)]


@given(sixteenths, sixteenths, st.integers(0, 60).map(lambda value: value / 4))
def test_the_floor_of_a_sum_with_a_root(mean, factor, square):
    mean, factor, square = map(Fraction, (mean, factor, square))
    found = _floor(mean, factor, square)
    for value, below in ((found, True), (found + 1, False)):  # value - mean <= factor * root, by squares
        left, right = value - mean, factor * factor * square
        if factor >= 0:
            assert (left <= 0 or left * left <= right) == below
        else:
            assert (left <= 0 and left * left >= right) == below


def test_ties_and_signs():
    found = Thresholds.from_batch_norm([1, -1, 0, 0, -0.0], [0, 0, 0, -1, 5], 3, 1, eps=0)
    assert found.output == BIT
    assert found.levels.tolist() == [[3, 4, ALWAYS, NEVER, ALWAYS]]
    assert found.flip.tolist() == [False, True, False, False, False]
    assert found.apply(np.array([[2] * 5, [3] * 5, [4] * 5], np.int32)).tolist() == [
        [-1, 1, 1, -1, 1], [1, 1, 1, -1, 1], [1, -1, 1, -1, 1],
    ]  # fmt: skip
    two = Thresholds.from_batch_norm([1, -1], 0, 0, 1, eps=0, bits=2)
    assert two.levels.tolist() == [[1, 0], [2, -1], [3, -2]]  # halves go up: 0.5, 1.5 and 2.5
    assert two.apply(np.arange(-3, 5, dtype=np.int32)[:, None].repeat(2, 1)).T.tolist() == [
        [0, 0, 0, 0, 1, 2, 3, 3], [3, 2, 1, 0, 0, 0, 0, 0],
    ]  # fmt: skip


def test_what_kernels_get():
    found = Thresholds(np.array([[1, NEVER, 5], [2, NEVER, 4], [3, NEVER, -6]], np.int32),
                       np.array([False, False, True]), UINT2)  # fmt: skip
    words = found.words(64)
    assert (words.shape, words.dtype) == ((3, 64), np.int32)
    assert words[:, :3].tolist() == found.levels.tolist()
    assert (words[:, 3:] == NEVER).all()
    assert found.flip_words(64).tolist() == [4, 0]
    assert found.flip_words(64).dtype == np.uint32
    assert found.to_dict()["output"] == "uint2"
    assert not found.levels.flags.writeable


@pytest.mark.parametrize("types", ["w1a1", "w1a2", "w2a2", "w2a2o1", "w1a1o3", "w4a4"])
def test_random_thresholds_use_the_whole_type(types):
    wl = workload(f"n2h6w6c70k96r3s3p1:{types}")
    rng = np.random.default_rng(3)
    found = Thresholds.random(wl, rng)
    x = random_values(wl.precision.activations, (2, 6, 6, 70), rng)
    w = random_values(wl.precision.weights, (96, 3, 3, 70), rng)
    values = layer_reference(wl, x, w, found).values
    assert set(np.unique(values).tolist()) == set(wl.precision.output.values)
    assert found.flip.any()
    assert not found.flip.all()
    constant = ((found.levels == ALWAYS) | (found.levels == NEVER)).all(axis=0)
    assert constant.any()
    assert not constant.all()


LAYER = workload("n2h4w5c40k6r3s3p1:w1a1")


def ones(*shape):
    return np.zeros(shape, np.int32), np.zeros(shape[1:], np.bool_)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: Thresholds.from_batch_norm([1, 2], [1, 2, 3], 0, 1), "(gamma: 2, beta: 3): expected one; pass a work"),
        (lambda: Thresholds.from_batch_norm([1, 2], 0, 0, 1, workload=LAYER), "(gamma: 2, workload: 6)"),
        (lambda: Thresholds.from_batch_norm(1, 0, 0, 1), "(none given)"),
        (lambda: Thresholds.from_batch_norm([], [], [], []), "gamma is empty"),
        (lambda: Thresholds.from_batch_norm([[1]], 0, 0, 1), "gamma is float64 [1, 1]: expected finite numbers"),
        (lambda: Thresholds.from_batch_norm([np.nan], 0, 0, 1), "gamma is float64 [1]: expected finite"),
        (lambda: Thresholds.from_batch_norm("one", 0, 0, 1), "gamma is"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, -1), "variance holds -1.0: expected >= 0"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 0, eps=0), "variance + eps is 0"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, eps=-1), "eps=-1"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, scale=0), "scale holds 0.0: expected > 0"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, step=0), "step=0"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, step=np.inf), "step=inf"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, bits=9), "bits=9"),
        (lambda: Thresholds.from_batch_norm(1, 0, 0, 1, bits=2, workload=LAYER), "gives bipolar1; a spec says other"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, output="uint2"), "output='uint2': expected an Operand"),
        (lambda: Thresholds.from_batch_norm([1], 0, 0, 1, workload="w"), "workload='w': expected a ConvWorkload"),
        (lambda: Thresholds(*ones(2, 5), BIT), "levels is int32 [2, 5]: bipolar1 has 1 threshold for each"),
        (lambda: Thresholds(*ones(2, 5), UINT2), "uint2 has 3 thresholds for each output channel, int32 [3, K]"),
        (lambda: Thresholds(ones(3, 5)[0], np.zeros(4, np.bool_), UINT2), "flip is bool [4]"),
        (lambda: Thresholds(ones(3, 5)[0].astype(np.int64), ones(3, 5)[1], UINT2), "levels is int64"),
        (lambda: Thresholds(*ones(3, 5), "uint2"), "output='uint2'"),
        (lambda: Thresholds(np.array([[1], [0], [2]], np.int32), np.array([False]), UINT2), "channel 0 fall from one"),
        (lambda: Thresholds(np.array([[1], [2], [2]], np.int32), np.array([True]), UINT2), "channel 0 rise from one"),
        (lambda: Thresholds(*ones(1, 5), BIT).apply(np.zeros((2, 4), np.int32)), "acc is int32 [2, 4]"),
        (lambda: Thresholds(*ones(1, 5), BIT).apply(np.zeros((2, 5))), "acc is float64"),
        (lambda: Thresholds(*ones(1, 1), BIT).apply(np.array([NEVER], np.int32)), "below 2^31 - 1"),
        (lambda: Thresholds(*ones(1, 40), BIT).words(32), "k_padded=32"),
        (lambda: Thresholds(*ones(1, 40), BIT).flip_words(48), "expected a multiple of 32"),
        (lambda: Thresholds.random(LAYER, 0), "numpy.random.default_rng(0)"),
    ],
)
def test_wrong_thresholds_are_refused(act, words):
    with pytest.raises(InvalidInput) as error:
        act()
    assert words in str(error.value)


def operands(wl, seed=0):
    rng = np.random.default_rng(seed)
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    return x, random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng), Thresholds.random(wl, rng)


@pytest.mark.parametrize("types", ["w1a1", "w1a2", "w1a1:bipolar.bipolar.unsigned"])
@pytest.mark.parametrize("pool", [1, 2, 3])
def test_pooling_in_either_order(types, pool):
    wl = workload(f"n2h7w6c40k33r3s3p1:{types}")
    x, w, thresholds = operands(wl, pool)
    levels = np.array(sorted(wl.precision.output.values))
    sums, flip = reference(wl, x, w), thresholds.flip
    for order in ("before", "after"):
        found = layer_reference(wl, x, w, thresholds, pool=pool, pool_order=order)
        np.testing.assert_array_equal(found.sums, sums)
        ranks = pooled_ranks(thresholds.ranks(sums), thresholds, pool, order)
        np.testing.assert_array_equal(levels[ranks], found.values)
    if pool == 2 and wl.precision.output.bits == 1:  # of bits: OR, and AND where a channel is flipped
        parts = [thresholds.ranks(sums)[:, i:6:2, j:6:2] for i in (0, 1) for j in (0, 1)]
        either, both = np.bitwise_or.reduce(parts), np.bitwise_and.reduce(parts)
        before = layer_reference(wl, x, w, thresholds, pool=2)
        np.testing.assert_array_equal(before.values == levels[1], np.where(flip, both, either))
        after = layer_reference(wl, x, w, thresholds, pool=2, pool_order="after")
        np.testing.assert_array_equal(after.values == levels[1], either)
        assert (before.values != after.values).any()


def test_a_residual_is_added_before_the_thresholds():
    wl = workload("n3h4w4c64k48r3s3p1:w1a1")
    x, w, thresholds = operands(wl)
    shortcut = np.random.default_rng(1).integers(-99, 99, (3, 4, 4, 32), dtype=np.int32)
    found = layer_reference(wl, x, w, thresholds, residual=shortcut, pool=2)
    total = reference(wl, x, w)
    total[..., :32] += shortcut
    np.testing.assert_array_equal(found.sums, total)
    np.testing.assert_array_equal(found.values, thresholds.apply(pooled(total, 2)))
    to_residual(found.sums)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"thresholds": Thresholds(*ones(1, 5), BIT)}, "thresholds hold 5 channels"),
        ({"thresholds": Thresholds(*ones(3, 6), UINT2)}, "thresholds give uint2: the output of workload"),
        ({"residual": np.zeros((2, 4, 5, 7), np.int32)}, "expected at most the 6 output channels"),
        ({"residual": np.zeros((2, 4, 4, 6), np.int32)}, "residual is int32 [2, 4, 4, 6]"),
        ({"residual": np.zeros((2, 4, 5, 6), np.int16)}, "residual is int16"),
        ({"residual": np.full((2, 4, 5, 6), NEVER, np.int32)}, "sums with the residual go from"),
        ({"pool": 5}, "pool=5 of int32 [2, 4, 5, 6]"),
        ({"pool": 0}, "pool=0"),
        ({"pool_order": "behind"}, "pool_order='behind'"),
        ({"x": np.zeros((2, 4, 5, 40), np.int8)}, "x holds the value 0"),
    ],
)
def test_a_layer_of_parts_that_do_not_fit_is_refused(change, words):
    x, w, thresholds = operands(LAYER)
    with pytest.raises(InvalidInput) as error:
        layer_reference(LAYER, **{"x": x, "w": w, "thresholds": thresholds, **change})
    assert words in str(error.value)


@pytest.mark.parametrize("types", ["w1a1", "w1a2", "w2a2", "w1a1:minus"])
def test_a_chain_of_two_layers_moves_no_word(types):
    first = workload(f"n9h6w5c70k40r3s3p1:{types}")
    second = workload(f"n9h3w2c40k20r3s3p1u2:{types}")
    x, w1, t1 = operands(first)
    _, w2, t2 = operands(second, 1)
    middle = layer_reference(first, x, w1, t1, pool=2).values
    wanted = layer_reference(second, middle, w2, t2).values
    # The same by words and popcounts alone.
    planes = pack_planes(x, first.precision.activations)
    ranks = pooled_ranks(t1.ranks(sums_by_popcounts(first, planes.values(), w1)), t1, 2)
    read = pack_planes(np.array(sorted(first.precision.output.values), middle.dtype)[ranks], first.precision.output)
    words = read.words_for("nb8", second.precision.activations, (9, 3, 2, 40))
    assert words is read.words
    np.testing.assert_array_equal(t2.apply(sums_by_popcounts(second, read.values(), w2)), wanted)


def test_a_matrix_product_has_thresholds_too():
    product = gemm(5, 7, 130, "w1a2")
    x, w, thresholds = operands(product)
    values = layer_reference(product, x, w, thresholds).values.reshape(5, 7)
    sums = x.reshape(5, 130).astype(int) @ w.reshape(7, 130).astype(int).T
    np.testing.assert_array_equal(values, thresholds.apply(sums.astype(np.int32)))


def test_precision_of_a_layer_says_its_output():
    wl = ConvWorkload(1, 2, 2, 8, 3, 1, 1, precision=Precision(BIT, UINT2, BIT))
    assert Thresholds.from_batch_norm(1, 0, 0, 1, workload=wl).output == BIT
    assert Thresholds.from_batch_norm(1, 0, 0, 1, workload=wl).channels == 3


def reached(words, sums, bits, scale_log2):
    """What a kernel computes from words: one fma, whose bits are saturated to 0 .. 2^bits - 1."""
    patterns = (sums.astype(np.int64) * 2**scale_log2 + words[0]).astype(np.int32)
    factor, offset = (words[row].view(np.float32).astype(np.longdouble) for row in (1, 2))
    units = (patterns.view(np.float32) * factor + offset) / np.ldexp(np.longdouble(1), -149)
    return np.rint(np.clip(units, 0, (1 << bits) - 1)).astype(np.uint8)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
@pytest.mark.parametrize("limit", [40, 1152, 20_000])
def test_normalizations_are_a_line_in_floating_point(bits, limit):
    rng = np.random.default_rng(bits)
    k, spread = 60, limit / 4
    gamma = rng.normal(size=k)
    gamma[::9] = 0
    found = Thresholds.from_batch_norm(gamma, rng.normal(size=k), rng.normal(size=k) * spread / 4,
                                       spread**2 * rng.uniform(0.2, 2, k), bits=bits, step=2.0 ** (1 - bits),
                                       output=Operand(bits, "unsigned"))  # fmt: skip
    words = threshold_words(found, 64, 4, limit)
    assert words is not None
    assert (words.dtype, words.shape) == (np.int32, (3, 64))
    near = np.concatenate([found.levels.clip(-limit, limit) + d for d in (-1, 0, 1)]).clip(-limit, limit)
    sums = np.concatenate([np.arange(-limit, limit + 1, max(1, limit // 999))[:, None].repeat(64, 1),
                           np.pad(near, ((0, 0), (0, 4)))]).astype(np.int32)  # fmt: skip
    count = reached(words, sums, bits, 4)
    ranks = np.where(found.flip, ~count[:, :k] & ((1 << bits) - 1), count[:, :k])
    np.testing.assert_array_equal(ranks, found.ranks(sums[:, :k]))
    assert not count[:, k:].any()


def test_what_is_no_line_is_refused():
    def words(*levels, limit=40):
        found = Thresholds(np.array(levels, np.int32)[:, None], np.array([False]), UINT2)
        return threshold_words(found, 1, 8, limit)

    assert words(0, 1, 50, limit=1152) is None
    assert words(0, 1, 50) is None
    assert words(0, 30, 50, limit=1152) is None
    assert words(0, 30, 50) is not None  # no sum reaches the last
    wide = Thresholds.from_batch_norm([1.0], 0, 0, 1, bits=5)
    assert threshold_words(wide, 1, 8, 1152) is None
    wrong = {"k_padded=0": (wide, 0, 8, 9), "limit=0": (wide, 1, 8, 0), "scale_log2": (wide, 1, 32, 9),
             "expected a Thresholds": ("w", 1, 8, 9)}  # fmt: skip
    for message, arguments in wrong.items():
        with pytest.raises(InvalidInput, match=message):
            threshold_words(*arguments)

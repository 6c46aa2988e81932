"""Bit planes of every type, their layouts, and the ways between; residuals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from operand_types import operand_types

from subbyte.errors import InvalidInput
from subbyte.numerics import (
    BIT_LAYOUTS,
    PlaneWords,
    encode,
    from_residual,
    pack_planes,
    planes_of,
    random_values,
    to_nhwcnc,
    to_residual,
    values_of,
)
from subbyte.workload import Operand

SIZES = st.tuples(st.integers(1, 17), st.integers(1, 5), st.integers(1, 4),
                  st.sampled_from((1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 256)))  # fmt: skip
seeds = st.integers(0, 999)


def fits(layout, channels):
    return layout != "nb8r" or channels <= 64


@settings(max_examples=25)
@given(operand_types(), st.lists(st.integers(1, 5), min_size=1, max_size=3), seeds)
def test_planes_are_the_bits_of_codes(operand, shape, seed):
    values = random_values(operand, shape, np.random.default_rng(seed))
    planes = planes_of(values, operand)
    assert (planes.shape, planes.dtype) == ((operand.bits, *shape), np.uint8)
    codes = encode(values, operand)
    for place in np.ndindex(*shape):
        assert [int(bit) for bit in planes[(slice(None), *place)]] == [
            int(codes[place]) >> plane & 1 for plane in range(operand.bits)
        ]
    found = values_of(planes, operand)
    np.testing.assert_array_equal(found, values)
    assert found.dtype == values.dtype


@settings(max_examples=40)
@given(operand_types(("dense",)), SIZES, st.sampled_from(BIT_LAYOUTS), st.sampled_from(BIT_LAYOUTS), seeds)
def test_every_bit_is_where_the_formula_says(operand, shape, layout, target, seed):
    assume(fits(layout, shape[3]) and fits(target, shape[3]))
    rng = np.random.default_rng(seed)
    values = random_values(operand, shape, rng)
    packed = pack_planes(values, operand, layout)
    at = np.indices((operand.bits, *shape), sparse=True)
    index = packed.word_index(*at)
    found = packed.words.ravel()[index] >> (at[-1] % 32).astype(np.uint32) & 1
    np.testing.assert_array_equal(found, planes_of(values, operand))
    assert np.bitwise_count(packed.words).sum() == found.sum()  # what only fills up is 0
    np.testing.assert_array_equal(packed.check_filling().values(), values)
    moved = packed.relayout(target)
    np.testing.assert_array_equal(moved.words, pack_planes(values, operand, target).words)
    np.testing.assert_array_equal(moved.values(), values)


@settings(max_examples=25)
@given(operand_types(("dense",)), SIZES, st.sampled_from(BIT_LAYOUTS), seeds)
def test_bits_that_only_fill_up_are_ignored_or_refused(operand, shape, layout, seed):
    assume(fits(layout, shape[3]))
    rng = np.random.default_rng(seed)
    values = random_values(operand, shape, rng)
    packed = pack_planes(values, operand, layout)
    full = pack_planes(np.full(shape, operand.values[-1], operand.dtype), operand, layout)  # codes of all ones
    noise = rng.integers(0, 1 << 32, packed.words.shape, dtype=np.uint32) & ~full.words
    noisy = replace(packed, words=packed.words | noise)
    np.testing.assert_array_equal(noisy.values(), values)
    for target in BIT_LAYOUTS:
        if fits(target, shape[3]):
            noisy.relayout(target).check_filling()
    if noise.any():
        with pytest.raises(InvalidInput, match="bits set beyond the true sizes"):
            noisy.check_filling()


def test_layouts_of_networks_elsewhere():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 4, (11, 3, 4, 200), dtype=np.int8)
    two = Operand(2, "unsigned")
    nb8 = pack_planes(x, two)
    assert (nb8.layout, nb8.words.shape) == ("nb8", (2, 3, 4, 2, 2, 8, 4))
    np.testing.assert_array_equal(nb8.words.reshape(2, 3, 4, 4, 8, 4), to_nhwcnc(x, two, "planes"))  # the same bytes
    assert pack_planes(x, two, "fsb").words.shape == (2, 3, 4, 2, 2, 8, 4)
    a = pack_planes(rng.integers(0, 2, (20, 300)).astype(np.int8) * 2 - 1, Operand(1, "bipolar"), "fsb")
    m, k, blocks = np.arange(20)[:, None], np.arange(300), 3  # TCBNN's index of a matrix
    index = (m // 8 * blocks + k // 128) * 32 + m % 8 * 4 + k % 128 // 32
    np.testing.assert_array_equal(a.word_index(0, m, 0, 0, k), index)
    np.testing.assert_array_equal(a.values() > 0, a.words.ravel()[index] >> (k % 32).astype(np.uint32) & 1)
    w = pack_planes(rng.integers(0, 4, (5, 3, 2, 130), dtype=np.int8), two, "nhwc")
    assert w.words.shape == (2, 5, 3, 2, 8)
    narrow = pack_planes(x[..., :64], two, "nb8r")
    assert narrow.words.shape == (2, 2, 4, 2, 8, 2, 2)
    assert narrow.words.nbytes * 3 == pack_planes(x[..., :64], two).words.nbytes * 2  # of 3 rows one stands alone


BIT = Operand(1, "bipolar")
X = np.ones((9, 2, 2, 70), np.int8)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: pack_planes(X, BIT, "nb9"), "layout 'nb9' of bit planes: did you mean nb8"),
        (lambda: pack_planes(X, BIT, "nb8r"), "pairs of rows hold at most 64 channels, not 70"),
        (lambda: pack_planes(X[0], BIT), "expected [N,H,W,C], [K,R,S,C] or [M,K]"),
        (lambda: pack_planes(X * 0, BIT), "the value 0: expected bipolar1 values -1, 1"),
        (lambda: pack_planes(X.astype(np.int32), BIT), "values is int32"),
        (lambda: PlaneWords(pack_planes(X, BIT).words, "fsb", BIT, X.shape), "words of bipolar1 [9, 2, 2, 70] in lay"),
        (lambda: PlaneWords(np.zeros(3, np.int8), "nb8", BIT, X.shape), "expected a numpy array uint32"),
        (lambda: PlaneWords(np.zeros(3, np.uint32), "nb8", BIT, (1, 2, 3)), "shape (1, 2, 3)"),
        (lambda: PlaneWords(np.zeros(3, np.uint32), "nb8", "int4", X.shape), "operand='int4': expected an Operand"),
        (lambda: PlaneWords(np.zeros(3, np.uint32), "nb8", BIT, 7), "shape=7: expected a list"),
        (lambda: pack_planes(X, BIT).relayout(8), "layout=8: expected text"),
        (lambda: pack_planes(X, BIT).relayout("nb8r"), "at most 64 channels"),
        (lambda: pack_planes(X, BIT).words_for("fsb", BIT, X.shape), "in layout nb8, expected fsb: relayout('fsb')"),
        (lambda: pack_planes(X, BIT).words_for("nb8", BIT, (8, 2, 2, 70)), "expected bipolar1 [8, 2, 2, 70]"),
        (lambda: pack_planes(X, BIT).words_for("nb8", Operand(1, "unsigned"), X.shape), "expected uint1 [9, 2, 2"),
        (lambda: planes_of(X * 2, BIT), "values from 2 to 2: expected bipolar1 values -1 to 1"),
        (lambda: values_of(np.zeros((3, 4), np.uint8), BIT), "planes holds 3 of them: bipolar1 has 1"),
        (lambda: values_of(np.full((1, 4), 2, np.uint8), BIT), "planes holds the number 2"),
        (lambda: values_of(np.zeros((1, 4), np.int64), BIT), "planes is int64"),
        (lambda: to_residual(X), "sums is int8"),
        (lambda: to_residual(np.full((1, 1, 1, 1), 1 << 15, np.int32)), "32768: a residual has 16 bits"),
        (lambda: from_residual(np.zeros((1, 1, 1, 1, 8, 32), np.int16), 9, 3), "residual of n=9 images"),
        (lambda: from_residual(np.zeros((1, 1, 1, 1, 8, 16), np.int16), 8, 3), "words is int16"),
    ],
)
def test_what_cannot_be_packed_is_refused(act, words):
    with pytest.raises(InvalidInput) as error:
        act()
    assert words in str(error.value)


def test_words_are_for_their_reader():
    packed = pack_planes(X, BIT)
    assert packed.words_for("nb8", BIT, X.shape) is packed.words


@settings(max_examples=20)
@given(st.integers(1, 17), st.integers(1, 3), st.sampled_from((1, 15, 16, 40)), seeds)
def test_residuals_lie_as_threads_hold_them(n, p, k, seed):
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(1 << 15), 1 << 15, (n, p, 2, k), dtype=np.int32)
    words = to_residual(sums)
    assert (words.dtype, words.shape) == (np.int16, (-(-n // 8), p, 2, -(-k // 32), 8, 32))
    i, y, x, c = np.indices(sums.shape, sparse=True)
    group = ((i // 8 * p + y) * 2 + x) * -(-k // 32) + c // 32
    index = (group * 8 + i % 8) * 32 + c % 32
    np.testing.assert_array_equal(words.ravel()[index], sums)
    assert np.count_nonzero(words) == np.count_nonzero(sums)
    np.testing.assert_array_equal(from_residual(words, n, k), sums)

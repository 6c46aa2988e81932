"""Values, codes and packed words of every type of operand."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from operand_types import operand_types

from subbyte.errors import InvalidInput
from subbyte.numerics import (
    Storage,
    check_values,
    decode,
    encode,
    pack,
    pack_words,
    random_values,
    register_storage,
    storage_of,
    unpack,
    unpack_words,
    unregister_storage,
)
from subbyte.numerics.words import channel_unit
from subbyte.workload import Operand

seeds = st.integers(0, 999)


def bit(words, place):
    """Bit ``place`` of a row of words."""
    return int(words[place // 32]) >> (place % 32) & 1


@given(operand_types(), seeds)
def test_values_are_drawn_from_the_whole_type_and_come_back_from_codes(operand, seed):
    values = random_values(operand, (4, 3000), np.random.default_rng(seed))
    assert values.dtype == operand.dtype
    assert check_values(values, "x", operand) is values
    codes = encode(values, operand)
    assert codes.dtype == np.uint8
    assert codes.max() < 1 << operand.bits
    back = decode(codes, operand)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)
    np.testing.assert_array_equal(np.array(operand.values)[codes], values)
    assert set(values.ravel().tolist()) == set(operand.values) or operand.bits > 7 or operand.group


@given(operand_types(patterns=("1:2", "2:4", "3:8")), st.integers(1, 70), seeds)
def test_sparse_values_obey_their_pattern(operand, channels, seed):
    assume(operand.group)
    values = random_values(operand, (3, channels), np.random.default_rng(seed))
    kept, among = operand.group
    for start in range(0, channels, among):
        assert np.count_nonzero(values[:, start : start + among], axis=-1).max() <= kept
    assert check_values(values, "w", operand).shape == (3, channels)


def test_a_three_of_four_weight_is_refused_with_its_place():
    w = np.zeros((2, 3, 3, 10), np.int8)
    w[1, 2, 0, 4:7] = 1
    with pytest.raises(InvalidInput, match=r"w\[1, 2, 0, 4:8\] has 3 values other than 0: expected at most 2 of 4"):
        check_values(w, "w", Operand(4, sparsity="2:4"))
    w[1, 2, 0, 4] = 0
    check_values(w, "w", Operand(4, sparsity="2:4"))


@pytest.mark.parametrize(
    ("array", "operand", "words"),
    [
        (np.array([4], np.int8), Operand(2, "unsigned"), "from 4 to 4: expected uint2 values 0 to 3"),
        (np.array([-1], np.int8), Operand(2, "unsigned"), "expected uint2 values 0 to 3"),
        (np.array([0], np.int8), Operand(1, "bipolar"), "holds the value 0: expected bipolar1 values -1, 1"),
        (np.array([3, 2], np.int8), Operand(2, "bipolar"), "holds the value 2: expected bipolar2 values -3, -1, 1, 3"),
        (np.array([1], np.int8), Operand(8, "unsigned"), "expected a numpy array uint8"),
        (np.array([1], np.int16), Operand(4), "expected a numpy array int8"),
        ([1], Operand(4), "is a list"),
        (np.zeros((2, 2), np.int8), Operand(4), r"expected int8 \[2, 3\]"),
    ],
)
def test_what_is_no_value_is_refused(array, operand, words):
    with pytest.raises(InvalidInput, match=words):
        check_values(array, "x", operand, (2, 3) if getattr(array, "ndim", 1) == 2 else None)


@settings(deadline=None)
@given(operand_types(), st.sampled_from((None, "packed", "planes")), st.integers(1, 3), seeds)
def test_words_hold_the_bits_of_codes_in_order(operand, storage, runs, seed):
    if storage == "packed" and not operand.packed:
        with pytest.raises(InvalidInput, match="fill no word"):
            storage_of(operand, storage)
        return
    how, bits = storage_of(operand, storage), operand.bits
    assert how.name == (storage or ("packed" if 32 % bits == 0 else "planes"))
    values = random_values(operand, (2, runs * channel_unit(operand, storage)), np.random.default_rng(seed))
    words = pack(values, operand, storage)
    assert words.dtype == np.uint32
    assert words.shape == (2, values.shape[1] * bits // 32)
    np.testing.assert_array_equal(unpack(words, operand, storage), values)
    codes = encode(values, operand)
    for c in range(0, values.shape[1], 7):
        if how.name == "packed":
            found = sum(bit(words[1], bits * c + t) << t for t in range(bits))
        else:
            first = c // 128 * bits * 128
            found = sum(bit(words[1], first + 128 * t + c % 128) << t for t in range(bits))
        assert found == codes[1, c]


def test_int4_is_packed_as_ever():
    values = np.random.default_rng(0).integers(-8, 8, (3, 5, 64), np.int8)
    words = pack(values, Operand(4))
    np.testing.assert_array_equal(words, pack_words(values))
    np.testing.assert_array_equal(unpack_words(words), values)
    by_hand = sum((values[..., i::8].astype(np.int64) & 15) << 4 * i for i in range(8))
    np.testing.assert_array_equal(words, by_hand)
    drawn = random_values(Operand(4), (3, 5, 64), np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, values)  # recorded operands stay what they were


@pytest.mark.parametrize("bits", range(1, 9))
def test_the_usual_storage_has_the_block_of_the_type(bits):
    assert channel_unit(Operand(bits)) == Operand(bits).block
    assert channel_unit(Operand(bits), "planes") == 128


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: pack(np.zeros(9, np.int8), Operand(4)), "a multiple of 8"),
        (lambda: pack(np.zeros(32, np.int8), Operand(3)), "a multiple of 128"),
        (lambda: pack(np.int8(1), Operand(4)), "values is a int8"),
        (lambda: unpack(np.zeros(4, np.uint32), Operand(3)), "a multiple of 12"),
        (lambda: unpack(np.zeros(4, np.int32), Operand(4)), "expected a numpy array uint32"),
        (lambda: storage_of(Operand(4), "plane"), "did you mean planes"),
        (lambda: storage_of(Operand(3), "packed"), "3 bits fill no word; 'planes' takes any type"),
    ],
)
def test_wrong_shapes_are_refused(act, words):
    with pytest.raises(InvalidInput, match=words):
        act()


def test_an_encoding_and_a_storage_of_ones_own(powers):
    operand = Operand(4, powers)
    assert sorted(set(operand.values)) == [-64, -32, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32, 64]
    rng = np.random.default_rng(1)
    values = random_values(operand, (2, 32), rng)
    codes = encode(values, operand)
    assert 8 not in codes  # the other zero
    np.testing.assert_array_equal(unpack(pack(values, operand), operand), values)
    with pytest.raises(InvalidInput, match="holds the value 3: expected pow4 values"):
        check_values(np.array([3], np.int8), "w", operand)

    reverse = Storage(
        "reverse", lambda bits: 32 // bits, lambda bits: 1,
        lambda codes, bits: storage_of(operand).pack(codes, bits)[..., ::-1],
        lambda words, bits: storage_of(operand).unpack(words[..., ::-1], bits),
    )  # fmt: skip
    register_storage(reverse)
    try:
        words = pack(values, operand, "reverse")
        np.testing.assert_array_equal(words, pack(values, operand)[..., ::-1])
        np.testing.assert_array_equal(unpack(words, operand, "reverse"), values)
        with pytest.raises(InvalidInput, match="choose another name"):
            register_storage(Storage("packed", reverse.unit, reverse.words, reverse.pack, reverse.unpack))
    finally:
        unregister_storage("reverse")

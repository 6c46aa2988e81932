"""Packed words hold element i at bits 4i, and nothing but int4 values gets in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from subbyte.errors import InvalidInput
from subbyte.numerics import check_int4, pack_words, unpack_words

rows = st.integers(0, 3).flatmap(
    lambda words: hnp.arrays(np.int8, st.tuples(st.integers(0, 3), st.just(8 * words)), elements=st.integers(-8, 7))
)


@given(rows)
def test_unpacking_inverts_packing(values):
    words = pack_words(values)
    assert words.dtype == np.uint32
    assert words.shape == (values.shape[0], values.shape[1] // 8)
    np.testing.assert_array_equal(unpack_words(words), values)


@given(hnp.arrays(np.uint32, st.tuples(st.integers(1, 3), st.integers(1, 4)), elements=st.integers(0, 2**32 - 1)))
def test_packing_inverts_unpacking(words):
    np.testing.assert_array_equal(pack_words(unpack_words(words)), words)


@given(st.lists(st.integers(-8, 7), min_size=8, max_size=8))
def test_element_i_lies_at_bits_4i(values):
    word = int(pack_words(np.array(values, dtype=np.int8))[0])
    assert [(word >> 4 * i) & 15 for i in range(8)] == [value % 16 for value in values]


def test_strided_views_pack_like_copies():
    values = np.arange(-8, 8, dtype=np.int8).repeat(4).reshape(8, 8)
    np.testing.assert_array_equal(pack_words(values.T), pack_words(values.T.copy()))
    np.testing.assert_array_equal(unpack_words(pack_words(values)[::2]), values[::2])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(8, np.int32), ["x is int32 [8]", "int8"]),
        ([0] * 8, ["x is a list", "int8"]),
        (np.full((2, 8), 8, np.int8), ["x holds values from 8 to 8", "-8 to 7"]),
        (np.full(8, -9, np.int8), ["-9", "-8 to 7"]),
    ],
)
def test_refused_arrays_are_named(array, words):
    with pytest.raises(InvalidInput) as error:
        check_int4(array, "x")
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize("shape", [(1, 2), (2,), (2, 4, 1)])
def test_a_wrong_shape_is_refused_with_both_shapes(shape):
    with pytest.raises(InvalidInput, match=r"w is int8 \[.*expected int8 \[2, 4\]"):
        check_int4(np.zeros(shape, np.int8), "w", (2, 4))


def test_pack_and_unpack_refuse_what_is_no_whole_word():
    with pytest.raises(InvalidInput, match="multiple of 8"):
        pack_words(np.zeros((2, 12), np.int8))
    with pytest.raises(InvalidInput, match="multiple of 8"):
        pack_words(np.zeros((), np.int8))
    with pytest.raises(InvalidInput, match="uint32"):
        unpack_words(np.zeros(4, np.int32))
    with pytest.raises(InvalidInput, match="single uint32"):
        unpack_words(np.array(4, np.uint32))

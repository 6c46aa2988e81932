"""Layouts put every value where their definition says, and give it back."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subbyte import numerics as data
from subbyte.errors import InvalidInput

LAYOUTS = {
    "nhwc": (data.to_nhwc_words, data.from_nhwc_words),
    "hwnc": (data.to_hwnc_words, data.from_hwnc_words),
    "nhwcnc": (data.to_nhwcnc, data.from_nhwcnc),
}
shapes = st.tuples(st.integers(1, 17), st.integers(1, 4), st.integers(1, 4), st.integers(1, 70))


def random_x(shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 8, shape, dtype=np.int8)


def word_of(words, layout, n, h, w, c):
    """The word of one element, by the definition of the layout and nothing else."""
    return int(
        {
            "nhwc": lambda: words[n, h, w, c // 8],
            "hwnc": lambda: words[h, w, n, c // 8],
            "nhwcnc": lambda: words[n // 8, h, w, c // 32, n % 8, c % 32 // 8],
        }[layout]()
    )


@given(shapes, st.sampled_from(sorted(LAYOUTS)), st.integers(0, 9))
def test_round_trip_crops_what_was_padded(shape, layout, seed):
    x = random_x(shape, seed)
    to, back = LAYOUTS[layout]
    np.testing.assert_array_equal(back(to(x), shape[0], shape[3]), x)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_value_lies_where_the_layout_says_and_padding_is_zero(layout):
    n, h, w, c = 11, 2, 3, 40
    x = random_x((n, h, w, c))
    words = LAYOUTS[layout][0](x)
    assert words.dtype == np.uint32
    assert words.shape == {"nhwc": (16, 2, 3, 8), "hwnc": (2, 3, 16, 8), "nhwcnc": (2, 2, 3, 2, 8, 4)}[layout]
    for i, j, k, m in itertools.product(range(16), range(h), range(w), range(64)):
        expected = int(x[i, j, k, m]) if i < n and m < c else 0
        assert (word_of(words, layout, i, j, k, m) >> 4 * (m % 8)) & 15 == expected % 16


@given(shapes, st.sampled_from(sorted(LAYOUTS)), st.sampled_from(sorted(LAYOUTS)))
def test_relayout_agrees_with_packing_directly(shape, source, target):
    x = random_x(shape)
    got = data.relayout(LAYOUTS[source][0](x), source.upper(), target)
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, LAYOUTS[target][0](x))


def test_unknown_layouts_and_shapes_are_refused():
    words = data.to_nhwcnc(random_x((8, 1, 1, 32)))
    with pytest.raises(InvalidInput, match="did you mean nhwc"):
        data.relayout(words, "nhcw", "hwnc")
    with pytest.raises(InvalidInput, match=r"words is uint32 \[1, 1, 1, 1, 8, 4\]"):
        data.relayout(words, "nhwc", "hwnc")
    with pytest.raises(InvalidInput, match="multiple of 8 images"):
        data.from_nhwc_words(np.zeros((7, 1, 1, 4), np.uint32), 7, 32)
    with pytest.raises(InvalidInput, match="multiple of 8 images and of 4 words"):
        data.from_hwnc_words(np.zeros((1, 1, 8, 3), np.uint32), 8, 24)


@pytest.mark.parametrize(("n", "c"), [(9, 32), (8, 33), (0, 32), (8, 0)])
def test_sizes_that_do_not_belong_to_the_words_are_refused(n, c):
    with pytest.raises(InvalidInput, match="8 images of 32 channels"):
        data.from_nhwcnc(data.to_nhwcnc(random_x((8, 2, 2, 32))), n, c)


def test_activations_must_have_four_axes():
    with pytest.raises(InvalidInput, match=r"x is int8 \[2, 32\]: expected int8 \[any, any, any, any\]"):
        data.to_nhwcnc(random_x((2, 32)))

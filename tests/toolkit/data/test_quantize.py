"""Real numbers to int4 values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subbyte.errors import InvalidInput
from subbyte.numerics import quantize, scale_for


def test_ties_go_to_even_and_the_ends_are_clipped():
    got = quantize(np.array([-100, -4.25, -0.75, -0.25, 0.25, 0.75, 1.25, 99]), 0.5)
    assert got.dtype == np.int8
    assert got.tolist() == [-8, -8, -2, 0, 0, 2, 2, 7]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_scale_for_clips_nothing(values):
    scale = scale_for(values)
    if scale < 1e-300:
        return
    error = np.abs(quantize(values, scale) * scale - np.array(values))
    assert error.max() <= scale * (0.5 + 1e-9)


def test_scale_for_zeros_is_one():
    assert scale_for(np.zeros(3)) == 1.0


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_must_be_positive(scale):
    with pytest.raises(InvalidInput, match="scale"):
        quantize([1.0], scale)


@pytest.mark.parametrize(("values", "words"), [([], "empty"), ([float("nan")], "NaN"), (["a"], "not numeric")])
def test_arrays_must_be_finite_numbers(values, words):
    with pytest.raises(InvalidInput, match=words):
        scale_for(values)

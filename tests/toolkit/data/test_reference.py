"""The reference against seven plain loops, and its exactness where float32 ends."""

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from subbyte.errors import InvalidInput
from subbyte.numerics import accumulator_bound, reference
from subbyte.workload import ConvWorkload


def loops(wl, x, w):
    """The definition, in Python integers."""
    y = np.zeros((wl.n, wl.p, wl.q, wl.k), dtype=np.int32)
    for n, p, q, k in np.ndindex(y.shape):
        total = 0
        for r, s, c in np.ndindex(wl.r, wl.s, wl.c):
            i = p * wl.stride + r * wl.dilation - wl.pad
            j = q * wl.stride + s * wl.dilation - wl.pad
            if 0 <= i < wl.h and 0 <= j < wl.w:
                total += int(x[n, i, j, c]) * int(w[k, r, s, c])
        y[n, p, q, k] = total
    return y


def operands(wl, rng):
    x = rng.integers(-8, 8, (wl.n, wl.h, wl.w, wl.c), dtype=np.int8)
    return x, rng.integers(-8, 8, (wl.k, wl.r, wl.s, wl.c), dtype=np.int8)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_agrees_with_plain_loops(data):
    size = st.integers(1, 6)
    h, w, r, s, pad = (
        data.draw(part) for part in (size, size, st.integers(1, 4), st.integers(1, 4), st.integers(0, 4))
    )
    stride, dilation = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    assume((r - 1) * dilation < h + 2 * pad and (s - 1) * dilation < w + 2 * pad)
    wl = ConvWorkload(data.draw(st.integers(1, 2)), h, w, data.draw(st.integers(1, 3)), 2, r, s, pad, stride, dilation)
    x, weights = operands(wl, np.random.default_rng(data.draw(st.integers(0, 99))))
    np.testing.assert_array_equal(reference(wl, x, weights), loops(wl, x, weights))


@pytest.mark.parametrize(
    "wl",
    [
        ConvWorkload(1, 9, 8, 5, 3, 7, 7, 3),
        ConvWorkload(1, 9, 8, 3, 2, 7, 7, 3, 2),
        ConvWorkload(1, 13, 13, 2, 2, 7, 7, 6, 1, 2),
        ConvWorkload(2, 23, 12, 3, 2, 11, 11, 2, 4),
    ],
    ids=str,
)
def test_large_kernels(wl):
    x, w = operands(wl, np.random.default_rng(3))
    np.testing.assert_array_equal(reference(wl, x, w), loops(wl, x, w))


@pytest.mark.parametrize(("a", "b"), [(-8, -8), (7, 7), (-8, 7)])
def test_extreme_operands(a, b):
    wl = ConvWorkload(1, 5, 5, 33, 2, 3, 3, 1)
    x, w = np.full((1, 5, 5, 33), a, np.int8), np.full((2, 3, 3, 33), b, np.int8)
    y = reference(wl, x, w)
    np.testing.assert_array_equal(y, loops(wl, x, w))
    assert abs(int(y[0, 2, 2, 0])) == abs(a * b) * 9 * 33 <= accumulator_bound(wl)


@pytest.mark.parametrize("channels", [1 << 18, (1 << 18) + 1, 3 << 18])
def test_exact_around_the_end_of_float32(channels):
    wl = ConvWorkload(1, 1, 1, channels, 1, 1, 1)
    x, w = np.full((1, 1, 1, channels), -8, np.int8), np.full((1, 1, 1, channels), -8, np.int8)
    x[..., -1] = 7
    w[..., -1] = 1
    assert reference(wl, x, w).item() == 64 * (channels - 1) + 7


def test_rows_are_lowered_in_parts_without_a_seam():
    wl = ConvWorkload(1, 120, 120, 32, 1, 3, 3, 1, 2)
    x, w = operands(wl, np.random.default_rng(5))
    y = reference(wl, x, w)
    wide = ConvWorkload(1, 240, 240, 32, 1, 3, 3, 1)
    tall = np.zeros((1, 240, 240, 32), np.int8)
    tall[:, :120, :120] = x
    np.testing.assert_array_equal(reference(wide, tall, w)[:, :119:2, :119:2], y)


@pytest.mark.parametrize("spec", [(8, 56, 56, 64, 64, 3, 3, 1), (8, 7, 7, 512, 512, 3, 3, 1)])
def test_a_full_layer_takes_less_than_two_seconds(spec):
    wl = ConvWorkload(*spec)
    x, w = operands(wl, np.random.default_rng(6))
    start = time.process_time()
    y = reference(wl, x, w)
    assert time.process_time() - start < 4.0  # processor time of two cores
    k = 5
    window = x[3, 0:3, 2:5].astype(np.int64)
    assert y[3, 1, 3, k] == (window * w[k]).sum()


def test_wrong_operands_are_named():
    wl = ConvWorkload(1, 4, 4, 2, 3, 3, 3)
    x, w = operands(wl, np.random.default_rng(7))
    with pytest.raises(InvalidInput, match=r"x is int8 \[1, 4, 4, 1\]: expected int8 \[1, 4, 4, 2\]"):
        reference(wl, x[..., :1], w)
    with pytest.raises(InvalidInput, match=r"w is int32 .*expected a numpy array int8 \[3, 3, 3, 2\]"):
        reference(wl, x, w.astype(np.int32))
    huge = ConvWorkload(1, 1, 1, 1 << 25, 1, 1, 1)
    one = np.zeros((1, 1, 1, 1 << 25), np.int8)
    with pytest.raises(InvalidInput, match="overflows an int32 accumulator"):
        reference(huge, one, one)

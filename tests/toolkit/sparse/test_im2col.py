"""Bitmap im2col against a lowered matrix built pixel by pixel, sparse convolution against the dense reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import subbyte
from subbyte import sparse
from subbyte.errors import InvalidInput
from subbyte.sparse.rows import encode_rows, shifted


def lowered(wl: subbyte.ConvWorkload, x: np.ndarray) -> np.ndarray:
    """The lowered matrix [N*P*Q, R*S*C], one entry at a time."""
    out = np.zeros((wl.n, wl.p, wl.q, wl.r, wl.s, wl.c), x.dtype)
    for p, q, r, s in np.ndindex(wl.p, wl.q, wl.r, wl.s):
        h, w = p * wl.stride + r * wl.dilation - wl.pad, q * wl.stride + s * wl.dilation - wl.pad
        if 0 <= h < wl.h and 0 <= w < wl.w:
            out[:, p, q, r, s] = x[:, h, w]
    return out.reshape(wl.n * wl.p * wl.q, -1)


@settings(max_examples=80)
@given(
    width=st.integers(1, 130), stride=st.integers(1, 3), kernel=st.integers(1, 7), pad=st.integers(0, 40),
    density=st.sampled_from([0.0, 0.1, 0.5, 1.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_shifted_row_is_the_row_read_pixel_by_pixel(
    width: int, stride: int, kernel: int, pad: int, density: float, seed: int
) -> None:
    outputs = (width + 2 * pad - kernel) // stride + 1
    if width + 2 * pad < kernel:
        return
    rng = np.random.default_rng(seed)
    pixels = rng.integers(1, 128, (3, width)) * (rng.random((3, width)) < density)
    rows = encode_rows(pixels, stride)
    for s in range(kernel):
        found = shifted(rows, s - pad, outputs)
        at = np.arange(outputs) * stride + s - pad
        wanted = np.where((at >= 0) & (at < width), pixels[:, np.clip(at, 0, width - 1)], 0)
        bits = np.unpackbits(np.ascontiguousarray(found.words, "<u4").view(np.uint8), axis=-1, bitorder="little")
        assert np.array_equal(bits[:, :outputs] > 0, wanted != 0)
        assert not bits[:, outputs:].any()
        for row in range(3):
            run = rows.values[found.first[row] : found.first[row] + found.count[row]]
            assert np.array_equal(run, wanted[row][wanted[row] != 0])


@settings(max_examples=25)
@given(
    h=st.integers(1, 6), w=st.integers(1, 70), c=st.integers(1, 5), k=st.integers(1, 40),
    r=st.integers(1, 3), s=st.integers(1, 4), pad=st.integers(0, 3), stride=st.integers(1, 2),
    dilation=st.integers(1, 2), density=st.sampled_from([0.0, 0.3, 1.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_lowering_and_convolution_are_exact(
    h: int, w: int, c: int, k: int, r: int, s: int, pad: int, stride: int, dilation: int, density: float, seed: int
) -> None:
    if h + 2 * pad <= (r - 1) * dilation or w + 2 * pad <= (s - 1) * dilation:
        return
    wl = subbyte.ConvWorkload(2, h, w, c, k, r, s, pad, stride, dilation)
    rng = np.random.default_rng(seed)
    x = (rng.integers(-8, 8, (2, h, w, c)) * (rng.random((2, h, w, c)) < density)).astype(np.int8)
    x[:, : h // 2] = 0
    filters = (rng.integers(-8, 8, (k, r, s, c)) * (rng.random((k, r, s, c)) < 0.4)).astype(np.int8)
    matrix = lowered(wl, x)
    assert sparse.im2col(wl, x) == sparse.encode(matrix, "columns")
    assert sparse.im2col(wl, x, "rows") == sparse.encode(np.ascontiguousarray(matrix.T), "rows")
    wanted = subbyte.reference(wl, x, filters)
    for side in "ab":
        y, counts = sparse.convolve(wl, x, filters, side, "int4")
        assert np.array_equal(y, wanted)
        assert counts.merged_words == np.count_nonzero(matrix, axis=0) @ np.count_nonzero(
            filters.reshape(k, -1), axis=0
        )


def test_a_convolution_of_fp16_and_of_int8() -> None:
    wl = subbyte.workload("n1h5w40c3k8r3s3p1")
    rng = np.random.default_rng(0)
    x = (rng.integers(-4, 5, (1, 5, 40, 3)) / 4).astype(np.float16)
    w = (rng.integers(-4, 5, (8, 3, 3, 3)) / 4).astype(np.float16)
    wanted = lowered(wl, x).astype(np.float64) @ w.reshape(8, -1).T.astype(np.float64)
    assert np.array_equal(sparse.convolve(wl, x, w).y.reshape(-1, 8), wanted)  # quarters: exact in float32
    x8, w8 = rng.integers(-128, 128, (1, 5, 40, 3)), rng.integers(-128, 128, (8, 3, 3, 3))
    assert np.array_equal(sparse.convolve(wl, x8, w8).y.reshape(-1, 8), lowered(wl, x8) @ w8.reshape(8, -1).T)


def test_what_does_not_fit_is_refused() -> None:
    wl = subbyte.workload("n1h4w4c2k8r3s3p1")
    x, w = np.zeros((1, 4, 4, 2), np.int8), np.zeros((8, 3, 3, 2), np.int8)
    with pytest.raises(InvalidInput, match="needs \\[1, 4, 4, 2\\]"):
        sparse.convolve(wl, x[:, 1:], w)
    with pytest.raises(InvalidInput, match="needs \\[8, 3, 3, 2\\]"):
        sparse.convolve(wl, x, w[1:])
    with pytest.raises(InvalidInput, match="weights_side"):
        sparse.convolve(wl, x, w, "c")
    with pytest.raises(InvalidInput, match="ConvWorkload"):
        sparse.convolve("resnet50.stage2@8", x, w)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="columns"):
        sparse.im2col(wl, x, "left")
    big = subbyte.workload("n8h200w200c64k8r3s3p1")
    with pytest.raises(InvalidInput, match="fewer images"):
        sparse.im2col(big, np.zeros((8, 200, 200, 64), np.int8))

"""Pooling of integers, exactly: what its kernels are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, shown

MAX, AVERAGE = "max", "average"
POOLINGS = (MAX, AVERAGE)


def pooling_reference(
    x: NDArray[Any], kind: str, window: tuple[int, int], stride: int, padding: int, count_padding: bool = True
) -> NDArray[Any]:
    """The pooled tensor [N,P,Q,C] of integers ``x`` [N,H,W,C], of the same dtype.

    ``max``: the largest value of each window; pixels beyond the border are none. ``average``: the sum of a window over
    its number of pixels, rounded to the nearest, halves up (``floor(mean + 1/2)``, as requantization rounds). Pixels
    beyond the border are 0 and, with ``count_padding``, count. Raises InvalidInput for another kind or rank.
    """
    if kind not in POOLINGS:
        raise InvalidInput(f"pooling {shown(kind)}: allowed: {', '.join(POOLINGS)}")
    if x.ndim != 4:
        raise InvalidInput(f"x has shape {list(x.shape)}: expected four dimensions, [N,H,W,C]")
    border = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    least = int(np.iinfo(x.dtype).min)
    wide = np.pad(x.astype(np.int64), border, constant_values=least if kind == MAX else 0)
    inside = np.pad(np.ones((1, *x.shape[1:3], 1), np.int64), border)
    if kind == MAX:
        return _windows(wide, window, stride).max((-2, -1)).astype(x.dtype)
    sums = _windows(wide, window, stride).sum((-2, -1))
    count = window[0] * window[1] if count_padding else _windows(inside, window, stride).sum((-2, -1))
    rounded: NDArray[Any] = np.floor_divide(2 * sums + count, 2 * count).astype(x.dtype)
    return rounded


def _windows(x: NDArray[Any], window: tuple[int, int], stride: int) -> NDArray[Any]:
    return np.lib.stride_tricks.sliding_window_view(x, window, (1, 2))[:, ::stride, ::stride]

"""Exact pooling of integers: the reference for the pooling kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, shown

MAX, AVERAGE = "max", "average"
POOLINGS = (MAX, AVERAGE)


def hanging_over(size: int, window: int, stride: int, padding: int) -> int:
    """How many rows (or columns) the last window extends beyond the padding when the number of windows is rounded up
    (``ceil_mode``); 0 if that window would start in the padding at the end, and is dropped."""
    missing = -(size + 2 * padding - window) % stride
    return missing if missing < window - padding else 0


def pooling_reference(
    x: NDArray[Any], kind: str, window: tuple[int, int], stride: int, padding: int, count_padding: bool = True,
    ceil_mode: bool = False,
) -> NDArray[Any]:  # fmt: skip
    """The pooled tensor [N,P,Q,C] of integers ``x`` [N,H,W,C], in the same dtype.

    ``max``: the largest value of each window; pixels outside the image do not count. ``average``: the sum of a window
    divided by its number of pixels, rounded to nearest with halves up (``floor(mean + 1/2)``, as requantization
    rounds). Pixels outside the image are 0 and, with ``count_padding``, those of the padding are counted. With
    ``ceil_mode``, the last windows may extend beyond the padding; what lies beyond never counts. Raises InvalidInput
    for another kind or rank.
    """
    if kind not in POOLINGS:
        raise InvalidInput(f"pooling {shown(kind)}: allowed: {', '.join(POOLINGS)}")
    if x.ndim != 4:
        raise InvalidInput(f"x has shape {list(x.shape)}: expected four dimensions, [N,H,W,C]")
    over = [hanging_over(x.shape[1 + axis], window[axis], stride, padding) if ceil_mode else 0 for axis in range(2)]
    padded = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    border = ((0, 0), *((padding, padding + more) for more in over), (0, 0))
    least = int(np.iinfo(x.dtype).min)
    wide = np.pad(x.astype(np.int64), border, constant_values=least if kind == MAX else 0)
    if kind == MAX:
        return _windows(wide, window, stride).max((-2, -1)).astype(x.dtype)
    ones = np.ones((1, *x.shape[1:3], 1), np.int64)
    counted = np.pad(ones, padded, constant_values=int(count_padding))
    counted = np.pad(counted, ((0, 0), *((0, more) for more in over), (0, 0)))
    sums, count = (_windows(one, window, stride).sum((-2, -1)) for one in (wide, counted))
    rounded: NDArray[Any] = np.floor_divide(2 * sums + count, 2 * count).astype(x.dtype)
    return rounded


def _windows(x: NDArray[Any], window: tuple[int, int], stride: int) -> NDArray[Any]:
    return np.lib.stride_tricks.sliding_window_view(x, window, (1, 2))[:, ::stride, ::stride]

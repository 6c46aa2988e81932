"""What the right answer is: an exact int4 convolution on plain NHWC arrays, sharing no layout code with kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import Int8Array, Int32Array, check_int4
from subbyte.workload.conv import ConvWorkload

LARGEST_PRODUCT = 64
"""Largest magnitude of a product of two int4 values: (-8) * (-8)."""

_LOWERED_ELEMENTS = 1 << 22


@checked
def accumulator_bound(workload: ConvWorkload) -> int:
    """Largest magnitude an accumulator of ``workload`` can reach: 64*R*S*C."""
    return LARGEST_PRODUCT * workload.r * workload.s * workload.c


@checked
def reference(workload: ConvWorkload, x: Int8Array, w: Int8Array) -> Int32Array:
    """The exact convolution: int4 values x int8 [N,H,W,C], w int8 [K,R,S,C] -> y int32 [N,P,Q,K].

    The lowered matrix of a few output rows at a time is multiplied by the weights in float32, which is exact while
    every partial sum is an integer of magnitude up to 2^24, and in float64 beyond that. Raises InvalidInput for a
    wrong dtype, shape or value, and when an int32 accumulator could overflow.
    """
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload {workload!r}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    wl = workload
    check_int4(x, "x", (wl.n, wl.h, wl.w, wl.c))
    check_int4(w, "w", (wl.k, wl.r, wl.s, wl.c))
    bound = accumulator_bound(wl)
    if bound >= 1 << 31:
        raise InvalidInput(f"workload {wl}: 64*R*S*C = {bound} overflows an int32 accumulator; use fewer channels")
    real: type[Any] = np.float32 if bound <= 1 << 24 else np.float64
    depth = wl.r * wl.s * wl.c
    filters = w.reshape(wl.k, depth).T.astype(real)
    y = np.empty((wl.n, wl.p, wl.q, wl.k), dtype=np.int32)
    rows = max(1, min(wl.p, _LOWERED_ELEMENTS // (wl.q * depth)))
    for image in range(wl.n):
        padded = np.pad(x[image].astype(real), ((wl.pad, wl.pad), (wl.pad, wl.pad), (0, 0)))
        for first in range(0, wl.p, rows):
            last = min(first + rows, wl.p)
            lowered = _lower(wl, padded, first, last)
            y[image, first:last] = (lowered @ filters).reshape(last - first, wl.q, wl.k)
    return y


def _lower(wl: ConvWorkload, padded: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Lowered matrix [(last-first)*Q, R*S*C] of the output rows ``first`` to ``last - 1`` of one padded image."""
    lowered = np.empty((last - first, wl.q, wl.r, wl.s, wl.c), dtype=padded.dtype)
    height, width = (last - first - 1) * wl.stride + 1, (wl.q - 1) * wl.stride + 1
    for row in range(wl.r):
        top = first * wl.stride + row * wl.dilation
        for column in range(wl.s):
            left = column * wl.dilation
            lowered[:, :, row, column] = padded[top : top + height : wl.stride, left : left + width : wl.stride]
    return lowered.reshape((last - first) * wl.q, wl.r * wl.s * wl.c)

"""The reference: an exact convolution of values on plain NHWC arrays, which shares no layout code with kernels.

It multiplies what codes mean, never codes: encodings, zero points and bit planes are resolved into values before it
starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.values import check_values
from subbyte.workload.conv import ConvWorkload

_LOWERED_ELEMENTS = 1 << 22


@checked
def accumulator_bound(workload: ConvWorkload) -> int:
    """Largest magnitude that an accumulator of ``workload`` can reach: that of a product (64 for int4) times R*S*C."""
    return workload.precision.largest_product * workload.r * workload.s * workload.c


@checked
def reference(workload: ConvWorkload, x: NDArray[Any], w: NDArray[Any]) -> Int32Array:
    """The exact convolution: values x [N,H,W,C] and w [K,R,S,C] of the workload's types -> y int32 [N,P,Q,K].

    Arrays are in the types' own dtypes (int4: int8). Pixels outside the image are ``precision.pad_value``. The lowered
    matrix of a few output rows at a time is multiplied by the weights in float32, which is exact as long as every
    partial sum is an integer of magnitude up to 2^24, and in float64 beyond that. Raises InvalidInput for a wrong
    dtype, shape or value, and when an int32 accumulator could overflow.
    """
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload {workload!r}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    wl, types = workload, workload.precision
    check_values(x, "x", types.activations, (wl.n, wl.h, wl.w, wl.c))
    check_values(w, "w", types.weights, (wl.k, wl.r, wl.s, wl.c))
    bound = accumulator_bound(wl)
    if bound >= 1 << 31:
        raise InvalidInput(
            f"workload {wl}: {types.largest_product}*R*S*C = {bound} overflows an int32 accumulator; use fewer channels"
        )
    real: type[Any] = np.float32 if bound <= 1 << 24 else np.float64
    depth = wl.r * wl.s * wl.c
    filters = w.reshape(wl.k, depth).T.astype(real)
    y = np.empty((wl.n, wl.p, wl.q, wl.k), dtype=np.int32)
    rows = max(1, min(wl.p, _LOWERED_ELEMENTS // (wl.q * depth)))
    for image in range(wl.n):
        border = ((wl.pad, wl.pad), (wl.pad, wl.pad), (0, 0))
        padded = np.pad(x[image].astype(real), border, constant_values=types.pad_value)
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

"""Convolutions of values, without a bit in sight: what outputs on a GPU are compared with. Arrays are those of ``xp``:
CuPy, or numpy in tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from subbyte.numerics import Requantization, Thresholds
from subbyte.numerics.reference import accumulator_bound
from subbyte.workload import ConvWorkload

AT_ONCE = 1 << 27
"""Elements of a part of a convolution's products, at most."""


def convolved(layer: ConvWorkload, x: Any, filters: Any, xp: Any) -> Any:
    """Sums int32 [images,P,Q,K]: a product for each tap, in floating point that holds every sum exactly."""
    kind = np.float32 if accumulator_bound(layer) < 1 << 24 else np.float64
    weights = xp.asarray(filters).astype(kind)
    each = max(1, AT_ONCE // (layer.p * layer.q * max(layer.c, layer.k)))
    found = xp.empty((len(x), layer.p, layer.q, layer.k), np.int32)
    for first in range(0, len(x), each):
        found[first : first + each] = _part(layer, xp.asarray(x[first : first + each]).astype(kind), weights, xp)
    return found


def _part(layer: ConvWorkload, x: Any, filters: Any, xp: Any) -> Any:
    by, pad, dilation = layer.stride, layer.pad, layer.dilation
    border = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    padded = xp.pad(x, border, constant_values=layer.precision.pad_value) if pad else x
    height, width = (layer.p - 1) * by + 1, (layer.q - 1) * by + 1
    sums = xp.zeros((len(x) * layer.p * layer.q, layer.k), filters.dtype)
    for row in range(layer.r):
        for column in range(layer.s):
            down, right = row * dilation, column * dilation
            taken = padded[:, down : down + height : by, right : right + width : by].reshape(-1, layer.c)
            sums += taken @ filters[:, row, column].T
    return sums.reshape(len(x), layer.p, layer.q, layer.k).astype(np.int32)


def compared(sums: Any, requant: Requantization | Thresholds, xp: Any) -> Any:
    """What sums become: values int8 of the output type, by the number of thresholds that each has passed."""
    rule = Thresholds.of(requant)
    ranks, flip = xp.zeros(sums.shape, np.uint8), xp.asarray(rule.flip)
    for level in rule.levels:
        ranks += (sums >= xp.asarray(level)) != flip
    return xp.asarray(np.array(sorted(rule.output.values), np.int8))[ranks]


def pooled(values: Any, pool: int) -> Any:
    """The largest of each window of ``pool`` x ``pool`` pixels."""
    n, rows, columns, k = values.shape
    rows, columns = rows // pool, columns // pool
    cut = values[:, : rows * pool, : columns * pool]
    return cut.reshape(n, rows, pool, columns, pool, k).max(axis=(2, 4)) if pool > 1 else values


def host(array: Any) -> Any:
    """As a numpy array."""
    return array if isinstance(array, np.ndarray) else array.get()

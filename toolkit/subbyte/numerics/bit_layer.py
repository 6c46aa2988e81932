"""A layer of a binary or few-bit network as the reference computes it: on values, never on bits.

convolution -> sums + residual -> max-pooling and normalization, in either order -> values of the output type
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, one_of
from subbyte.errors import InvalidInput
from subbyte.numerics.arrays import Int32Array, check_array, describe
from subbyte.numerics.reference import reference
from subbyte.numerics.thresholds import Thresholds
from subbyte.numerics.values import Codes
from subbyte.workload.conv import ConvWorkload

BEFORE, AFTER = "before", "after"
POOL_ORDERS = (BEFORE, AFTER)
"""Whether pooling comes before or after the normalization."""


@dataclass(frozen=True, eq=False)
class LayerResult:
    """``values`` of the output type [N,P/pool,Q/pool,K] in its dtype, and ``sums`` int32 [N,P,Q,K], neither pooled nor
    normalized, which a later layer may add as its residual; None from a kernel that does not keep them."""

    values: NDArray[Any]
    sums: Int32Array | None


@checked
def layer_reference(
    workload: ConvWorkload,
    x: NDArray[Any],
    w: NDArray[Any],
    thresholds: Thresholds,
    residual: Int32Array | None = None,
    pool: int = 1,
    pool_order: str = BEFORE,
) -> LayerResult:
    """A whole layer on values x [N,H,W,C] and w [K,R,S,C] of the workload's types.

    ``residual`` int32 [N,P,Q,C'] is added to the first C' <= K channels (an identity shortcut). Each ``pool`` x
    ``pool`` window is reduced to its maximum; rows and columns that do not fill a window are dropped. ``pool_order`` is
    ``before`` or ``after`` the normalization. Raises InvalidInput for wrong dtypes and shapes, thresholds of another
    layer, and sums beyond 32 bits.
    """
    one_of(pool_order, "pool_order", POOL_ORDERS)
    check_thresholds(thresholds, workload)
    sums = reference(workload, x, w)
    if residual is not None:
        sums = _added(sums, residual)
    if pool_order == BEFORE:
        return LayerResult(thresholds.apply(pooled(sums, pool)), sums)
    return LayerResult(pooled(thresholds.apply(sums), pool), sums)


def check_thresholds(thresholds: Thresholds, workload: ConvWorkload) -> None:
    """Raise InvalidInput unless the thresholds have one row per output channel and produce the workload's output
    type."""
    if thresholds.channels != workload.k:
        raise InvalidInput(f"thresholds hold {thresholds.channels} channels: workload {workload} has K = {workload.k}")
    if thresholds.output != workload.precision.output:
        wanted = workload.precision.output.name
        raise InvalidInput(f"thresholds give {thresholds.output.name}: the output of workload {workload} is {wanted}")


@checked
def pooled(values: NDArray[Any], pool: int) -> NDArray[Any]:
    """The maximum of each ``pool`` x ``pool`` window, [N,P,Q,K] -> [N,P/pool,Q/pool,K]. Raises InvalidInput."""
    return _windows(values, pool).max(axis=(2, 4))


@checked
def pooled_ranks(ranks: Codes, thresholds: Thresholds, pool: int, pool_order: str = BEFORE) -> Codes:
    """Ranks uint8 [N,P,Q,K] of unpooled sums -> ranks of the pooled layer, computed as a kernel does: on few bits.

    ``after`` the normalization, the result is the largest rank in a window. ``before`` it, the result is the rank of
    the largest sum, which in a flipped channel is the smallest rank. With one bit these are OR and AND. Raises
    InvalidInput.
    """
    windows = _windows(check_array(ranks, "ranks", np.uint8, (None, None, None, thresholds.channels)), pool)
    largest = windows.max(axis=(2, 4))
    if one_of(pool_order, "pool_order", POOL_ORDERS) == AFTER:
        return largest
    return np.where(thresholds.flip, windows.min(axis=(2, 4)), largest)


def _windows(values: NDArray[Any], pool: int) -> NDArray[Any]:
    """[N,P,Q,K] as [N][P/pool][pool][Q/pool][pool][K]."""
    if values.ndim != 4 or not 1 <= pool <= min(values.shape[1:3]):
        raise InvalidInput(f"pool={pool} of {describe(values)}: expected 1 up to the rows and columns of [N,P,Q,K]")
    n, rows, columns, k = values.shape
    rows, columns = rows // pool, columns // pool
    return values[:, : rows * pool, : columns * pool].reshape(n, rows, pool, columns, pool, k)


def _added(sums: Int32Array, residual: Int32Array) -> Int32Array:
    given = check_array(residual, "residual", np.int32, (*sums.shape[:3], None))
    if not given.shape[3] <= sums.shape[3]:
        raise InvalidInput(f"residual is {describe(given)}: expected at most the {sums.shape[3]} output channels")
    total = sums.astype(np.int64)
    total[..., : given.shape[3]] += given
    if total.min() < -(1 << 31) or total.max() >= (1 << 31) - 1:
        raise InvalidInput(f"sums with the residual go from {total.min()} to {total.max()}: expected 32-bit sums")
    return total.astype(np.int32)

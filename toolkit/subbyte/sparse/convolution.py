"""Convolutions with both operands sparse: bitmap im2col, then outer products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.sparse.bitmap import checked_values, encode
from subbyte.sparse.product import spgemm
from subbyte.sparse.rows import im2col
from subbyte.sparse.trace import Counts
from subbyte.workload import ConvWorkload


class SparseConvolution(NamedTuple):
    """The output, and the instructions issued for it."""

    y: NDArray[Any]
    """[N, P, Q, K], int32 for int4 and int8, float32 for fp16."""
    counts: Counts


def convolve(
    workload: ConvWorkload, x: NDArray[Any], w: NDArray[Any], weights_side: str = "b", kind: str | None = None,
    trace: bool = False,
) -> SparseConvolution:  # fmt: skip
    """The convolution of x [N, H, W, C] with w [K, R, S, C]: bitmaps of image rows, bitmap im2col, outer products.

    ``weights_side``: ``b`` (32 filters are the columns of a warp tile, skipped in groups of 16) or ``a`` (its rows, in
    groups of 8). int4 and int8 give exact int32 sums, fp16 float32 sums as described in :func:`subbyte.sparse.spgemm`.
    Raises InvalidInput for wrong shapes, dtypes or values and for a layer that is too large.
    """
    if weights_side not in ("a", "b"):
        raise InvalidInput(f"weights_side {weights_side!r}: expected a (left operand) or b (right operand)")
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload {workload!r}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    wl = workload
    w, _ = checked_values(w, kind)
    if w.shape != (wl.k, wl.r, wl.s, wl.c):
        raise InvalidInput(f"w has shape {list(w.shape)}: {wl} needs {[wl.k, wl.r, wl.s, wl.c]}")
    filters = w.reshape(wl.k, -1)
    if weights_side == "b":
        c, counts = spgemm(im2col(wl, x, "columns", kind), encode(filters.T, "rows", kind), trace)
    else:
        c, counts = spgemm(encode(filters, "columns", kind), im2col(wl, x, "rows", kind), trace)
        c = np.ascontiguousarray(c.T)
    return SparseConvolution(c.reshape(wl.n, wl.p, wl.q, wl.k), counts)

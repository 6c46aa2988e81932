"""Dual-side sparsity as proposed by Wang et al. 2021 (arXiv 2105.09564): the exact function and the cycle model.

The unit skips zeros of both operands. No GPU has it: what stands here is what it computes, bit by bit, and how many of
its own cycles it would take, never microseconds. On the GPUs that exist unstructured sparsity mostly loses.
"""

from subbyte.sparse.bitmap import CondensedVector, TwoLevelBitmap, encode
from subbyte.sparse.convolution import SparseConvolution, convolve
from subbyte.sparse.product import SparseProduct, count, spgemm
from subbyte.sparse.rows import im2col
from subbyte.sparse.trace import REASONS, Counts, Step

__all__ = [
    "REASONS",
    "CondensedVector",
    "Counts",
    "SparseConvolution",
    "SparseProduct",
    "Step",
    "TwoLevelBitmap",
    "convolve",
    "count",
    "encode",
    "im2col",
    "spgemm",
]

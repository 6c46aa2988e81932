"""Columns of the lowered matrix from one image row: mask, shift, popcount."""

from subbyte_widgets.sparse_im2col.view import SparseIm2col

__all__ = ["SparseIm2col"]

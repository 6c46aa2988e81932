"""Kernels on one-bit products of warps (mma.sync b1): operands of 1 to 8 bits as bit planes."""

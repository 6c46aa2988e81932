"""Kernels on one-bit warp products (mma.sync b1): operands of 1 to 8 bits as bit planes."""

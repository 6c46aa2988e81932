"""Kernels on one-bit products of warpgroups: operands of 1 to 8 bits as bit planes."""

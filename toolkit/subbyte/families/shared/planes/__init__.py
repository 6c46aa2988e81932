"""Kernels on bit planes whose warps hold fragments in registers: all but the products themselves, which are those of
``bmma`` (Tensor Cores) or ``popc`` (integer units)."""

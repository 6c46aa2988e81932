"""Kernels on bit planes whose warps hold fragments in registers: everything except the products, which are those of
``bmma`` (Tensor Cores) or ``popc`` (integer units)."""

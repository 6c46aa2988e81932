"""Our kernels beside cuDNN and CUTLASS."""

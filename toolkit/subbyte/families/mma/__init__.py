"""Kernels on ``mma.sync`` (sm_75 and later): a warp multiplies fragments in its registers."""

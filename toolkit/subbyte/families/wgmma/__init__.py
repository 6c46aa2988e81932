"""Kernels on ``wgmma`` (sm_90a): a warpgroup multiplies out of shared memory."""

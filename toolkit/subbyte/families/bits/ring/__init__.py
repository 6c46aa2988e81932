"""Kernels on one-bit products whose depth comes in stages, round a ring in shared memory."""

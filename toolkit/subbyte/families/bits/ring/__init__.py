"""Kernels on one-bit products whose depth is processed in stages, with a ring of stage buffers in shared memory."""

"""Kernels for few input channels whose windows lie in shared memory as bytes."""

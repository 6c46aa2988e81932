"""Kernels for few input channels: windows of output pixels are stored in shared memory as bytes."""

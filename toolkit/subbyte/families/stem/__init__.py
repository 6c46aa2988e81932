"""Kernels for few input channels: windows of output pixels lie in shared memory as bytes."""

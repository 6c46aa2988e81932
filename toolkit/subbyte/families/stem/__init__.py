"""Kernels of layers with few input channels: the columns of a kernel row and their channels share K."""

"""Kernels whose columns are neighbouring pixels of one image."""

"""Kernels on 2:4 sparse weights."""

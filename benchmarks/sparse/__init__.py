"""Kernels on weights with zeros."""

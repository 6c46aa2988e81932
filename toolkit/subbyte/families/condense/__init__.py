"""Kernels that skip every position of K where a tile of rows or a tile of columns is 0, found at run time."""

"""The CUDA text of the stem family."""

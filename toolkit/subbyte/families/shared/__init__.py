"""What the kinds of kernels share: no family imports another."""

"""Tensors of other libraries: what a call costs its caller, and how long packing takes."""

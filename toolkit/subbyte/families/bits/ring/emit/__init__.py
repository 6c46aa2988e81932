"""The generated text of a kernel with a ring of stages."""

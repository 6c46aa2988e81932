"""Kernel whose weights have blocks of zeros: the pipeline of input rows, and a list of what is not zero."""

"""A kernel for block-sparse weights: the pipeline of input rows, and a list of the live blocks."""

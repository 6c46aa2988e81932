"""A kernel for 2:4 sparse weights: the pipeline of input rows, multiplied by ``wgmma.sp``."""

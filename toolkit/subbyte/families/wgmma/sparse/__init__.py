"""Kernel whose weights are 2:4 sparse: the pipeline of input rows, multiplied by ``wgmma.sp``."""

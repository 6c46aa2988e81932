"""Kernels that count bits on the integer units (popc): operands of 1 to 8 bits as bit planes, on every GPU."""

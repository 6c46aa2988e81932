"""TVM TIRx: named loops, values and registers, the frame of a kernel, and lowering to CUDA text."""

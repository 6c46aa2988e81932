"""TVM TIRx: named loops, values and registers, the frame of a kernel, and the way to CUDA text."""

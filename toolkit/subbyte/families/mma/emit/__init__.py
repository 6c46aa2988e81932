"""The mma family's kernel, written in TVM TIRx.

:mod:`~subbyte.families.mma.emit.conv` is the kernel; the other modules emit its parts: ``stage`` (global to shared
memory), ``multiply`` (shared memory to registers to Tensor Cores), ``epilogue`` (registers to packed words in global
memory). They are ordinary Python functions called while the script is parsed: Python makes the decisions, and TIRx is
what runs.
"""

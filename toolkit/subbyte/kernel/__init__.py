"""Kernels: planned, generated with TVM TIRx, compiled, run."""

from subbyte.kernel.conv2d import conv2d
from subbyte.kernel.kernel import Kernel, build

__all__ = ["Kernel", "build", "conv2d"]

"""Kernels: planned, generated with TVM TIRx, compiled, run."""

from subbyte.kernel.choose import compile  # noqa: A004 - the name users expect
from subbyte.kernel.conv2d import conv2d
from subbyte.kernel.kernel import Kernel, build

__all__ = ["Kernel", "build", "compile", "conv2d"]

"""Kernels: choose, plan, generate with TVM TIRx, compile, run and export."""

from subbyte.kernel.chain import Chain
from subbyte.kernel.choose import compile  # noqa: A004 - the name users expect
from subbyte.kernel.conv2d import conv2d
from subbyte.kernel.coverage import covered
from subbyte.kernel.kernel import Kernel, build
from subbyte.kernel.pool import Pooling, PoolKernel
from subbyte.kernel.saved import load_chain

__all__ = ["Chain", "Kernel", "PoolKernel", "Pooling", "build", "compile", "conv2d", "covered", "load_chain"]

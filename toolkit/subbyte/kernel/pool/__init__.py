"""Pooling kernels: packed words in and out, between the layers of a chain or alone.

They have a plan, a TIRx emitter and cached machine code like every kernel, but no family: there is one of each, with
nothing to tune.
"""

from subbyte.kernel.pool.kernel import Pooling, PoolKernel

__all__ = ["PoolKernel", "Pooling"]

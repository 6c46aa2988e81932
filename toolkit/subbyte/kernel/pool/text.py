"""A pooling kernel as a text, and back: the name by which stored graphs refer to it."""

from __future__ import annotations

from functools import lru_cache

from subbyte.errors import InvalidInput
from subbyte.kernel.pool.kernel import Pooling, PoolKernel

_SEPARATOR = " "
_COUNTS, _CEIL = 1, 2
"""Bits of the number that says whether padding counts, and whether the last windows extend beyond it."""


def pool_kernel_text(kernel: PoolKernel) -> str:
    """Everything that decides a pooling kernel's code: ``max 3 3 2 1 1 8 56 56 64 int4 nhwcnc sm_90a``."""
    one, wl = kernel.pooling, kernel.workload
    ways = _COUNTS * one.count_padding + _CEIL * one.ceil_mode
    numbers = (*one.size, one.stride, one.padding, ways, wl.n, wl.h, wl.w, wl.c)
    return _SEPARATOR.join((one.kind, *map(str, numbers), kernel.output, kernel.plan.form, kernel.arch))


@lru_cache(maxsize=512)
def pool_kernel_of(text: str) -> PoolKernel:
    """The kernel described by a text. Raises InvalidInput, Unsupported."""
    parts = text.split(_SEPARATOR)
    try:
        kind, *numbers, operand, form, arch = parts
        rows, columns, stride, padding, ways, n, height, width, c = map(int, numbers)
    except ValueError:
        raise InvalidInput(f"pooling kernel {text!r}: expected a text that pool_kernel_text gave") from None
    pooling = Pooling(kind, (rows, columns), stride, padding, bool(ways & _COUNTS), bool(ways & _CEIL))
    return pooling.kernel((n, height, width, c), arch, operand, form)

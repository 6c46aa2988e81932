"""Named loops, values and register arrays, so that the generated CUDA reads like the kernel it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder


@contextmanager
def loop(name: str, extent: int, kind: Any = T.unroll) -> Iterator[Any]:
    """A loop of ``extent`` iterations (``T.unroll``, ``T.serial`` or ``T.vectorized``); yields its variable."""
    with kind(extent) as variable:
        IRBuilder.name(name, variable)
        yield variable


def bind(name: str, value: Any) -> Any:
    """Compute ``value`` once and store it in a variable called ``name``."""
    variable = T.bind(value)
    IRBuilder.name(name, variable)
    return variable


def registers(name: str, count: int, dtype: str = "uint32") -> Any:
    """A thread's own array of 32-bit words; the compiler keeps it in registers because every index is constant."""
    buffer = T.alloc_local((count,), dtype)
    IRBuilder.name(name, buffer)
    return buffer


@contextmanager
def when(condition: Any) -> Iterator[None]:
    """``if (condition) { ... }``; without the test if Python already knows that the condition holds."""
    if condition is True:
        yield
    else:
        with T.If(condition), T.Then():
            yield


def every(conditions: Iterable[Any]) -> Any:
    """The conjunction of all conditions; True if there are none."""
    found: Any = True
    for condition in conditions:
        found = condition if found is True else T.And(found, condition)
    return found

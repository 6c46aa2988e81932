"""Pipeline stages that all threads of a block copy from global to shared memory, in groups if the architecture has
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from subbyte.device.arch import Arch
from subbyte.tirx.emit import loop, when
from subbyte.workload.conv import ceil_div


def commit(arch: Arch) -> None:
    """Close the group of copies issued since the last call."""
    if arch.async_copy:
        T.evaluate(T.ptx["cp.async.commit_group"]())


def wait(arch: Arch, in_flight: int) -> None:
    """Wait until at most ``in_flight`` groups are unfinished, then synchronize all threads of the block."""
    if arch.async_copy:
        T.evaluate(T.ptx["cp.async.wait_group"](in_flight))
    T.evaluate(T.cuda.cta_sync())


def each_copy(threads: int, thread: Any, copies: int, emit: Callable[[Any], None]) -> None:
    """Spread ``copies`` over the threads, thread by thread, so that neighbours copy neighbours."""
    with loop("turn", ceil_div(copies, threads)) as turn:
        index = turn * threads + thread
        with when(copies % threads == 0 or index < copies):
            emit(index)

"""Loops that are emitted only if they have more than one iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from subbyte.tirx.emit import loop


def loop_over(name: str, extent: int, emit: Callable[[Any], None]) -> None:
    """A serial loop; no loop if there is only one iteration."""
    if extent == 1:
        emit(0)
        return
    with loop(name, extent, T.serial) as variable:
        emit(variable)

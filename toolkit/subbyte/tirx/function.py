"""The frame of a kernel of any family: buffers as parameters, launch bounds, a body that is written from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as builders

from subbyte.errors import BuildFailed

Body = Callable[[Any, Any, Any, Any, Any], None]
"""Emits a kernel: plan, activations, output, parameters (None without requantization), weights."""
NamedBody = Callable[[Any, Mapping[str, Any]], None]
"""Emits a kernel: plan, and its buffers by the names of the launch's arguments."""


def kernel_function(plan: Any, min_blocks: int, emit_body: Body) -> Any:
    """The TIRx function of a plan. Its buffers are flat; the plan's index maps give them meaning.

    ``min_blocks``: resident blocks per multiprocessor for which the compiler limits registers.
    """

    def emit(plan: Any, buffers: Mapping[str, Any]) -> None:
        emit_body(plan, buffers["A"], buffers["Out"], buffers.get("Prm"), buffers["Wt"])

    return named_function(plan, min_blocks, emit)


def named_function(plan: Any, min_blocks: int, emit: NamedBody, name: str = "conv") -> Any:
    """The same for a body with arbitrary buffers, by name; the kernel itself is called ``name`` followed by
    ``_kernel``.

    TVM orders a kernel's parameters by their names, so the launch's arguments must be in that order. Raises BuildFailed
    if they are not.
    """
    names = [one.name for one in plan.launch.arguments]
    if names != sorted(names):
        raise BuildFailed(f"arguments {', '.join(names)}: the kernel takes them in the order of their names")
    with IRBuilder() as builder, builders.prim_func():
        builders.func_name(name)
        buffers = {
            one.name: builders.arg(one.name, builders.buffer(one.shape, one.dtype)) for one in plan.launch.arguments
        }
        T.device_entry()
        with T.attr({"tirx.launch_bounds_min_blocks_per_sm": min_blocks}):
            emit(plan, buffers)
    return builder.get()

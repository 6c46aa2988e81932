"""The frame of a kernel of either family: buffers as parameters, launch bounds, a body that is written from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.script.parser._core import parse, utils

Body = Callable[[Any, Any, Any, Any, Any], None]
"""Emits a kernel: plan, activations, output, parameters (None without requantization), weights."""


def _prim_func(function: Callable[..., None]) -> Any:
    """``T.prim_func(check_well_formed=False)`` for a function inside another.

    TVM's own searches every frame of the stack, and its source, for the names that annotations use: in a notebook or
    a test that takes as long as the rest of a small kernel."""
    names = {**utils.inspect_function_capture(function), **sys._getframe(1).f_locals}
    return parse(function, names, check_well_formed=False)


_prim_func.dispatch_token = T.prim_func.dispatch_token  # type: ignore[attr-defined]  # how TVM's parser knows it


def kernel_function(plan: Any, min_blocks: int, emit_body: Body) -> Any:
    """The TIRx function of a plan. Its buffers are flat; the plan's index maps give them meaning.

    ``min_blocks``: blocks per multiprocessor that the compiler keeps registers free for.
    """
    buffers = {argument.name: argument for argument in plan.launch.arguments}
    a, out, wt = (buffers[name] for name in ("A", "Out", "Wt"))
    bounds = {"tirx.launch_bounds_min_blocks_per_sm": min_blocks}
    if plan.output == "int32":

        @_prim_func
        def conv(A: T.Buffer(a.shape, a.dtype), Out: T.Buffer(out.shape, out.dtype), Wt: T.Buffer(wt.shape, wt.dtype)):
            T.device_entry()
            T.attr(bounds)
            emit_body(plan, A, Out, None, Wt)

    else:
        prm = buffers["Prm"]

        @_prim_func
        def conv(
            A: T.Buffer(a.shape, a.dtype),
            Out: T.Buffer(out.shape, out.dtype),
            Prm: T.Buffer(prm.shape, prm.dtype),
            Wt: T.Buffer(wt.shape, wt.dtype),
        ):
            T.device_entry()
            T.attr(bounds)
            emit_body(plan, A, Out, Prm, Wt)

    return conv

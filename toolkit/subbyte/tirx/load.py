"""TVM, loaded without PyTorch and without Relax.

``tvm_ffi`` imports PyTorch where it is installed, and that takes longer than TVM; Relax, TVM's language of graphs, is
a quarter of TVM's own time, and no kernel needs it. Both may be imported later. What is imported from here is TVM's. Raises
ImportError where TVM is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from subbyte.left_out import without

RELAX = "tvm.relax"


@contextmanager
def without_relax() -> Iterator[None]:
    """Inside, ``import tvm`` finds an empty Relax; afterwards the first who asks for it imports it."""
    if "tvm" in sys.modules:
        yield
        return
    empty = sys.modules[RELAX] = ModuleType(RELAX)
    try:
        yield
    finally:
        if sys.modules.get(RELAX) is empty:
            del sys.modules[RELAX]
        package = sys.modules.get("tvm")
        if package is not None and vars(package).pop("relax", None) is empty:
            package.__getattr__ = _later  # type: ignore[method-assign]


def _later(name: str) -> Any:
    """What TVM's package lacks."""
    if name == "relax":
        return import_module(RELAX)
    raise AttributeError(f"module 'tvm' has no attribute {name!r}")


with without("torch"), without_relax():
    import tvm
    import tvm.s_tir  # which lowering needs, and Relax would bring
    import tvm_ffi
    from tvm.backend.cuda import transforms as cuda_transforms
    from tvm.tirx import compilation_pipeline, transform

__all__ = ["compilation_pipeline", "cuda_transforms", "transform", "tvm", "tvm_ffi"]

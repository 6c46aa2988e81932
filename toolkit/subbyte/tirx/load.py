"""TVM, imported without PyTorch: ``tvm_ffi`` imports PyTorch if it is installed, and that takes longer than TVM itself.

The names imported from here are TVM's. Raises ImportError if TVM is not installed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Refused(MetaPathFinder):
    """Hides PyTorch from one thread; others may import it meanwhile."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise for PyTorch; leave everything else to the other finders."""
        if name == "torch" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError("PyTorch is not loaded together with TVM", name=name)


@contextmanager
def without_torch() -> Iterator[None]:
    """Inside, this thread's ``import torch`` fails as if it were not installed, unless it is already loaded."""
    refused = _Refused()
    sys.meta_path.insert(0, refused)
    try:
        yield
    finally:
        sys.meta_path.remove(refused)


with without_torch():
    import tvm
    import tvm_ffi
    from tvm.backend.cuda import transforms as cuda_transforms
    from tvm.tirx import compilation_pipeline, transform

__all__ = ["compilation_pipeline", "cuda_transforms", "transform", "tvm", "tvm_ffi", "without_torch"]

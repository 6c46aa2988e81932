"""TVM, imported without PyTorch: ``tvm_ffi`` imports PyTorch if it is installed, and that takes longer than TVM itself.

The names imported from here are TVM's. Raises ImportError if TVM is not installed.
"""

from __future__ import annotations

from subbyte.left_out import without

with without("torch"):
    import tvm
    import tvm_ffi
    from tvm.backend.cuda import transforms as cuda_transforms
    from tvm.tirx import compilation_pipeline, transform

__all__ = ["compilation_pipeline", "cuda_transforms", "transform", "tvm", "tvm_ffi"]

"""subbyte's convolutions in PyTorch: an operator, and a module with integer weights that are packed once.

Needs torch 2.11 or later (``pip install 'subbyte[torch]'``); nothing else in subbyte imports it. Everything here works
under ``torch.compile(fullgraph=True)``, ``torch.export`` and CUDA graph capture: operators have fake implementations,
enqueue on torch's current stream and never synchronize. On CPU tensors the same kernels run in the emulator, exactly
but slowly.

Tensors of values have torch's order, [N,C,H,W] and [K,C,R,S]; channels-last tensors are used without a copy. Packed
tensors are int32 words in a kernel's own order, and stay packed between layers.
"""

from subbyte.errors import MissingDependency

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise MissingDependency(
        f"subbyte.torch needs PyTorch, which cannot be imported ({_error}): pip install 'subbyte[torch]'"
    ) from None

from subbyte.torch.module import Conv2d
from subbyte.torch.operators import kernel_text
from subbyte.torch.pooling import Pool2d

__all__ = ["Conv2d", "Pool2d", "kernel_text"]

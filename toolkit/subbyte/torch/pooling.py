"""Pooling between convolutions as a module: packed words stay packed."""

from __future__ import annotations

from typing import Any

import torch

from subbyte.arguments import one_of, whole
from subbyte.errors import InvalidInput
from subbyte.kernel.execute import device_arch
from subbyte.kernel.pool import Pooling
from subbyte.kernel.pool.text import pool_kernel_text
from subbyte.torch.operators import operand_named

GIVES = ("packed", "int8", "uint8", "int16")
"""What a module can return: packed words, or values in the dtype of their type."""
_PACK, _POOL, _UNPACK = (getattr(torch.ops.subbyte, name).default for name in ("pack", "pool", "unpack"))


class Pool2d(torch.nn.Module):
    """Pooling of values of type ``operand`` (``int4``, ``uint4``, ``int8``, ``uint8``, or one with a zero point such as
    ``offset8-z37``), exactly as :class:`subbyte.Pooling` defines it, for one ``input_size`` (N, C, H, W).

    The input of a call is packed words (int32, the output of a layer with ``gives="packed"``) or values [N,C,H,W] in
    the type's dtype (int8; uint8 for uint8; int16 for most 8-bit types with a zero point). The output is packed words
    (``gives="packed"``) or values [N,C,P,Q], channels last (``gives`` is then the name of their dtype). ``layout``
    names the layout of the words, ``arch`` the architecture (default: that of the GPU here, else ``sm_90a``). Raises
    InvalidInput, Unsupported.
    """

    def __init__(
        self,
        pooling: Pooling,
        input_size: tuple[int, int, int, int],
        *,
        gives: str = "packed",
        layout: str = "nhwcnc",
        arch: str | None = None,
        operand: str = "int4",
    ) -> None:
        super().__init__()
        if not isinstance(pooling, Pooling):
            raise InvalidInput(f"pooling is a {type(pooling).__name__}: must be a subbyte.Pooling, such as "
                               'Pooling("max", 3, 2, 1)')  # fmt: skip
        n, c, height, width = _sizes(input_size)
        self.element = operand_named(operand).dtype
        self.gives, self.operand = one_of(gives, "gives", GIVES), operand
        if gives not in ("packed", self.element):
            raise InvalidInput(f"gives={gives!r}: {operand} values are given as packed or {self.element}")
        self.arch = device_arch("auto") if arch is None else arch
        made = pooling.kernel((n, height, width, c), self.arch, operand, layout)
        self.workload, self.layout, self.kernel = made.workload, layout, pool_kernel_text(made)
        self.shape = [n, made.workload.p, made.workload.q, c]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Packed words (int32) or values [N,C,H,W] in; the output is what ``gives`` says."""
        if x.dtype != torch.int32:
            wl = self.workload
            if str(x.dtype)[6:] != self.element or tuple(x.shape) != (wl.n, wl.c, wl.h, wl.w):
                raise InvalidInput(f"x is {x.dtype} {list(x.shape)}: this layer takes {self.element} "
                                   f"{[wl.n, wl.c, wl.h, wl.w]} [N,C,H,W], or packed words, int32")  # fmt: skip
            x = _PACK(x.permute(0, 2, 3, 1), None, self.layout, self.arch, self.operand)
        words: torch.Tensor = _POOL(x, self.kernel)
        if self.gives == "packed":
            return words
        values: torch.Tensor = _UNPACK(words, self.shape, self.layout, self.arch, self.element, self.operand)
        return values.permute(0, 3, 1, 2)

    def extra_repr(self) -> str:
        """The window and sizes."""
        return f"{self.kernel!r}, gives={self.gives!r}"


def _sizes(given: Any) -> list[int]:
    if not isinstance(given, (tuple, list)) or len(given) != 4:
        raise InvalidInput(f"input_size={given!r}: expected (N, C, H, W)")
    return [whole(one, f"input_size ({name})", 1) for one, name in zip(given, "NCHW", strict=True)]

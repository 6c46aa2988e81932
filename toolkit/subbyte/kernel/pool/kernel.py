"""Pooling windows, and pooling kernels for tensors of one size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, one_of, whole
from subbyte.device.arch import arch as known_arch
from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, Unsupported, shown
from subbyte.kernel import operands
from subbyte.kernel.build import compiled
from subbyte.kernel.cached_text import cached_text
from subbyte.kernel.execute import resolve_device, run_outputs
from subbyte.kernel.pool.plan import FORMS, POOLED, PoolPlan, pools
from subbyte.numerics.fusion import NOTHING, Fusion
from subbyte.numerics.pooling import POOLINGS, hanging_over
from subbyte.workload import ConvWorkload
from subbyte.workload.operand import Operand
from subbyte.workload.precision import INT4

if TYPE_CHECKING:
    from subbyte.kernel.device_layer import DeviceLayer


@dataclass(frozen=True)
class Pooling:
    """Exact pooling of int4, uint4, int8 or uint8 values, with or without a zero point: ``kind`` is ``max`` or
    ``average``.

    ``window``: window size in pixels, one number or (rows, columns); ``stride``: pixels from one window to the next
    (default: the size of a square window); ``padding``: pixels added on each side, at most half a window. Maxima ignore
    padding; averages take it as 0, which counts as a pixel unless ``count_padding`` is False. They are rounded to
    nearest, halves up: ``floor(sum / pixels + 1/2)``. Incomplete windows at the end are dropped, unless ``ceil_mode``
    lets the last ones extend beyond the padding, as in PyTorch: pixels beyond it never count, and no window starts in
    the padding at the end. ``Pooling.over(height, width)`` averages a whole map.

    A step of :class:`subbyte.Chain`; :meth:`kernel` builds one for a single tensor. Raises InvalidInput for windows,
    strides or paddings that are not possible.
    """

    kind: str
    window: int | tuple[int, int]
    stride: int | None = None
    padding: int = 0
    count_padding: bool = True
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        one_of(self.kind, "kind", POOLINGS)
        rows, columns = self.size
        if self.stride is None:
            if rows != columns:
                raise InvalidInput(f"window {shown(self.window)} is not square: give a stride")
            object.__setattr__(self, "stride", rows)
        object.__setattr__(self, "window", (rows, columns))
        whole(self.stride, "stride", 1)
        whole(self.padding, "padding", 0)
        if 2 * self.padding > min(rows, columns):
            raise InvalidInput(f"padding={self.padding}: at most half of the window {rows} x {columns}")
        for name in ("count_padding", "ceil_mode"):
            if type(getattr(self, name)) is not bool:
                raise InvalidInput(f"{name}={shown(getattr(self, name))}: expected True or False")

    @classmethod
    @checked
    def over(cls, height: int, width: int, kind: str = "average") -> Pooling:
        """Global pooling: one value for each channel of a map."""
        return cls(kind, (height, width), 1)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a window. Raises InvalidInput."""
        given = self.window if isinstance(self.window, (tuple, list)) else (self.window, self.window)
        if len(given) != 2:
            raise InvalidInput(f"window {shown(self.window)}: expected one number, or (rows, columns)")
        return whole(given[0], "window", 1), whole(given[1], "window", 1)

    @property
    def key(self) -> str:
        """A short name: ``max3x3u2p1``."""
        rows, columns = self.size
        padded = f"p{self.padding}" + ("" if self.count_padding else "only") if self.padding else ""
        return f"{self.kind}{rows}x{columns}u{self.stride}{padded}{'ceil' if self.ceil_mode else ''}"

    @checked
    def kernel(
        self, shape: tuple[int, int, int, int], arch: str = "sm_90a", operand: str | Operand = "int4",
        layout: str = "nhwcnc",
    ) -> PoolKernel:  # fmt: skip
        """The kernel for a tensor [N,H,W,C] of values of a type (``int4``, ``uint4``, ``int8``, ``uint8``, or one with
        a zero point: ``offset8-z37`` has codes 0..255 minus 37), with input and output words in ``layout``. Raises
        InvalidInput, Unsupported."""
        if len(shape) != 4:
            raise InvalidInput(f"shape {shown(shape)}: expected four sizes, [N,H,W,C]")
        one_of(layout, "layout", FORMS)
        types = operand if isinstance(operand, Operand) else Operand.named(operand)
        if not pools(types):
            raise Unsupported(f"values of type {operand}: pooling kernels take {POOLED}")
        n, height, width, c = shape
        rows, columns = (window - more for window, more in zip(self.size, self._over(height, width), strict=True))
        assert self.stride is not None
        of = replace(INT4, activations=types, output=types)
        sizes = ConvWorkload(n, height, width, c, c, rows, columns, self.padding, self.stride, precision=of)
        return _kernel(self, sizes, layout, known_arch(arch).name)

    def _over(self, height: Any, width: Any) -> tuple[int, int]:
        """Rows and columns by which a map's last windows extend beyond its padding."""
        if not self.ceil_mode:
            return 0, 0
        assert self.stride is not None
        rows, columns = (
            hanging_over(whole(size, "shape", 1), window, self.stride, self.padding)
            for size, window in zip((height, width), self.size, strict=True)
        )
        return rows, columns


@dataclass(frozen=True)
class PoolKernel:
    """A pooling kernel, ready to run alone (:meth:`run`, :meth:`on_device`) or as a step of a chain. ``workload`` holds
    sizes and types: it has as many filters as channels, and no weights."""

    pooling: Pooling
    plan: PoolPlan

    @property
    def workload(self) -> ConvWorkload:
        """Sizes [N,H,W,C] and [N,P,Q,C], window and types."""
        return self.plan.workload

    @property
    def arch(self) -> str:
        """The architecture of the machine code."""
        return self.plan.arch

    @property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        return self.plan.launch

    @property
    def key(self) -> str:
        """A short name: ``max3x3u2p1``."""
        return self.pooling.key

    @property
    def output(self) -> str:
        """The name of the output type."""
        return self.workload.precision.output.name

    @property
    def fusion(self) -> Fusion:
        """Nothing is fused into pooling."""
        return NOTHING

    @cached_property
    def cuda(self) -> str:
        """The generated CUDA C++ text. Raises MissingDependency if it is not cached and TVM is not installed."""

        def emitted() -> Any:
            from subbyte.kernel.pool.emit import pool_kernel

            return pool_kernel(self.plan)

        fields = self.key, self.workload.spec, self.plan.over, self.plan.form
        return cached_text(f"a pooling kernel {self.key}", "pool", fields, self.arch, self.launch, emitted)

    @cached_property
    def cubin(self) -> bytes:
        """Machine code for the architecture."""
        return compiled(self.cuda, self.arch)[0]

    def argument(self, name: str) -> Argument:
        """The launch's argument ``A`` or ``Out``."""
        return next(one for one in self.launch.arguments if one.name == name)

    def unpack(self, words: NDArray[np.generic]) -> NDArray[np.integer]:
        """Output words as values [N,P,Q,C]."""
        return operands.output_values(self.argument("Out"), self.workload, words)

    def run(self, x: NDArray[np.integer], device: str = "auto") -> NDArray[np.integer]:
        """Pool ``x`` [N,H,W,C], int8 values of the type on the host, each of which is checked. ``device`` as for
        :meth:`Kernel.run`. Raises InvalidInput, MissingDependency."""
        words = operands.activation_words(self.argument("A"), self.workload, np.asarray(x))
        place = resolve_device(device, self.arch)
        return self.unpack(run_outputs(self, {"A": words}, place)["Out"])

    def on_device(self, device: str = "cuda:0") -> DeviceLayer:
        """The kernel on a device, to be called with arrays on it, as :meth:`Kernel.on_device`."""
        from subbyte.kernel.device_layer import Link
        from subbyte.kernel.placed import placed

        return placed([self], [Link(self, {})], device)

    def __repr__(self) -> str:
        return f"PoolKernel({self.key}, {self.workload.sizes}, {self.output}, {self.arch})"


@lru_cache(maxsize=512)
def _kernel(pooling: Pooling, workload: ConvWorkload, form: str, arch: str) -> PoolKernel:
    over = pooling._over(workload.h, workload.w)
    return PoolKernel(pooling, PoolPlan(pooling.kind, workload, form, arch, pooling.count_padding, over))

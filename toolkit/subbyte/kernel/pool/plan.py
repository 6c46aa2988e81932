"""What a pooling kernel does: the window, the tensors, and its launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.kernel.convert.forms import BlockedForm, Shape
from subbyte.numerics.pooling import AVERAGE
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import ceil_div
from subbyte.workload.coverage import FOUR_BITS

THREADS = 128
ENTRY = "pool_kernel"
FORMS = ("nhwcnc", "nhwc")
LARGEST_WINDOW = 4096
"""Pixels of a window whose sum of values 0..15 fits 16 bits."""
_MOST = (1 << 31) - 1 - THREADS


@dataclass(frozen=True)
class PoolPlan:
    """``kind`` of pooling over the windows of ``workload``, which has as many filters as channels and says sizes,
    window, stride, padding and type. Words have one ``form`` on both sides. Raises InvalidInput, Unsupported."""

    kind: str
    workload: ConvWorkload
    form: str
    arch: str
    count_padding: bool = True

    def __post_init__(self) -> None:
        wl = self.workload
        if self.form not in FORMS:
            raise InvalidInput(f"layout {self.form!r}: pooling kernels have {' and '.join(FORMS)}")
        if wl.precision.activations.dense not in FOUR_BITS:
            raise Unsupported(f"values of type {wl.precision.activations}: pooling kernels take int4 and uint4")
        if wl.r * wl.s > LARGEST_WINDOW:
            raise Unsupported(f"a window of {wl.r} x {wl.s} pixels: at most {LARGEST_WINDOW}; pool in two steps")
        if 2 * wl.pad > min(wl.r, wl.s):
            raise InvalidInput(f"padding {wl.pad} of a {wl.r} x {wl.s} window: at most half of it, else a window may "
                               "hold no pixel")  # fmt: skip
        if max(self.reads.words, self.writes.words) > _MOST:
            raise Unsupported(f"{wl.sizes}: a pooling kernel has at most {_MOST} words; cut the batch")

    @property
    def signed(self) -> bool:
        """Whether values have a sign."""
        return self.workload.precision.activations.least < 0

    @cached_property
    def reads(self) -> BlockedForm:
        """Where the words of the input lie."""
        wl = self.workload
        return BlockedForm(Shape(wl.n, wl.h, wl.w, wl.c), self.form == "nhwcnc")

    @cached_property
    def writes(self) -> BlockedForm:
        """Where the words of the output lie."""
        wl = self.workload
        return BlockedForm(Shape(wl.n, wl.p, wl.q, wl.c), self.form == "nhwcnc")

    @property
    def averages(self) -> bool:
        """Whether windows are averaged."""
        return self.kind == AVERAGE

    @property
    def touches_border(self) -> bool:
        """Whether a window may reach beyond the border."""
        return self.workload.pad > 0

    @property
    def work(self) -> int:
        """Threads with something to do: one for each word of the output."""
        return self.writes.words

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        arguments = (
            Argument("A", "uint32", (self.reads.words,), "in", self.form),
            Argument("Out", "uint32", (self.writes.words,), "out", self.form),
        )
        return Launch(ENTRY, (ceil_div(self.work, THREADS), 1, 1), (THREADS, 1, 1), 0, arguments)

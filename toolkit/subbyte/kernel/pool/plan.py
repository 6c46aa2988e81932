"""The plan of a pooling kernel: window, tensors and launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.kernel.convert.forms import BlockedForm, Shape
from subbyte.numerics.pooling import AVERAGE
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import ceil_div
from subbyte.workload.coverage import WHOLE
from subbyte.workload.operand import SIGNED, WORD_BITS, Operand

THREADS = 128
ENTRY = "pool_kernel"
FORMS = ("nhwcnc", "nhwc")
POOLED = "int4, uint4, int8 and uint8, and these with a zero point, such as offset8-z37"
"""Types of values that kernels can pool, in words."""
LARGEST_WINDOW = 4096
"""Most pixels in a window: sums of values 0..15 then fit 16 bits, and twice the sums of values 0..255 fit 32."""
_MOST = (1 << 31) - 1 - THREADS


def pools(operand: Operand) -> bool:
    """Whether kernels can pool values of a type: codes of 4 or 8 bits that grow with the value."""
    return operand.bits in (4, 8) and operand.encoding in WHOLE


@dataclass(frozen=True)
class PoolPlan:
    """Everything about a pooling kernel that is known before its code is generated.

    ``kind`` is ``max`` or ``average``. ``workload`` gives sizes, stride, padding and type, with as many filters as
    channels; its kernel is the window. ``over``: rows and columns by which the last windows extend beyond the padding
    when the number of windows is rounded up. Input and output words have the same layout, ``form``. Raises
    InvalidInput, Unsupported."""

    kind: str
    workload: ConvWorkload
    form: str
    arch: str
    count_padding: bool = True
    over: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        wl = self.workload
        if self.form not in FORMS:
            raise InvalidInput(f"layout {self.form!r}: pooling kernels have {' and '.join(FORMS)}")
        if not pools(wl.precision.activations):
            raise Unsupported(f"values of type {wl.precision.activations}: pooling kernels take {POOLED}")
        rows, columns = self.window
        if rows * columns > LARGEST_WINDOW:
            raise Unsupported(f"a window of {rows} x {columns} pixels: at most {LARGEST_WINDOW}; pool in two steps")
        if 2 * wl.pad > min(self.window):
            raise InvalidInput(f"padding {wl.pad} of a {rows} x {columns} window: at most half of it, else a window "
                               "may hold no pixel")  # fmt: skip
        if max(self.reads.words, self.writes.words) > _MOST:
            raise Unsupported(f"{wl.sizes}: a pooling kernel has at most {_MOST} words; cut the batch")

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of a window."""
        return self.workload.r + self.over[0], self.workload.s + self.over[1]

    @property
    def bits(self) -> int:
        """Bits of a value: 4 or 8."""
        return self.workload.precision.activations.bits

    @property
    def word_values(self) -> int:
        """Values per word."""
        return WORD_BITS // self.bits

    @property
    def signed(self) -> bool:
        """Whether codes are signed."""
        return self.workload.precision.activations.encoding == SIGNED

    @property
    def zero(self) -> int:
        """The code of 0 as kernels treat codes, 0..15 or 0..255: signed codes are raised by half that range."""
        return (self.workload.precision.activations.zero_point or 0) + (1 << self.bits - 1) * self.signed

    @property
    def apart(self) -> bool:
        """Whether averages need a register for each value's sum, because a sum may not fit 16 bits."""
        rows, columns = self.window
        return rows * columns * ((1 << self.bits) - 1) >= 1 << 16

    @cached_property
    def reads(self) -> BlockedForm:
        """Index map of the input words."""
        wl = self.workload
        return BlockedForm(Shape(wl.n, wl.h, wl.w, wl.c), self.form == "nhwcnc", self.word_values)

    @cached_property
    def writes(self) -> BlockedForm:
        """Index map of the output words."""
        wl = self.workload
        return BlockedForm(Shape(wl.n, wl.p, wl.q, wl.c), self.form == "nhwcnc", self.word_values)

    @property
    def averages(self) -> bool:
        """Whether windows are averaged."""
        return self.kind == AVERAGE

    @property
    def touches_border(self) -> bool:
        """Whether a window may extend outside the image."""
        return self.workload.pad > 0 or any(self.over)

    @property
    def work(self) -> int:
        """Number of threads with work: one per output word."""
        return self.writes.words

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        arguments = (
            Argument("A", "uint32", (self.reads.words,), "in", self.form),
            Argument("Out", "uint32", (self.writes.words,), "out", self.form),
        )
        return Launch(ENTRY, (ceil_div(self.work, THREADS), 1, 1), (THREADS, 1, 1), 0, arguments)

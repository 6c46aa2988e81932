"""What to compute: the shape of one convolution and its operand types, never how to compute it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from subbyte.errors import InvalidInput, shown
from subbyte.html import table
from subbyte.workload.precision import INT4, Precision

BATCH_GROUP = 8
"""Images that share one packed activation block (the ``n`` of NHWCnc, and the rows of one MMA tile)."""

CHANNEL_BLOCK = 32
"""Channels in one packed activation block (the ``c`` of NHWCnc) of int4 values: four 32-bit words. For other types see
``Operand.block``."""

LARGEST_SIZE = 999_999_999
"""The largest value of any size in a workload: nine digits of a spec."""


def ceil_div(a: int, b: int) -> int:
    """Integer division of ``a`` by ``b``, rounded up."""
    return -(-a // b)


@dataclass(frozen=True)
class ConvWorkload:
    """A 2-D convolution: x [N,H,W,C] * w [K,R,S,C] -> y [N,P,Q,K], int4 unless ``precision`` says otherwise.

    Each of the four sides is padded with ``pad`` pixels (zeros, unless ``precision.padding`` says otherwise);
    ``stride`` and ``dilation`` act on both axes. Workloads with different operand types are not equal. Raises
    InvalidInput when a size is not a positive integer or the output would be empty.
    """

    kind: ClassVar[str] = "conv"
    """``conv``, or ``matmul`` for a matrix product."""

    n: int
    h: int
    w: int
    c: int
    k: int
    r: int
    s: int
    pad: int = 0
    stride: int = 1
    dilation: int = 1
    name: str = field(default="", compare=False)
    precision: Precision = INT4

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_SIZE:
                most = f" and at most {LARGEST_SIZE:,}" if isinstance(value, int) and value > least else ""
                raise InvalidInput(f"workload {name}={shown(value)}: must be an integer >= {least}{most}")
        if not isinstance(self.name, str):
            raise InvalidInput(f"workload name={shown(self.name)}: expected text")
        if not isinstance(self.precision, Precision):
            raise InvalidInput(f"workload precision={shown(self.precision)}: expected a Precision, see Precision.of")
        if self.p < 1 or self.q < 1:
            raise InvalidInput(
                f"workload {self.spec}: the {self.r}x{self.s} kernel with dilation {self.dilation} does not fit "
                f"the padded {self.h + 2 * self.pad}x{self.w + 2 * self.pad} input; raise the padding or the input size"
            )

    @cached_property
    def p(self) -> int:
        """Output height."""
        return (self.h + 2 * self.pad - (self.r - 1) * self.dilation - 1) // self.stride + 1

    @cached_property
    def q(self) -> int:
        """Output width."""
        return (self.w + 2 * self.pad - (self.s - 1) * self.dilation - 1) // self.stride + 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the actual sizes, before channels and images are padded to blocks."""
        return self.n * self.p * self.q * self.k * self.r * self.s * self.c

    @property
    def operations(self) -> int:
        """Two per multiply-accumulate."""
        return 2 * self.macs

    @cached_property
    def batch_groups(self) -> int:
        """Groups of 8 images, the last one padded with zeros."""
        return ceil_div(self.n, BATCH_GROUP)

    @cached_property
    def channel_blocks(self) -> int:
        """Blocks of input channels, 128 bits each (32 channels of int4), the last one padded with zeros."""
        return ceil_div(self.c, self.precision.activations.block)

    @cached_property
    def filter_blocks(self) -> int:
        """Blocks of output channels, 128 bits each (32 channels of int4), the last one padded with zeros."""
        return ceil_div(self.k, self.precision.output.block)

    @property
    def padded_filters(self) -> int:
        """Output channels of all blocks."""
        return self.filter_blocks * self.precision.output.block

    @cached_property
    def pixels_read(self) -> int:
        """Pixels of an image that at least one output reads: with a stride or dilation some may not be read."""
        down = _met(self.h, self.p, self.r, self.stride, self.dilation, self.pad)
        return down * _met(self.w, self.q, self.s, self.stride, self.dilation, self.pad)

    @property
    def bytes_moved(self) -> int:
        """Bytes of x, w and y, each counted once, in the bits of their types. Pixels of x that no output reads do not
        count."""
        x = self.precision.activations.stored_bits(self.n * self.pixels_read * self.c)
        w = self.precision.weights.stored_bits(self.k * self.r * self.s * self.c)
        y = self.precision.output.stored_bits(self.n * self.p * self.q * self.k)
        return (x + w + y) // 8

    @property
    def spec(self) -> str:
        """The spec that parses back to this workload: ``n8h56w56c64k64r3s3p1``, followed by the operand types, such as
        ``:w1a2``, when they are not int4."""
        types = self.precision.text
        return self.sizes + (f":{types}" if types else "")

    @property
    def sizes(self) -> str:
        """The spec without the operand types."""
        text = f"n{self.n}h{self.h}w{self.w}c{self.c}k{self.k}r{self.r}s{self.s}p{self.pad}"
        return (
            text + (f"u{self.stride}" if self.stride != 1 else "") + (f"d{self.dilation}" if self.dilation != 1 else "")
        )

    @property
    def label(self) -> str:
        """The name the workload was requested by, else its spec."""
        return self.name or self.spec

    def __str__(self) -> str:
        return self.label

    def _repr_html_(self) -> str:
        rows = {
            "spec": self.spec,
            **({} if self.precision == INT4 else {"operands (weights x activations)": str(self.precision)}),
            "input [N,H,W,C]": [self.n, self.h, self.w, self.c],
            "weights [K,R,S,C]": [self.k, self.r, self.s, self.c],
            "output [N,P,Q,K]": [self.n, self.p, self.q, self.k],
            "padding, stride, dilation": [self.pad, self.stride, self.dilation],
            "operations": f"{self.operations:,}",
            "bytes (each datum once)": f"{self.bytes_moved:,}",
        }
        return table(rows.items(), caption=self.label, upright=True)


def _met(size: int, outputs: int, taps: int, stride: int, dilation: int, pad: int) -> int:
    """How many of ``size`` rows some output reads through some tap, counted without visiting them."""
    if dilation == 1 and taps >= stride:  # one contiguous run
        return max(0, min(size, (outputs - 1) * stride + taps - pad))
    (few, gap), (many, step) = sorted(((outputs, stride), (taps, dilation)))
    runs: dict[int, list[tuple[int, int]]] = {}  # by the row's remainder modulo the step
    for one in range(few):
        place, rest = divmod(one * gap - pad, step)
        low, high = max(0, place), min(place + many, (size - 1 - rest) // step + 1)
        runs.setdefault(rest, []).append((low, high))
    found = 0
    for ends in runs.values():
        done = 0
        for low, high in sorted(ends):
            found += max(0, high - max(low, done))
            done = max(done, high)
    return found


_LEAST = {"n": 1, "h": 1, "w": 1, "c": 1, "k": 1, "r": 1, "s": 1, "pad": 0, "stride": 1, "dilation": 1}

"""What to compute: the shape of one convolution, without a word about how."""

from __future__ import annotations

from dataclasses import dataclass, field

from subbyte.errors import InvalidInput, shown
from subbyte.html import table

BATCH_GROUP = 8
"""Images that share one packed activation block (the ``n`` of NHWCnc, and the rows of one MMA tile)."""

CHANNEL_BLOCK = 32
"""Channels in one packed activation block (the ``c`` of NHWCnc): 32 int4 values, four 32-bit words."""

LARGEST_SIZE = 999_999_999
"""Of any size of a workload: what nine digits of a spec hold."""


def ceil_div(a: int, b: int) -> int:
    """Integer division of ``a`` by ``b``, rounded up."""
    return -(-a // b)


@dataclass(frozen=True)
class ConvWorkload:
    """A 2-D convolution: x int4 [N,H,W,C] * w int4 [K,R,S,C] -> y [N,P,Q,K].

    ``pad`` zeros are added on each of the four sides; ``stride`` and ``dilation`` act on both axes.
    Raises InvalidInput when a size is not a positive integer or the output would be empty.
    """

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

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_SIZE:
                most = f" and at most {LARGEST_SIZE:,}" if isinstance(value, int) and value > least else ""
                raise InvalidInput(f"workload {name}={shown(value)}: must be an integer >= {least}{most}")
        if not isinstance(self.name, str):
            raise InvalidInput(f"workload name={shown(self.name)}: expected text")
        if self.p < 1 or self.q < 1:
            raise InvalidInput(
                f"workload {self.spec}: the {self.r}x{self.s} kernel with dilation {self.dilation} does not fit "
                f"the padded {self.h + 2 * self.pad}x{self.w + 2 * self.pad} input; raise the padding or the input size"
            )

    @property
    def p(self) -> int:
        """Output height."""
        return (self.h + 2 * self.pad - (self.r - 1) * self.dilation - 1) // self.stride + 1

    @property
    def q(self) -> int:
        """Output width."""
        return (self.w + 2 * self.pad - (self.s - 1) * self.dilation - 1) // self.stride + 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the true (unpadded) sizes."""
        return self.n * self.p * self.q * self.k * self.r * self.s * self.c

    @property
    def operations(self) -> int:
        """Two per multiply-accumulate."""
        return 2 * self.macs

    @property
    def batch_groups(self) -> int:
        """Groups of 8 images, the last one padded with zeros."""
        return ceil_div(self.n, BATCH_GROUP)

    @property
    def channel_blocks(self) -> int:
        """Blocks of 32 input channels, the last one padded with zeros."""
        return ceil_div(self.c, CHANNEL_BLOCK)

    @property
    def filter_blocks(self) -> int:
        """Blocks of 32 output channels, the last one padded with zeros."""
        return ceil_div(self.k, CHANNEL_BLOCK)

    @property
    def bytes_moved(self) -> int:
        """Bytes of x, w and y, each once, at four bits an element."""
        x = self.n * self.h * self.w * self.c
        w = self.k * self.r * self.s * self.c
        y = self.n * self.p * self.q * self.k
        return (x + w + y) // 2

    @property
    def spec(self) -> str:
        """The free spec that parses back to this workload, such as ``n8h56w56c64k64r3s3p1``."""
        text = f"n{self.n}h{self.h}w{self.w}c{self.c}k{self.k}r{self.r}s{self.s}p{self.pad}"
        return (
            text + (f"u{self.stride}" if self.stride != 1 else "") + (f"d{self.dilation}" if self.dilation != 1 else "")
        )

    @property
    def label(self) -> str:
        """The name it was asked for by, else its spec."""
        return self.name or self.spec

    def __str__(self) -> str:
        return self.label

    def _repr_html_(self) -> str:
        rows = {
            "spec": self.spec,
            "input [N,H,W,C]": [self.n, self.h, self.w, self.c],
            "weights [K,R,S,C]": [self.k, self.r, self.s, self.c],
            "output [N,P,Q,K]": [self.n, self.p, self.q, self.k],
            "padding, stride, dilation": [self.pad, self.stride, self.dilation],
            "operations": f"{self.operations:,}",
            "bytes (each datum once)": f"{self.bytes_moved:,}",
        }
        return table(rows.items(), caption=self.label, upright=True)


_LEAST = {"n": 1, "h": 1, "w": 1, "c": 1, "k": 1, "r": 1, "s": 1, "pad": 0, "stride": 1, "dilation": 1}

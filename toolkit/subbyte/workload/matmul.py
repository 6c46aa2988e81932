"""Matrix products: a workload kind of its own that is computed as a convolution of single pixels.

A row of activations is the channels of one pixel, and a column of the result is a filter: the product [M,K] x [N,K] is
the 1x1 convolution of M pixels, sum for sum. Every convolution kernel can therefore compute it; families with kernels
made for products look at ``kind``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, shown
from subbyte.html import table
from subbyte.workload.conv import BATCH_GROUP, LARGEST_SIZE, ConvWorkload
from subbyte.workload.precision import INT4, Precision


@dataclass(frozen=True)
class MatmulWorkload(ConvWorkload):
    """Activations [M, K] times weights [N, K] -> [M, N]; made by :func:`gemm`.

    Its fields are those of the equivalent 1x1 convolution: the depth K is ``c``, the columns N are ``k``, and the M
    rows are pixels of 8 images (``n`` = 8, ``w`` = M / 8) or, if M is not a multiple of 8, M images of one pixel.
    Activations [M, K] become x [N,H,W,C] and results y [N,P,Q,K] by a ``reshape`` that moves no element. It never
    equals a plain convolution. Batched products with different weights are separate workloads. Raises InvalidInput for
    fields that do not describe a matrix product.
    """

    kind: ClassVar[str] = "matmul"

    def __post_init__(self) -> None:
        super().__post_init__()
        plain = (self.r, self.s, self.pad, self.stride, self.dilation) == (1, 1, 0, 1, 1)
        if not plain or (self.n, self.h, self.w) != _pixels(self.rows):
            raise InvalidInput(f"workload {super().sizes}: not a matrix product; make one with subbyte.gemm(m, n, k)")

    @property
    def rows(self) -> int:
        """M: rows of the activations and of the result."""
        return self.n * self.h * self.w

    @property
    def columns(self) -> int:
        """N: columns of the result, rows of the weights as they are stored."""
        return self.k

    @property
    def depth(self) -> int:
        """K: the number of products summed into each result."""
        return self.c

    @property
    def sizes(self) -> str:
        """The spec without the operand types: ``gemm64x1024x1024``, M x N x K."""
        return f"gemm{self.rows}x{self.columns}x{self.depth}"

    @property
    def convolution(self) -> ConvWorkload:
        """The equivalent plain 1x1 convolution, with the activations [M, K] as x [N,H,W,C]."""
        return ConvWorkload(self.n, self.h, self.w, self.c, self.k, 1, 1, name=self.name, precision=self.precision)

    def _repr_html_(self) -> str:
        rows = {
            "spec": self.spec,
            "operands (weights x activations)": str(self.precision),
            "activations [M,K]": [self.rows, self.depth],
            "weights [N,K]": [self.columns, self.depth],
            "result [M,N]": [self.rows, self.columns],
            "operations": f"{self.operations:,}",
            "bytes (each datum once)": f"{self.bytes_moved:,}",
        }
        return table(rows.items(), caption=self.label, upright=True)


def _pixels(rows: int) -> tuple[int, int, int]:
    """Images, height and width of the pixels that stand for the rows. Full groups of 8 images waste nothing, and with
    all pixels in one image row a block can take many of them."""
    return (BATCH_GROUP, 1, rows // BATCH_GROUP) if rows % BATCH_GROUP == 0 else (rows, 1, 1)


@checked
def gemm(m: int, n: int, k: int, precision: str | Precision = INT4, name: str = "") -> MatmulWorkload:
    """The matrix product of activations [m, k] and weights [n, k]: ``gemm(64, 1024, 1024, "w1a2")``.

    Raises InvalidInput for sizes that are not positive integers and for unknown types.
    """
    for letter, size in (("m", m), ("n", n), ("k", k)):
        if not 1 <= size <= LARGEST_SIZE:
            raise InvalidInput(f"matrix product {letter}={shown(size)}: must be an integer from 1 to {LARGEST_SIZE:,}")
    images, height, width = _pixels(m)
    return MatmulWorkload(images, height, width, k, n, 1, 1, name=name, precision=Precision.of(precision))

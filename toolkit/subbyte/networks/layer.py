"""One layer of a network: a convolution, and what happens to its sums.

The first layer reads pixels, 8-bit integers minus 128; every other one reads the few bits of the previous layer. A
fully connected layer is a convolution whose kernel is as large as its input: bits stay where the previous layer put
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import one_of, whole
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.bit_layer import AFTER, POOL_ORDERS
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import SIGNED, Operand
from subbyte.workload.precision import Precision

Images = NDArray[np.uint8]
"""[N,H,W,C], 0 to 255."""
PIXEL = Operand(8, SIGNED)
"""The type of a pixel as a layer multiplies it: its 8 bits minus 128."""
PIXEL_ZERO = 128
"""The pixel whose value is 0, which also pads the first layer."""


@dataclass(frozen=True)
class NetworkLayer:
    """A layer: ``workload`` with its precision; then ``residual``, the name of an earlier layer whose sums are added;
    then pooling of ``pool`` x ``pool`` outputs, ``before`` or ``after`` the thresholds (``pool_order``).

    If the earlier layer has larger maps, its residual is the maximum of each of their windows, and it is added to as
    many channels as that layer has (TCBNN's type A shortcut, arXiv 2006.16578). The last layer of a network has no
    thresholds: its sums become logits. Raises InvalidInput.
    """

    name: str
    workload: ConvWorkload
    pool: int = 1
    pool_order: str = AFTER
    residual: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.workload, ConvWorkload):
            raise InvalidInput(f"layer {self.name}: workload={shown(self.workload)}: expected a ConvWorkload")
        one_of(self.pool_order, "pool_order", POOL_ORDERS)
        whole(self.pool, "pool", 1, min(self.workload.p, self.workload.q))

    @property
    def output(self) -> tuple[int, int, int]:
        """Rows, columns and channels that the next layer reads."""
        w = self.workload
        return w.p // self.pool, w.q // self.pool, w.k

    @property
    def kind(self) -> str:
        """``fc`` if the kernel is as large as its input, else ``conv``."""
        w = self.workload
        return "fc" if (w.r, w.s, w.pad) == (w.h, w.w, 0) else "conv"

    @property
    def largest_sum(self) -> int:
        """Upper bound on the magnitude of the convolution's sums, for any operands."""
        w = self.workload
        return w.precision.largest_product * w.r * w.s * w.c

    def at(self, batch: int) -> NetworkLayer:
        """The same layer with another batch size."""
        return replace(self, workload=replace(self.workload, n=batch))


def pixel_precision(precision: Precision) -> Precision:
    """The precision of a network's first layer: its weights on pixels, values of its activations' type."""
    return Precision(precision.weights, PIXEL, precision.activations.dense)


def pixel_values(images: Images) -> NDArray[np.int8]:
    """Pixels uint8 [N,H,W,C] as values of :data:`PIXEL`."""
    return (images.astype(np.int16) - PIXEL_ZERO).astype(np.int8)

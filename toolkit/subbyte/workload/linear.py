"""Fully connected layers, as convolutions over the whole map."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import INT4, Precision


@checked
def linear(
    n: int, channels: int, outputs: int, height: int = 1, width: int = 1, precision: str | Precision = INT4,
    name: str = "",
) -> ConvWorkload:  # fmt: skip
    """A fully connected layer: a map [n, height, width, channels] to [n, 1, 1, outputs].

    It is a convolution whose kernel is as large as the map, so it reads the words that a preceding convolution or
    pooling wrote. Weights are [outputs, height, width, channels]; those of a framework that flattens [C,H,W] are
    ``w.reshape(outputs, channels, height, width).transpose(0, 2, 3, 1)``. Raises InvalidInput for sizes that are not
    positive integers, and for types that do not exist.
    """
    return ConvWorkload(
        n, height, width, channels, outputs, height, width, name=name, precision=Precision.of(precision)
    )

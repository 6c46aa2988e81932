"""Fully connected layers, as convolutions whose kernel covers the whole feature map."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import INT4, Precision


@checked
def linear(
    n: int, channels: int, outputs: int, height: int = 1, width: int = 1, precision: str | Precision = INT4,
    name: str = "",
) -> ConvWorkload:  # fmt: skip
    """A fully connected layer from a feature map [n, height, width, channels] to [n, 1, 1, outputs].

    It is a convolution with a kernel as large as the map, so it reads the words that a preceding convolution or pooling
    layer wrote. Weights are [outputs, height, width, channels]; for weights of a framework that flattens [C,H,W], pass
    ``w.reshape(outputs, channels, height, width).transpose(0, 2, 3, 1)``. Raises InvalidInput for sizes that are not
    positive integers and for unknown types.
    """
    return ConvWorkload(
        n, height, width, channels, outputs, height, width, name=name, precision=Precision.of(precision)
    )

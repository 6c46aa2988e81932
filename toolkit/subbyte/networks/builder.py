"""Builds a network layer by layer: each layer reads the output of the previous one."""

from __future__ import annotations

from subbyte.networks.layer import NetworkLayer, pixel_precision
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import Precision


class Builder:
    """Collects the layers of a network on images of ``image`` = rows, columns, colours."""

    def __init__(self, batch: int, image: tuple[int, int, int], precision: str, pool_order: str) -> None:
        self._batch, self._size, self._pool_order = batch, image, pool_order
        self._types = Precision.of(precision)
        self._made: list[NetworkLayer] = []

    @property
    def layers(self) -> tuple[NetworkLayer, ...]:
        """The layers so far."""
        return tuple(self._made)

    @property
    def last(self) -> str:
        """The name of the last layer."""
        return self._made[-1].name

    def conv(
        self, k: int, kernel: int, *, stride: int = 1, pad: int | None = None, pool: int = 1, residual: str = "",
        name: str = "",
    ) -> Builder:  # fmt: skip
        """A convolution with ``k`` channels and a square kernel, padded by half the kernel size unless ``pad`` is
        given."""
        inside = kernel // 2 if pad is None else pad
        return self._add("conv", name, k, (kernel, kernel), inside, stride, pool, residual)

    def fc(self, k: int) -> Builder:
        """A fully connected layer with ``k`` outputs."""
        return self._add("fc", "", k, self._size[:2], 0, 1, 1, "")

    def _add(
        self, kind: str, name: str, k: int, kernel: tuple[int, int], pad: int, stride: int, pool: int, residual: str
    ) -> Builder:
        h, w, c = self._size
        types = self._types if self._made else pixel_precision(self._types)
        workload = ConvWorkload(self._batch, h, w, c, k, *kernel, pad=pad, stride=stride, precision=types)
        count = 1 + sum(layer.name.startswith(kind) for layer in self._made)
        layer = NetworkLayer(name or f"{kind}{count}", workload, pool, self._pool_order, residual)
        self._made.append(layer)
        self._size = layer.output
        return self

"""A case whose exact answer is computed on the GPU: at batch 256 the host would need half a minute for one layer.

The sums are matrix products in float32, one for each tap, of integers whose sums stay below 2^24: exact in any order of
addition. Requantization is the same integer arithmetic as :meth:`subbyte.Requantization.apply`, in 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, MissingDependency
from subbyte.gpu.driver import detect
from subbyte.measure.case import Case
from subbyte.numerics import Thresholds
from subbyte.numerics.reference import accumulator_bound
from subbyte.workload import ConvWorkload

ELEMENTS_AT_ONCE = 1 << 27
"""Outputs of a part of the images that is computed at a time."""


def need_gpus(count: int) -> None:
    """Raises MissingDependency when this machine has fewer GPUs."""
    found = len(detect())
    if found < count:
        raise MissingDependency(f"{count} GPUs are needed here, {found} found")


class GpuCase(Case):
    """Like :class:`Case`; ``given`` are its other arguments. ``arrays``: the module of arrays, CuPy, or numpy in tests.

    Raises InvalidInput for a workload whose sums could reach 2^24.
    """

    def __init__(self, workload: ConvWorkload, seed: int = 0, arrays: Any = None, **given: Any) -> None:
        if accumulator_bound(workload) >= 1 << 24:
            raise InvalidInput(f"{workload}: sums of up to {accumulator_bound(workload)} are not exact in float32")
        if workload.precision.pad_value:
            raise InvalidInput(f"{workload}: pads with {workload.precision.pad_value}; sums here are of zeros there")
        super().__init__(workload, seed, **given)
        self._arrays = arrays

    @cached_property
    def accumulators(self) -> NDArray[np.int32]:
        """The exact convolution, int32 [N,P,Q,K]."""
        return np.concatenate([self._host(part) for part in self._parts()])

    @cached_property
    def expected(self) -> NDArray[np.int8]:
        """The requantized output, values of the output type (int4: int8) [N,P,Q,K]."""
        if isinstance(self.requant, Thresholds):
            return self.requant.apply(self.accumulators)
        return np.concatenate([self._host(self._requantized(part)) for part in self._parts()])

    def _parts(self) -> Iterator[Any]:
        """Sums int32 [images,P,Q,K] of a few images at a time, on the device."""
        wl, xp = self.workload, self._module()
        filters = xp.asarray(self.w).astype(np.float32)
        images = max(1, ELEMENTS_AT_ONCE // (wl.p * wl.q * wl.k))
        for first in range(0, wl.n, images):
            x = xp.asarray(self.x[first : first + images]).astype(np.float32)
            x = xp.pad(x, ((0, 0), (wl.pad, wl.pad), (wl.pad, wl.pad), (0, 0)))
            sums = xp.zeros((len(x) * wl.p * wl.q, wl.k), dtype=np.float32)
            for row in range(wl.r):
                for column in range(wl.s):
                    sums += self._tap(x, row, column).reshape(-1, wl.c) @ filters[:, row, column].T
            yield sums.astype(np.int32).reshape(len(x), wl.p, wl.q, wl.k)

    def _tap(self, x: Any, row: int, column: int) -> Any:
        """The inputs [images,P,Q,C] that one tap multiplies."""
        wl = self.workload
        top, left = row * wl.dilation, column * wl.dilation
        height, width = (wl.p - 1) * wl.stride + 1, (wl.q - 1) * wl.stride + 1
        return x[:, top : top + height : wl.stride, left : left + width : wl.stride]

    def _requantized(self, sums: Any) -> Any:
        xp, requant = self._module(), self.requant
        assert not isinstance(requant, Thresholds)
        shift = xp.asarray(requant.shift.astype(np.int64))
        product = (sums.astype(np.int64) + xp.asarray(requant.bias)) * xp.asarray(requant.multiplier.astype(np.int64))
        rounded = (product >> shift) + ((product >> (shift - 1)) & 1)
        return xp.clip(rounded, *requant.clip).astype(np.int8)

    def _host(self, array: Any) -> Any:
        return array if isinstance(array, np.ndarray) else array.get()

    def _module(self) -> Any:
        if self._arrays is None:
            import cupy  # type: ignore[import-not-found,unused-ignore]

            self._arrays = cupy
        return self._arrays

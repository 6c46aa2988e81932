"""One-bit products as XNOR networks first computed them, as a side: an exclusive or and a popcount of 32 bits at a
time, a thread for each output, int32 out. No tile is held in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bits import composed
from benchmarks.bits.launches import Launches
from subbyte.device.launch import Argument, Launch
from subbyte.gpu.device import CudaDevice
from subbyte.kernel import nvrtc

XNOR = "xnor, int32"


class XnorProduct:
    """Activations [m,k] times weights [n,k] of -1 and 1 -> int32 [m,n]; ``k`` is a multiple of 32."""

    def __init__(self, _name: str, m: int, n: int, k: int, device: CudaDevice) -> None:
        rng = np.random.default_rng(3)
        self._x, self._w = (2 * rng.integers(0, 2, (size, k), np.int8) - 1 for size in (m, n))
        text = composed.xnor_text(m, n, k)
        inputs = (Argument(f"In{place}", "uint32", (size * k // 32,), "in") for place, size in enumerate((m, n)))
        arguments = Argument("Out", "uint32", (m * n,), "out"), *inputs
        launch = Launch(composed.ENTRY, (composed.blocks(m * n), 1, 1), (composed.THREADS, 1, 1), 0, arguments)
        given = {"In0": bits(self._x).reshape(-1), "In1": bits(self._w).T.reshape(-1)}
        names = ("Out", "In0", "In1")
        cubin, _ = nvrtc.compile_cubin(text, "sm_90a")
        self._launches = Launches([(cubin, launch, names)], given, {"Out": 4 * m * n}, device)

    def launcher(self) -> Callable[[], None]:
        """A function that enqueues one product."""
        return self._launches.launcher()

    def wrong(self) -> int:
        """Elements that are not those of a product in float32, which holds all sums."""
        import cupy  # type: ignore[import-not-found,unused-ignore]

        x, w = (cupy.asarray(values.astype(np.float32)) for values in (self._x, self._w))
        found = cupy.asarray(self._launches.run(np.int32)).reshape(len(self._x), len(self._w))
        return int((found != x @ w.T).sum())

    def close(self) -> None:
        """Free everything."""
        self._launches.close()


def bits(values: Any) -> Any:
    """Words uint32 [rows, k / 32] of values -1 and 1 [rows, k], whose bits are 0 and 1; the first in the lowest bit."""
    return np.packbits(values > 0, axis=1, bitorder="little").view(np.uint32)

"""cuBLAS's products of bytes and of float16 as sides, on the stream that ours run on, in graphs like ours.

The library is called itself: CuPy, which brings it, refuses to call it while a graph is captured.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from subbyte.errors import MissingDependency, WrongResult
from subbyte.gpu.device import CudaDevice

BYTES, HALVES = "cuBLAS int8", "cuBLAS fp16"
_TRANSPOSED, _PLAIN = 1, 0
_TYPES = {BYTES: (3, 10, 72), HALVES: (2, 2, 68)}
"""cudaDataType of operands and of the result, cublasComputeType (cublas_api.h, library_types.h)."""
_DEFAULT = -1
_LIMIT = {BYTES: 8, HALVES: 1}
"""Values are below that: float32 holds the sums of bytes, and float16 those of -1 and 1, of up to 8,192 terms."""
_WORKSPACE = 64 << 20


class LibraryProduct:
    """Activations [m,k] times weights [n,k] -> [m,n], int32 of bytes and float16 of float16. Raises MissingDependency
    without the library, WrongResult for what it refuses."""

    def __init__(self, name: str, m: int, n: int, k: int, device: CudaDevice) -> None:
        import cupy  # type: ignore[import-not-found,unused-ignore]

        self.name, self._sizes, self._library = name, (m, n, k), _library(cupy)
        rng, limit = np.random.default_rng(3), _LIMIT[name]
        kind = np.int8 if name == BYTES else np.float16
        x, w = (
            rng.integers(-limit, limit, (size, k), np.int8) if name == BYTES
            else (2 * rng.integers(0, 2, (size, k), np.int8) - 1) for size in (m, n)
        )  # fmt: skip
        self._x, self._w = cupy.asarray(x.astype(kind)), cupy.asarray(w.astype(kind))
        self._y = cupy.zeros((m, n), np.int32 if name == BYTES else np.float16)
        self._workspace = cupy.empty(_WORKSPACE, np.uint8)
        cupy.cuda.runtime.deviceSynchronize()
        self._factors = [(ctypes.c_int32 if name == BYTES else ctypes.c_float)(value) for value in (1, 0)]
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(int(device.stream)))
        size, place = ctypes.c_size_t(_WORKSPACE), ctypes.c_void_p(self._workspace.data.ptr)
        self._call("cublasSetWorkspace_v2", self._handle, place, size)

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise WrongResult(f"{self.name}: {function} answers {status}")

    def launcher(self) -> Callable[[], None]:
        """A function that enqueues one product. Rows of cuBLAS are columns here: it multiplies w by x."""
        m, n, k = self._sizes
        operand, result, compute = _TYPES[self.name]
        one, zero = (ctypes.byref(factor) for factor in self._factors)
        w, x, y = (ctypes.c_void_p(array.data.ptr) for array in (self._w, self._x, self._y))

        def enqueue() -> None:
            self._call(
                "cublasGemmEx", self._handle, _TRANSPOSED, _PLAIN, n, m, k, one, w, operand, k, x, operand, k, zero, y,
                result, n, compute, _DEFAULT,
            )  # fmt: skip

        return enqueue

    def wrong(self) -> int:
        """Elements that are not those of a product in float32, which holds all sums."""
        wanted = self._x.astype(np.float32) @ self._w.astype(np.float32).T
        return int((self._y.astype(np.float32) != wanted).sum())

    def close(self) -> None:
        """Give the library's handle back."""
        if self._handle:
            self._call("cublasDestroy_v2", self._handle)
            self._handle = ctypes.c_void_p()


def _library(xp: Any) -> ctypes.CDLL:
    """The cuBLAS that CuPy has loaded, else one that the machine's loader finds. Raises MissingDependency."""
    one = xp.ones((16, 16), np.float32)
    xp.matmul(one, one)  # loads it
    for name in _names():
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise MissingDependency("no cuBLAS is loaded, and the loader finds none")


def _names() -> Iterator[str]:
    with suppress(OSError):
        yield from re.findall(r"\S+/libcublas\.so[.\d]*", Path("/proc/self/maps").read_text(encoding="utf-8"))
    yield from ("libcublas.so.13", "libcublas.so.12", "libcublas.so")

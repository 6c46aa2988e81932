"""A text of :mod:`subbyte.device.latency_texts` on a GPU: cycles, and the words that its threads write."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from subbyte.device.latency_texts import HEAD_WORDS, TILE_WORDS
from subbyte.gpu.device import CudaDevice

ENTRY = "timed_kernel"
IN_WORDS = HEAD_WORDS + TILE_WORDS
_WRAP = 1 << 32


@dataclass(frozen=True)
class Cycles:
    """Cycles of one loop iteration: the median of ``samples``, which are launches of a single block."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the samples."""
        return median(self.samples)


class TimedProgram:
    """A loaded program on random words. Raises CudaError for one that the device cannot load."""

    def __init__(self, cubin: bytes, device: CudaDevice, threads: int = 32, shared_bytes: int = 0) -> None:
        self.device, self.threads, self.shared_bytes = device, threads, shared_bytes
        self.data = np.random.default_rng(0).integers(0, _WRAP, TILE_WORDS, np.uint32)
        self._function = device.load(cubin, ENTRY)
        if shared_bytes:
            self._function.allow_shared(shared_bytes)
        self._in, self._out = device.alloc(4 * IN_WORDS), device.alloc(4 * (HEAD_WORDS + threads + TILE_WORDS))

    def run(self, turns: int, distance: int = 0) -> tuple[float, NDArray[np.uint32]]:
        """Cycles per iteration, and the contents of ``Out_ptr`` after the clocks. Raises CudaError, DeviceHang."""
        head = np.zeros(HEAD_WORDS, np.uint32)
        head[:2] = turns, distance
        self._in.upload(np.concatenate([head, self.data]))
        self._out.fill(0)
        self._function.launch((1, 1, 1), (self.threads, 1, 1), self.shared_bytes, [self._in.pointer, self._out.pointer])
        self.device.synchronize()
        words = self._out.download((self._out.nbytes // 4,), np.uint32)
        clocks = words[: 2 * max(1, self.threads // 128)].astype(np.int64).reshape(-1, 2)
        first = clocks[0, 0]  # the 32-bit counter wraps; all values of a block are close to each other
        since = (clocks - first + _WRAP // 2) % _WRAP - _WRAP // 2
        return float(since[:, 1].max() - since[:, 0].min()) / turns, words[HEAD_WORDS:]

    def cycles(self, turns: int, distance: int = 0, launches: int = 5) -> Cycles:
        """Cycles over several launches, without the first, which has cold caches."""
        return Cycles(tuple(self.run(turns, distance)[0] for _ in range(launches + 1))[1:])

    def close(self) -> None:
        """Free the program."""
        for buffer in (self._in, self._out):
            buffer.free()
        self._function.unload()

    def __enter__(self) -> TimedProgram:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

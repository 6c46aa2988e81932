"""Kernels of a side on a GPU: one launch, or several in a row on buffers that they hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Launch
from subbyte.errors import WrongResult
from subbyte.gpu.device import CudaDevice, DeviceBuffer
from subbyte.gpu.launched import POISON

Step = tuple[bytes, Launch, Sequence[str]]
"""A cubin, its launch, and for each of the launch's arguments the name of its buffer."""


class Launches:
    """Launches one behind the other. ``given`` are the words of inputs by name; of ``outputs`` (name -> bytes) the last
    one is what :meth:`run` gives. Raises CudaError for a kernel that the device cannot load."""

    def __init__(
        self, steps: Sequence[Step], given: Mapping[str, NDArray[Any]], outputs: Mapping[str, int], device: CudaDevice
    ) -> None:
        self.device, self.outputs = device, outputs
        self._buffers: dict[str, DeviceBuffer] = {}
        self._functions: list[tuple[Any, Launch, list[int]]] = []
        try:
            self._buffers = {name: device.upload(np.ascontiguousarray(words)) for name, words in given.items()}
            self._buffers |= {name: device.alloc(nbytes) for name, nbytes in outputs.items()}
            for cubin, launch, names in steps:
                function = device.load(cubin, launch.entry)
                self._functions.append((function, launch, [self._buffers[name].pointer for name in names]))
                if launch.shared_bytes:
                    function.allow_shared(launch.shared_bytes)
        except BaseException:
            self.close()
            raise

    def launcher(self) -> Callable[[], None]:
        """A function that enqueues all of them once."""

        def enqueue() -> None:
            for function, launch, pointers in self._functions:
                function.launch(launch.grid, launch.block, launch.shared_bytes, pointers)

        return enqueue

    def run(self, dtype: type[Any], timeout_s: float = 20.0) -> NDArray[Any]:
        """The words of the last output. Raises WrongResult where two runs on differently poisoned outputs differ,
        CudaError, DeviceHang."""
        name, found = list(self.outputs)[-1], []
        for byte in POISON:
            for output in self.outputs:
                self._buffers[output].fill(byte)
            self.launcher()()
            self.device.synchronize(timeout_s)
            found.append(self._buffers[name].download((self.outputs[name] // np.dtype(dtype).itemsize,), dtype))
        differing = int(np.count_nonzero(found[0] != found[1]))
        if differing:
            raise WrongResult(f"{differing} of {found[0].size} words differ between two runs")
        return found[0]

    def close(self) -> None:
        """Free everything. May be called twice."""
        for function, _, _ in self._functions:
            function.unload()
        for buffer in self._buffers.values():
            buffer.free()
        self._functions, self._buffers = [], {}

"""Launches for callers who count microseconds: one call of the driver, with everything else made before.

cuda-core's launch took 8.7 us of the caller's time where a float16 convolution of PyTorch took 24.1, this one 5.3 where
that took 16.8 (benchmarks/notes/tensors.md). The driver's own function is called with a block of arguments that is
filled in place. The interpreter's lock is held meanwhile, because that block is shared; so a launch that waits, because
the GPU's queue is full, waits with it.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from subbyte.device.launch import Launch
from subbyte.gpu.driver import CudaError

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_ANOTHER_CONTEXT = (201, 400, 709)
"""What the driver answers where a thread's context is none, another GPU's, or gone (``CUDA_ERROR_INVALID_CONTEXT``,
``INVALID_HANDLE``, ``CONTEXT_IS_DESTROYED``): nothing was launched."""
_MOST_CONFIGS = 256


@cache
def native(name: str, arguments: int) -> Callable[..., int]:
    """A function of the driver that takes so many pointers; its status."""
    function = getattr(ctypes.PyDLL(_LIBRARY), name)
    function.argtypes, function.restype = (ctypes.c_void_p,) * arguments, ctypes.c_int
    found: Callable[..., int] = function
    return found


class QuickLaunch:
    """One kernel, launched again and again: ``launch(addresses, stream, overlap)`` as :class:`CudaFunction` does it, on
    the stream of a handle (0 is the default one). ``handle`` is the driver's function. Raises CudaError."""

    def __init__(self, device: Any, handle: int, launch: Launch) -> None:
        count = len(launch.arguments)
        self._device, self._handle, self._launch = device, handle, launch
        self._slots = (ctypes.c_uint64 * count)()
        first = ctypes.addressof(self._slots)
        self._pointers = (ctypes.c_void_p * count)(*(first + 8 * index for index in range(count)))
        self._block = ctypes.addressof(self._pointers)
        self._fill = struct.Struct(f"{count}Q").pack_into
        self._configs: dict[tuple[int, bool], tuple[int, object]] = {}
        self._call = native("cuLaunchKernelEx", 4)

    def __call__(self, addresses: Sequence[int], stream: int, overlap: bool) -> None:
        """Enqueue one launch with these addresses."""
        found = self._configs.get((stream, overlap)) or self._config(stream, overlap)
        self._fill(self._slots, 0, *addresses)
        status = self._call(found[0], self._handle, self._block, 0)
        if status:
            self._again(status, found[0])

    def _again(self, status: int, config: int) -> None:
        """Once more with our context, where the thread had another; the thread gets its own back."""
        device = self._device
        if status in _ANOTHER_CONTEXT and not device.lost:
            device.call("cuCtxPushCurrent", device.context)
            try:
                status = self._call(config, self._handle, self._block, 0)
            finally:
                device.call("cuCtxPopCurrent")
        if status:
            code = device.api.CUresult(status).name
            raise CudaError(f"the launch of {self._launch.entry} failed: {code}", code)

    def _config(self, stream: int, overlap: bool) -> tuple[int, object]:
        """The driver's description of a launch, made once for each stream: its address, and what owns it."""
        api, shape = self._device.api, self._launch
        config = api.CUlaunchConfig()
        for name, sizes in (("gridDim", shape.grid), ("blockDim", shape.block)):
            for axis, size in zip("XYZ", sizes, strict=True):
                setattr(config, name + axis, size)
        config.sharedMemBytes, config.hStream, config.numAttrs = shape.shared_bytes, api.CUstream(stream), 0
        if overlap:
            attribute = api.CUlaunchAttribute()
            attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs, config.numAttrs = [attribute], 1
        if len(self._configs) >= _MOST_CONFIGS:
            self._configs.clear()
        self._configs[stream, overlap] = int(config.getPtr()), config
        return self._configs[stream, overlap]

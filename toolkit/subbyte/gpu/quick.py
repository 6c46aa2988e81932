"""Launches for callers who count microseconds: one driver call, with everything else prepared in advance.

cuda-core's launch took 8.7 us of the caller's time while a float16 convolution of PyTorch took 24.1; this one takes 5.3
while that took 16.8 (benchmarks/notes/tensors.md). The driver's own function is called with an argument block that is
filled in place; each launch in progress has its own, so that several threads can launch one kernel. The interpreter's
lock is held meanwhile, since releasing and reacquiring it takes longer than most launches. A launch that blocks,
because the GPU's queue is full, therefore blocks with the lock held.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from subbyte.device.launch import Launch
from subbyte.gpu.driver import CudaError

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_ANOTHER_CONTEXT = (201, 400, 709)
"""The driver's errors when a thread has no context, another GPU's, or a destroyed one (``CUDA_ERROR_INVALID_CONTEXT``,
``INVALID_HANDLE``, ``CONTEXT_IS_DESTROYED``): nothing was launched."""
_NO_HANDLE = 400
_MOST_CONFIGS = 256


@cache
def native(name: str, arguments: int) -> Callable[..., int]:
    """A driver function that takes this many pointers and returns its status."""
    function = getattr(ctypes.PyDLL(_LIBRARY), name)
    function.argtypes, function.restype = (ctypes.c_void_p,) * arguments, ctypes.c_int
    found: Callable[..., int] = function
    return found


class QuickLaunch:
    """One kernel, launched repeatedly: ``launch(addresses, stream, overlap)`` like :class:`CudaFunction`, on
    the stream with this handle (0 is the default one). ``handle`` is the driver's function. Raises CudaError."""

    def __init__(self, device: Any, handle: int, launch: Launch) -> None:
        self._device, self._handle, self._launch = device, ctypes.c_void_p(handle), launch
        self._configs: dict[tuple[int, bool], tuple[ctypes.c_void_p, object]] = {}
        self._call = native("cuLaunchKernelEx", 4)
        self.bound = self._bound()
        """The same as a plain function, which avoids looking up a method and its attributes on every call."""

    def __call__(self, addresses: Sequence[int], stream: int, overlap: bool) -> None:
        """Enqueue one launch with these addresses."""
        self.bound(addresses, stream, overlap)

    def _bound(self) -> Callable[[Sequence[int], int, bool], None]:
        configs, call, handle, nothing = self._configs, self._call, self._handle, ctypes.c_void_p()
        device, generation = self._device, self._device.generation
        free = [self._block()]
        take, give = free.pop, free.append

        def run(addresses: Sequence[int], stream: int, overlap: bool) -> None:
            if device.generation != generation:
                raise CudaError("the GPU was reset since: build this again", "CUDA_ERROR_CONTEXT_IS_DESTROYED")
            found = configs.get((stream, overlap)) or self._config(stream, overlap)
            try:
                block = take()
            except IndexError:  # another thread is launching
                block = self._block()
            block[0][:] = addresses
            status = call(found[0], handle, block[1], nothing)
            if status:
                self._again(status, found[0], block[1])
            give(block)

        return run

    def _block(self) -> tuple[Any, ctypes.c_void_p, object]:
        """Space for the arguments of a launch, the address of the list of pointers to them, and the object that owns
        both."""
        count = len(self._launch.arguments)
        slots = (ctypes.c_uint64 * count)()
        first = ctypes.addressof(slots)
        pointers = (ctypes.c_void_p * count)(*(first + 8 * index for index in range(count)))
        return slots, ctypes.c_void_p(ctypes.addressof(pointers)), pointers

    def _again(self, status: int, config: ctypes.c_void_p, block: ctypes.c_void_p) -> None:
        """Launch again with our context, if the thread had another; the thread's own is then restored."""
        device = self._device
        if status in _ANOTHER_CONTEXT and not device.lost:
            device.call("cuCtxPushCurrent", device.context)
            try:
                status = self._call(config, self._handle, block, ctypes.c_void_p())
            finally:
                device.call("cuCtxPopCurrent")
        if status:
            code = device.api.CUresult(status).name
            why = "; the stream is of another GPU, or gone" if status == _NO_HANDLE else ""
            raise CudaError(f"the launch of {self._launch.entry} failed: {code}{why}", code)

    def _config(self, stream: int, overlap: bool) -> tuple[ctypes.c_void_p, object]:
        """The driver's description of a launch, made once for each stream: its address, and the object that owns it."""
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
        self._configs[stream, overlap] = ctypes.c_void_p(int(config.getPtr())), config
        return self._configs[stream, overlap]

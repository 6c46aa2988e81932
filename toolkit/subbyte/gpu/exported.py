"""Arrays of libraries known only through DLPack, such as JAX: inspected, and made for them.

New arrays use memory of ours, allocated and freed in the order of a stream. A consumer that takes one over DLPack first
makes its stream wait for ours, as the protocol requires.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from subbyte.errors import InvalidInput
from subbyte.gpu.arrays import view_of
from subbyte.gpu.seen import CUDA, HOST, Seen

_CPU = 1
_CODES = {"i": 0, "u": 1, "f": 2}
"""DLPack's codes for kinds of elements."""
_DEFAULT_STREAM, _UNUSED = 1, b"dltensor"


class _Tensor(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


_held: dict[int, object] = {}
"""Tensors held by consumers, by the address of the structure they were given."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _release(address: int) -> None:
    _held.pop(address, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _capsule_gone(capsule: int) -> None:
    """Called for a capsule that nobody consumed, which still holds its tensor."""
    if _api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(capsule, _UNUSED):
        _held.pop(
            _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(capsule, _UNUSED), None
        )


def _api(name: str, result: Any, *arguments: Any) -> Any:
    """A C API function of the interpreter."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


class Exported:
    """An array of ours for other libraries: dense, of a numpy dtype, at an address kept alive by ``owner``.

    It has ``__dlpack__`` and, on a GPU, ``__cuda_array_interface__``. ``ordinal`` is the GPU's number or
    :data:`subbyte.gpu.seen.HOST`.
    """

    def __init__(self, address: int, shape: tuple[int, ...], dtype: str, ordinal: int, owner: Any) -> None:
        self.address, self.shape, self.dtype = address, tuple(shape), np.dtype(dtype)
        self.ordinal, self.owner = ordinal, owner
        if ordinal != HOST:
            self.__cuda_array_interface__ = {
                "shape": self.shape, "typestr": self.dtype.str, "data": (address, False), "version": 3,
                "stream": owner.stream or _DEFAULT_STREAM,
            }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0) if self.ordinal == HOST else (CUDA, self.ordinal)

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> object:
        """A capsule; ``stream`` (1 is the default one, -1 none) waits for the work that fills the array."""
        if self.ordinal != HOST and stream != -1:
            self.owner.let_wait(_DEFAULT_STREAM if stream is None else int(stream))
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        kind, identifier = self.__dlpack_device__()
        tensor = _Tensor(
            self.address, kind, identifier, len(self.shape), _CODES[self.dtype.kind], 8 * self.dtype.itemsize, 1,
            shape, None, 0, None, ctypes.cast(_release, ctypes.c_void_p),
        )  # fmt: skip
        place = ctypes.addressof(tensor)
        _held[place] = (tensor, shape, self.owner)
        make = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        capsule: object = make(place, _UNUSED, ctypes.cast(_capsule_gone, ctypes.c_void_p))
        return capsule


class StreamMemory:
    """GPU memory, allocated and freed in the order of a stream. Raises CudaError if there is not enough."""

    def __init__(self, device: Any, nbytes: int, stream: int) -> None:
        self.device, self.stream = device, stream
        with device.unmoved():
            device.activate()
            self.pointer = int(device.call("cuMemAllocAsync", max(nbytes, 4), stream))

    def let_wait(self, stream: int) -> None:
        """Make another stream wait for all work on this memory's stream."""
        if stream == (self.stream or _DEFAULT_STREAM):
            return
        event = self.device.call("cuEventCreate", self.device.api.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        try:
            self.device.call("cuEventRecord", event, self.stream)
            self.device.call("cuStreamWaitEvent", stream, event, 0)
        finally:
            self.device.api.cuEventDestroy(event)  # takes effect once it has been passed

    def __del__(self) -> None:
        with suppress(Exception):  # the driver may have been shut down before this object
            self.device.api.cuMemFreeAsync(self.pointer, self.stream)


class Foreign:
    """How to use an array known through DLPack or ``__cuda_array_interface__``. Results for JAX arrays are JAX
    arrays; for other libraries they are :class:`Exported`, or NumPy arrays on the host."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def of(cls, array: Any) -> Foreign:
        """For an array of any library."""
        jax = sys.modules.get("jax")
        return cls("jax" if jax is not None and isinstance(array, jax.Array) else "other")

    def look(self, array: Any, name: str, stream: int) -> Seen:
        """Describe an array; ``stream`` waits for the work that fills it."""
        host = hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) != CUDA
        view = view_of(array, name) if host else view_of(array, name, stream or _DEFAULT_STREAM)
        if view.dtype is None:
            raise InvalidInput(f"{name} has elements of a type that NumPy does not know: must be int8 or 32-bit words")
        ordinal = HOST if view.device_id < 0 or not view.is_device_accessible else int(view.device_id)
        return Seen(int(view.ptr), tuple(view.shape), view.dtype.name, ordinal, _dense(view.shape, view.strides))

    def empty(self, shape: tuple[int, ...], dtype: str, like: Any, stream: int) -> tuple[Any, int]:
        """A new array on the device of ``like``."""
        ordinal = self._ordinal(like)
        if ordinal == HOST:
            made = np.empty(shape, dtype)
            return made, made.ctypes.data
        from subbyte.gpu.device import open_device

        memory = StreamMemory(open_device(ordinal), prod(shape) * np.dtype(dtype).itemsize, stream)
        return Exported(memory.pointer, shape, dtype, ordinal, memory), memory.pointer

    def stream(self, ordinal: int) -> int:
        """Our own stream on the device, because these libraries do not expose theirs."""
        if ordinal == HOST:
            return 0
        from subbyte.gpu.device import open_device

        return int(open_device(ordinal).stream)

    def finished(self, made: Any, stream: int) -> Any:
        """A result for the caller."""
        if self.name == "jax" and isinstance(made, Exported):
            return sys.modules["jax"].dlpack.from_dlpack(made)
        return made

    @staticmethod
    def _ordinal(like: Any) -> int:
        if hasattr(like, "__dlpack_device__"):
            kind, number = like.__dlpack_device__()
            return int(number) if int(kind) == CUDA else HOST
        return view_of(like, "x", -1).device_id


def _dense(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether the elements are contiguous in C order."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides or ()), strict=bool(strides)):
        if size > 1 and stride != step:
            return False
        step *= size
    return True

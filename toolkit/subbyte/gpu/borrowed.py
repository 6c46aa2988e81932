"""Arrays of other libraries, used in place: their address, new ones of the same library, its current stream.

Nothing here copies, waits or calls the driver: for a torch tensor or a CuPy array that would take longer than a launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from subbyte.errors import InvalidInput, shown
from subbyte.gpu.arrays import library_of
from subbyte.gpu.seen import CUDA, HOST, Seen
from subbyte.numerics.int4 import without_mask

_DEFAULTS = 2
"""The largest handle of a default stream: 0 and 1 are the legacy one, 2 is the per-thread one."""


class Library(Protocol):
    """How one library's arrays are used."""

    name: str

    def look(self, array: Any, name: str, stream: int) -> Seen:
        """Describe an array, for work on ``stream``. Raises InvalidInput for one that is not plain."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: str, like: Any, stream: int) -> tuple[Any, int]:
        """A new array on the device of ``like``, for work on ``stream``, and its address."""
        ...

    def stream(self, ordinal: int) -> int:
        """The handle of the library's current stream on a GPU; 0 is the default stream."""
        ...

    def finished(self, made: Any, stream: int) -> Any:
        """An array from :meth:`empty`, ready for the caller, once the work that fills it is enqueued on ``stream``."""
        ...


class _Plain:
    """A library whose arrays are not tied to a stream."""

    def finished(self, made: Any, stream: int) -> Any:
        return made


class _Torch(_Plain):
    name = "torch"

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self.torch: Any = torch
        self._strided = torch.strided
        self._names: dict[Any, str] = {}
        raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.stream = raw or self._current

    def _current(self, ordinal: int) -> int:
        return int(self.torch.cuda.current_stream(ordinal).cuda_stream) if ordinal >= 0 else 0

    def look(self, array: Any, name: str, stream: int) -> Seen:
        if array.layout is not self._strided or array.is_quantized:
            raise InvalidInput(f"{name} is a sparse or quantized torch tensor: must be a plain one")
        kind = array.device.type
        if kind not in ("cuda", "cpu"):
            raise InvalidInput(f"{name} is on the device {array.device}: must be on a CUDA GPU or the CPU")
        dtype = self._names.get(array.dtype)
        if dtype is None:
            dtype = self._names[array.dtype] = str(array.dtype).rpartition(".")[2]
        ordinal = array.get_device() if kind == "cuda" else HOST
        return Seen(array.data_ptr(), tuple(array.shape), dtype, ordinal, array.is_contiguous())

    def empty(self, shape: tuple[int, ...], dtype: str, like: Any, stream: int) -> tuple[Any, int]:
        kind, device = getattr(self.torch, dtype), like.device
        if device.type == "cuda" and stream != self.stream(device.index):  # memory is reused in stream order
            cuda = self.torch.cuda
            with cuda.stream(cuda.ExternalStream(stream, device=device)):
                made = self.torch.empty(shape, dtype=kind, device=device)
        else:
            made = self.torch.empty(shape, dtype=kind, device=device)
        return made, made.data_ptr()


class _Cupy(_Plain):
    name = "cupy"

    def __init__(self) -> None:
        self.cupy: Any = sys.modules["cupy"]

    def look(self, array: Any, name: str, stream: int) -> Seen:
        return Seen(int(array.data.ptr), array.shape, array.dtype.name, int(array.device.id), array.flags.c_contiguous)

    def empty(self, shape: tuple[int, ...], dtype: str, like: Any, stream: int) -> tuple[Any, int]:
        cuda, device = self.cupy.cuda, int(like.device.id)
        with cuda.Device(device):
            if stream != self.stream(device):
                with cuda.ExternalStream(stream, device):
                    made = self.cupy.empty(shape, dtype)
            else:
                made = self.cupy.empty(shape, dtype)
        return made, int(made.data.ptr)

    def stream(self, ordinal: int) -> int:
        return int(self.cupy.cuda.get_current_stream(ordinal).ptr)


class _Numpy(_Plain):
    name = "numpy"

    def look(self, array: Any, name: str, stream: int) -> Seen:
        if not without_mask(array, name).dtype.isnative:
            raise InvalidInput(f"{name} has the wrong byte order: convert it to this machine's with .astype")
        return Seen(array.ctypes.data, array.shape, array.dtype.name, HOST, array.flags.c_contiguous)

    def empty(self, shape: tuple[int, ...], dtype: str, like: Any, stream: int) -> tuple[Any, int]:
        made = np.empty(shape, dtype)
        return made, made.ctypes.data

    def stream(self, ordinal: int) -> int:
        return 0


_made: dict[str, Library] = {}
_KINDS: dict[str, Callable[[], Library]] = {"numpy": _Numpy, "torch": _Torch, "cupy": _Cupy}


def borrowed(array: Any, name: str) -> Library:
    """How to use arrays of this array's library. Raises InvalidInput for anything but an array."""
    which = library_of(array)
    if which == "other":
        from subbyte.gpu.exported import Foreign

        if not (hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")):
            raise InvalidInput(
                f"{name} is a {type(array).__name__}: must be an array (torch, cupy, jax, or one with __dlpack__ or "
                "__cuda_array_interface__)"
            )
        return Foreign.of(array)
    found = _made.get(which)
    if found is None:
        found = _made[which] = _KINDS[which]()
    return found


def gpu_number(array: Any) -> int | None:
    """The number of the GPU that holds an array; None for a host array and for anything but an array."""
    which = library_of(array)
    if which == "torch":
        return array.get_device() if array.device.type == "cuda" else None
    if which == "cupy":
        return int(array.device.id)
    if which == "numpy" or not hasattr(array, "__dlpack_device__"):
        return None
    kind, number = array.__dlpack_device__()
    return int(number) if int(kind) == CUDA else None


def stream_handle(stream: Any, ordinal: int = HOST) -> int:
    """The handle of a stream of any library. Raises InvalidInput for anything else, for a closed stream, for one of
    another GPU than ``ordinal``, and for a bare number: the driver crashes on the handle of a destroyed stream, and
    only an object guarantees that the stream exists."""
    if type(stream) is int and 0 <= stream <= _DEFAULTS:
        return stream
    handle = _handle(stream)
    of = _gpu_of(stream)
    if ordinal >= 0 and of is not None and of != ordinal:
        raise InvalidInput(f"stream is of cuda:{of}: must be of cuda:{ordinal}, where the weights are")
    return handle


def _handle(stream: Any) -> int:
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        try:
            return int((protocol() if callable(protocol) else protocol)[1])
        except RuntimeError:
            raise InvalidInput("stream is closed: give one that is open") from None
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    raise InvalidInput(
        f"stream={shown(stream)}: must be a stream of torch, CuPy or cuda-core; a number does not say whether its "
        "stream is still there"
    )


def _gpu_of(stream: Any) -> int | None:
    """The number of a stream's GPU, if its object holds it: torch has a device with an index, CuPy a number, -1
    if unknown. cuda-core would ask the driver, which must not be asked about a stream that may be gone."""
    if hasattr(stream, "__cuda_stream__") and type(stream).__module__.startswith("cuda."):
        return None
    for owner, attribute in ((getattr(stream, "device", None), "index"), (stream, "device_id")):
        found = getattr(owner, attribute, None)
        if type(found) is int and found >= 0:
            return found
    return None

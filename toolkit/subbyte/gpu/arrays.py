"""Arrays of any library in, arrays of the same library out.

The public functions take NumPy, PyTorch and CuPy arrays and return the kind they were given, on the same device.
Any other library's array is accepted if it has ``__dlpack__``, or ``__cuda_array_interface__`` version 3; its results
come back as NumPy arrays. Arrays on a GPU are inspected through cuda-core's views.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import without_mask

if TYPE_CHECKING:
    from cuda.core.utils import StridedMemoryView

_WORDS = (np.dtype(np.uint32), np.dtype(np.int32))
_HOST = 1
"""DLPack's number for host memory (``kDLCPU``)."""
_NO_WAIT = -1
"""Passed instead of a stream: the caller synchronizes with the other library's work."""


@dataclass(frozen=True)
class Origin:
    """Where an array came from: ``library`` (``numpy``, ``torch``, ``cupy``) and its device there."""

    library: str
    device: Any = None

    @property
    def on_gpu(self) -> bool:
        """Whether the caller's array is on a GPU."""
        return self.library == "cupy" or (self.library == "torch" and str(self.device).startswith("cuda"))

    def give_back(self, array: NDArray[Any]) -> Any:
        """``array`` as an array of this library on this device."""
        if self.library == "torch":
            import torch  # type: ignore[import-not-found,unused-ignore]

            host = np.ascontiguousarray(array)
            return torch.from_numpy(host if host.flags.writeable else host.copy()).to(self.device)
        if self.library == "cupy":
            import cupy  # type: ignore[import-not-found,unused-ignore]

            with cupy.cuda.Device(self.device):
                return cupy.asarray(array)
        return array


def library_of(array: Any) -> str:
    """``numpy``, ``torch``, ``cupy`` or ``other``; imports nothing."""
    if isinstance(array, np.ndarray):
        return "numpy"
    for name, kind in (("torch", "Tensor"), ("cupy", "ndarray")):
        module = sys.modules.get(name)  # an array of a library that was never imported cannot exist
        if module is not None and isinstance(array, getattr(module, kind, ())):
            return name
    return "other"


def to_host(array: Any, name: str) -> tuple[NDArray[Any], Origin]:
    """The array as a NumPy array (copied only from a GPU) and where it came from.

    Raises InvalidInput for anything that is not an array.
    """
    library = library_of(without_mask(array, name))
    if library == "numpy":
        return array, Origin("numpy")
    if library == "torch":
        tensor = array.detach()
        if tensor.layout != sys.modules["torch"].strided or tensor.is_quantized:
            raise InvalidInput(f"{name} is a sparse or quantized torch tensor: must be a plain one")
        try:
            return tensor.cpu().numpy(), Origin("torch", array.device)
        except TypeError:  # bfloat16 and the like have no NumPy counterpart
            raise InvalidInput(f"{name} is a torch tensor of {array.dtype}: must be int8 (int4 values)") from None
    if library == "cupy":
        return array.get(), Origin("cupy", int(array.device.id))
    return _foreign(array, name), Origin("numpy")


def _foreign(array: Any, name: str) -> NDArray[Any]:
    if not _exports(array):
        raise InvalidInput(
            f"{name} is a {type(array).__name__}: must be an array (numpy, torch, cupy, or one with __dlpack__ or "
            "__cuda_array_interface__)"
        )
    try:
        if hasattr(array, "__dlpack__") and array.__dlpack_device__()[0] == _HOST:
            return np.from_dlpack(array)
    except (AttributeError, BufferError, RuntimeError, TypeError) as error:
        raise InvalidInput(f"{name}: the {type(array).__name__} cannot be read on the host ({error})") from None
    return _copy_from_gpu(array, name)


def _copy_from_gpu(array: Any, name: str) -> NDArray[Any]:
    from subbyte.gpu.device import open_device

    open_device()  # a view asks the driver where the array is
    view = view_of(array, name)
    _require_contiguous(view, name)
    host = np.empty(view.shape, view.dtype)
    device = open_device(view.device_id)
    with device.unmoved():
        device.activate()
        device.wait_for_others()
        device.call("cuMemcpyDtoH", host.ctypes.data, view.ptr, host.nbytes)
    return host


def device_pointer(array: Any, name: str, shape: tuple[int, ...], ordinal: int) -> int:
    """Address of a device array of 4-byte integers with as many elements as ``shape``, for a launch without a copy.

    Raises InvalidInput when the array is not on GPU ``ordinal``, not contiguous, or of another width or size.
    """
    view = view_of(array, name) if _exports(array) else None
    if view is None or view.device_id < 0:
        raise InvalidInput(f"{name} is a {type(array).__name__} in host memory: must be on cuda:{ordinal}")
    if view.device_id != ordinal:
        raise InvalidInput(f"{name} is on cuda:{view.device_id}: must be on cuda:{ordinal}, where the kernel is loaded")
    if view.dtype not in _WORDS:
        raise InvalidInput(f"{name} has elements of type {view.dtype}: must be 32-bit integers (packed words or int32)")
    if prod(view.shape) != prod(shape):
        raise InvalidInput(f"{name} has shape {list(view.shape)}: must hold {prod(shape)} words, {list(shape)}")
    _require_contiguous(view, name)
    return int(view.ptr)


def _exports(array: Any) -> bool:
    return hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")


def view_of(array: Any, name: str, stream: int = _NO_WAIT) -> StridedMemoryView:
    """Address, shape, strides and device of an array of any library; ``stream``, if given, is made to wait for the work
    that fills the array. Raises InvalidInput."""
    from cuda.core.utils import StridedMemoryView

    try:
        if hasattr(array, "__dlpack__"):
            # Passed without its class: for a torch tensor cuda-core would read the C struct, whose layout it has to
            # guess for a torch newer than itself.
            array = SimpleNamespace(__dlpack__=array.__dlpack__, __dlpack_device__=array.__dlpack_device__)
            view = StridedMemoryView.from_dlpack(array, stream_ptr=stream)
        else:
            view = StridedMemoryView.from_cuda_array_interface(array, stream_ptr=stream)
        view.dtype  # noqa: B018 - found out when asked for, and refused then
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(f"{name} cannot be viewed ({error}): must be a plain, dense array") from None
    return view


def _require_contiguous(view: StridedMemoryView, name: str) -> None:
    if view.strides is None:
        return
    step = 1
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size > 1 and stride != step:
            raise InvalidInput(f"{name} is not C-contiguous (strides {list(view.strides)}): make it contiguous first")
        step *= size

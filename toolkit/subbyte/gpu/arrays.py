"""Arrays of any library in, the same library out.

The public functions take NumPy, PyTorch and CuPy arrays and give back the kind they were given, on the same device.
Any other library's array is accepted when it has ``__cuda_array_interface__`` (on a GPU) or ``__dlpack__`` (in host
memory); its results come back as NumPy arrays.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import without_mask

_WORDS = ("<u4", "<i4", "|u4", "|i4")


@dataclass(frozen=True)
class Origin:
    """Where an array came from: ``library`` (``numpy``, ``torch``, ``cupy``) and its device there."""

    library: str
    device: Any = None

    @property
    def on_gpu(self) -> bool:
        """Whether the caller's array lies on a GPU."""
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
    try:
        if hasattr(array, "__cuda_array_interface__"):
            return _copy_from_gpu(array.__cuda_array_interface__, name)
        if hasattr(array, "__dlpack__"):
            return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError) as error:
        raise InvalidInput(f"{name}: the {type(array).__name__} cannot be read on the host ({error})") from None
    raise InvalidInput(
        f"{name} is a {type(array).__name__}: must be an array (numpy, torch, cupy, or one with __dlpack__ or "
        "__cuda_array_interface__)"
    )


def _copy_from_gpu(interface: dict[str, Any], name: str) -> NDArray[Any]:
    from subbyte.gpu.device import open_device

    dtype = np.dtype(interface["typestr"])
    _require_contiguous(interface, name, dtype.itemsize)
    host = np.empty(interface["shape"], dtype)
    device = open_device()
    device.wait_for_others()
    device.call("cuMemcpyDtoH", host.ctypes.data, int(interface["data"][0]), host.nbytes)
    return host


def device_pointer(array: Any, name: str, shape: tuple[int, ...], ordinal: int) -> int:
    """Address of a device array of 4-byte integers with as many elements as ``shape``, for a launch without a copy.

    Raises InvalidInput when the array is not on GPU ``ordinal``, not contiguous, of another width or size.
    """
    interface = _interface(array, name, ordinal)
    typestr = str(interface["typestr"])
    if typestr not in _WORDS:
        raise InvalidInput(f"{name} has elements of type {typestr}: must be 32-bit integers (packed words, or int32)")
    if prod(interface["shape"]) != prod(shape):
        raise InvalidInput(f"{name} has shape {list(interface['shape'])}: must hold {prod(shape)} words, {list(shape)}")
    _require_contiguous(interface, name, 4)
    return int(interface["data"][0])


def _interface(array: Any, name: str, ordinal: int) -> dict[str, Any]:
    library = library_of(array)
    if library == "torch":
        if not array.is_cuda:
            raise InvalidInput(f"{name} is a torch tensor on {array.device}: must be on cuda:{ordinal}")
        where = array.device.index
        dtypes = {"torch.int32": "<i4", "torch.uint32": "<u4"}
        strides = None if array.is_contiguous() else tuple(4 * step for step in array.stride())
        interface: dict[str, Any] = {
            "typestr": dtypes.get(str(array.dtype), str(array.dtype)),
            "shape": tuple(array.shape),
            "strides": strides,
            "data": (array.data_ptr(), False),
        }
    elif hasattr(array, "__cuda_array_interface__"):
        interface = array.__cuda_array_interface__
        where = int(array.device.id) if library == "cupy" else ordinal
    else:
        raise InvalidInput(f"{name} is a {type(array).__name__} in host memory: must be an array on cuda:{ordinal}")
    if where != ordinal:
        raise InvalidInput(f"{name} is on cuda:{where}: must be on cuda:{ordinal}, where the kernel is loaded")
    return interface


def _require_contiguous(interface: dict[str, Any], name: str, itemsize: int) -> None:
    strides = interface.get("strides")
    if strides is None:
        return
    step = itemsize
    for size, stride in zip(reversed(interface["shape"]), reversed(strides), strict=True):
        if size > 1 and stride != step:
            raise InvalidInput(f"{name} is not C-contiguous (strides {list(strides)}): make it so first")
        step *= size

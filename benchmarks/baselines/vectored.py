"""cuDNN's older interface on channels in vectors of 32 (NC/32HW32): the layout its int8 kernels were first written for.

The graph API lists no plan for it. The older interface takes it with one algorithm, implicit GEMM with indices computed
beforehand; the filter is brought into the order of the tensor cores once, before anything is timed, where the library
offers that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.cutlass_driver import FORM
from benchmarks.baselines.sides import Side, nbytes_of
from subbyte.errors import MissingDependency, WrongResult
from subbyte.measure.baselines import TorchDevice
from subbyte.measure.case import Case
from subbyte.measure.cudnn_graph import SCALE, check_graph

SIDE = "cuDNN int8 to int8, NC/32HW32"
LANES = 32
"""Channels of a vector."""
VECTORS, INT8X32, INT32 = 2, 8, 4
"""cudnnTensorFormat_t and cudnnDataType_t: NCHW_VECT_C, INT8x32, INT32."""
CROSS_CORRELATION, TENSOR_OP, PRECOMPUTED = 1, 1, 1
REORDERED = {"filter reordered beforehand": 1, "filter reordered in each call": 0}
"""cudnnReorderType_t: NO_REORDER, for a filter that is in order already, and DEFAULT_REORDER."""


def to_vectors(values: NDArray[Any]) -> NDArray[Any]:
    """[N,H,W,C] to [N,C/32,H,W,32], C filled up with zeros to a multiple of 32."""
    filled = np.pad(values, ((0, 0), (0, 0), (0, 0), (0, -values.shape[3] % LANES)))
    n, h, w, c = filled.shape
    return np.ascontiguousarray(filled.reshape(n, h, w, c // LANES, LANES).transpose(0, 3, 1, 2, 4))


class Library:
    """The functions of cuDNN that PyTorch has loaded. Raises MissingDependency where the library is not found."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcudnn.so.9")
        except OSError as error:
            raise MissingDependency(f"cuDNN 9 cannot be loaded: {error}; pip install nvidia-cudnn-cu13") from None
        self._library.cudnnGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> None:
        """Raises RuntimeError with cuDNN's own word for a status other than success."""
        status = getattr(self._library, f"cudnn{name}")(*arguments)
        if status:
            raise RuntimeError(f"cudnn{name}: {self._library.cudnnGetErrorString(status).decode()}")

    def created(self, stack: ExitStack, kind: str) -> ctypes.c_void_p:
        """A handle or descriptor that lives as long as ``stack``."""
        made = ctypes.c_void_p()
        self.call(f"Create{kind}", ctypes.byref(made))
        stack.callback(lambda: self.call(f"Destroy{kind}", made))
        return made


def vectored_side(stack: ExitStack, case: Case, device: TorchDevice, how: str) -> Side:
    """The convolution on vectors of 32 channels, ``how`` one of ``REORDERED``; compared with the exact answer.

    Raises RuntimeError for what cuDNN refuses, WrongResult.
    """
    torch, where, wl = device.torch, f"cuda:{device.info.ordinal}", case.workload
    library = Library()
    handle = library.created(stack, "")
    x, w = (torch.from_numpy(to_vectors(np.asarray(one, np.int8))).to(where) for one in (case.x, case.w))
    padded = -(-wl.k // LANES) * LANES
    if padded != wl.k:
        w = torch.nn.functional.pad(w, (0, 0) * 4 + (0, padded - wl.k))
    y = torch.empty((wl.n, padded // LANES, wl.p, wl.q, LANES), dtype=torch.int8, device=where)
    channels = x.shape[1] * LANES
    tensors = {}
    for name, sizes in (("x", (wl.n, channels, wl.h, wl.w)), ("y", (wl.n, padded, wl.p, wl.q))):
        tensors[name] = library.created(stack, "TensorDescriptor")
        library.call("SetTensor4dDescriptor", tensors[name], VECTORS, INT8X32, *sizes)
    filters = library.created(stack, "FilterDescriptor")
    library.call("SetFilter4dDescriptor", filters, INT8X32, VECTORS, padded, channels, wl.r, wl.s)
    convolution = library.created(stack, "ConvolutionDescriptor")
    steps = (wl.pad, wl.pad, wl.stride, wl.stride, wl.dilation, wl.dilation)
    library.call("SetConvolution2dDescriptor", convolution, *steps, CROSS_CORRELATION, INT32)
    library.call("SetConvolutionMathType", convolution, TENSOR_OP)
    library.call("SetConvolutionReorderType", convolution, REORDERED[how])
    if REORDERED[how]:
        given, w = w, torch.empty_like(w)
        pointers = (ctypes.c_void_p(given.data_ptr()), ctypes.c_void_p(w.data_ptr()), 0, None, None)
        library.call("ReorderFilterAndBias", handle, filters, 0, *pointers)
        device.synchronize()
    size = ctypes.c_size_t()
    asked = (handle, tensors["x"], filters, convolution, tensors["y"], PRECOMPUTED, ctypes.byref(size))
    library.call("GetConvolutionForwardWorkspaceSize", *asked)
    workspace = torch.empty(max(1, size.value), dtype=torch.uint8, device=where)
    alpha, beta = ctypes.byref(ctypes.c_float(SCALE)), ctypes.byref(ctypes.c_float(0.0))

    def launch() -> None:
        library.call("SetStream", handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        library.call(
            "ConvolutionForward", handle, alpha, tensors["x"], ctypes.c_void_p(x.data_ptr()), filters,
            ctypes.c_void_p(w.data_ptr()), convolution, PRECOMPUTED, ctypes.c_void_p(workspace.data_ptr()),
            ctypes.c_size_t(size.value), beta, tensors["y"], ctypes.c_void_p(y.data_ptr()),
        )  # fmt: skip

    return checked_side(launch, y, x, w, case, device, how)


def checked_side(
    launch: Callable[[], None], y: Any, x: Any, w: Any, case: Case, device: TorchDevice, how: str
) -> Side:  # fmt: skip
    """The side, when its output on a poisoned buffer is right. Raises WrongResult."""
    y.fill_(77)
    launch()
    device.synchronize()
    got = y.permute(0, 2, 3, 1, 4).flatten(3)[..., : case.workload.k].double()
    try:
        error = check_graph(got, device.exact(case), FORM)
    except WrongResult as problem:
        raise WrongResult(f"{SIDE}, {how}: {problem}") from None
    about = {"side": SIDE, "plan": how, "epilogue": FORM.epilogue, "error": error, "counts": None, "chain_how": None}
    return Side(f"{SIDE}, {how}", about, device, launch, sum(map(nbytes_of, (x, w, y))))

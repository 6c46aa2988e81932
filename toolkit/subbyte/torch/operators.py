"""``torch.ops.subbyte``: pack, conv2d, pool and unpack, for CUDA, the CPU (through the emulator) and fake tensors.

A program is identified by a string, which an exported graph keeps. For a kernel it holds everything that determines its
code; for a conversion, the layout of the words and the architecture (the rest follows from its tensor).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import torch

from subbyte.errors import InvalidInput
from subbyte.families.registry import config_from_key
from subbyte.gpu.seen import HOST
from subbyte.kernel.build import make_plan
from subbyte.kernel.convert import Conversion, convertible, packing, unpacking
from subbyte.kernel.convert.plan import NHWC, REALS
from subbyte.kernel.device_layer import VECTOR
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.place import Program, Run, place_at
from subbyte.kernel.pool.text import pool_kernel_of
from subbyte.kernel.split import SplitKernel
from subbyte.workload import workload as workload_named
from subbyte.workload.operand import Operand

_SEPARATOR, _BESIDE = " ", " + "
_INT32 = torch.int32
_ELEMENTS = {name: getattr(torch, name) for name in ("int8", "uint8", "int16", "int32")}


def kernel_text(kernel: Kernel) -> str:
    """A kernel as a string for the operator ``subbyte::conv2d``: workload, configuration, architecture, output, clip
    and form of the requantization; if it has several launches, each with its number of images. It identifies the same
    machine code in every process of this version."""
    if len(kernel.parts) > 1:
        return _BESIDE.join([kernel.workload.spec, *(kernel_text(one) for one in kernel.parts)])
    plan = kernel.plan
    low, high = plan.clip
    parts = (kernel.workload.spec, kernel.config.key, kernel.arch, plan.output, f"{low},{high}", plan.requant)
    return _SEPARATOR.join(parts)


@lru_cache(maxsize=512)
def kernel_of(text: str) -> Kernel:
    """The kernel that a string identifies. Raises InvalidInput, Unsupported."""
    whole, *beside = text.split(_BESIDE)
    if beside:
        return SplitKernel.joining(workload_named(whole), [kernel_of(one) for one in beside])
    parts = text.split(_SEPARATOR)
    try:
        spec, key, arch, output, clip, requant = parts
        low, high = map(int, clip.split(","))
    except ValueError:
        raise InvalidInput(f"kernel {text!r}: expected a text that subbyte.torch.kernel_text gave") from None
    return Kernel(make_plan(workload_named(spec), config_from_key(key), arch, output, (low, high), requant))


class _Ready(NamedTuple):
    """A program on a device, and what its tensors must be."""

    run: Run
    given: tuple[int, ...]
    """Elements of each input tensor: for a convolution x, the weights, and the parameters (none if it returns sums)."""
    gives: tuple[int, ...]
    alignment: int
    sums: bool = False
    """For a convolution: it returns sums, so it takes no parameters."""


_ready: dict[tuple[Any, ...], _Ready] = {}
_raw_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)
"""The handle of torch's current stream on a GPU, without wrapping it in an object. A CPU build has no such function."""


def _stream(device: int) -> int:
    return _raw_stream(device) if device >= 0 else 0


def _load(program: Program, device: int) -> Run:
    if device >= 0 and torch.cuda.is_current_stream_capturing():
        raise InvalidInput(
            "a CUDA graph is being captured, and this layer has not run on this GPU yet: call it once before the "
            "capture, as torch.cuda.graph asks for every module"
        )
    return place_at(HOST if device < 0 else device).load(program)


def _conv2d_ready(text: str, device: int) -> _Ready:
    kernel = kernel_of(text)
    sizes = {one.name: prod(one.shape) for one in kernel.launch.arguments}
    if set(sizes) - {"A", "Out", "Prm", "Wt"}:
        raise InvalidInput(f"kernel {text!r}: it reads or keeps sums of other layers, which this operator does not")
    sums = "Prm" not in sizes
    given = (sizes["A"], sizes["Wt"], 0 if sums else sizes["Prm"])
    return _Ready(_load(kernel, device), given, (sizes["Out"],), VECTOR, sums)


def _conv2d(x: torch.Tensor, weight: torch.Tensor, parameters: torch.Tensor | None, kernel: str) -> torch.Tensor:
    device = x.get_device()
    ready = _ready.get((kernel, device))
    if ready is None:
        ready = _ready[kernel, device] = _conv2d_ready(kernel, device)
    run, (words, held, more), (gives,), _, sums = ready
    # Every tensor attribute costs 0.1 us to read, so each is read once, and the rest only when a check fails.
    addresses: tuple[int, ...]
    at, of = x.data_ptr(), weight.data_ptr()
    if parameters is None:
        fits, every = sums, at | of
    else:
        beside = parameters.data_ptr()
        fits, every = (
            not sums and parameters.numel() == more and parameters.dtype is _INT32
            and parameters.get_device() == device and parameters.is_contiguous()
        ), at | of | beside  # fmt: skip
    if not (
        fits and not every % VECTOR
        and x.numel() == words and x.dtype is _INT32 and x.is_contiguous()
        and weight.numel() == held and weight.dtype is _INT32
        and weight.get_device() == device and weight.is_contiguous()
    ):  # fmt: skip
        _refuse(x, weight, parameters, ready, device)
    out = x.new_empty(gives)  # a number: reading sizes from a tuple takes longer than allocating memory
    addresses = (at, out.data_ptr(), of) if parameters is None else (at, out.data_ptr(), beside, of)
    run(addresses, _stream(device), False)
    return out


def _refuse(x: torch.Tensor, weight: torch.Tensor, parameters: torch.Tensor | None, ready: _Ready, device: int) -> None:
    """Raise the error that names the tensor that does not fit."""
    _check(x, "x", torch.int32, ready.given[0], device)
    _check(weight, "weight", torch.int32, ready.given[1], device)
    _require(parameters is not None or ready.sums, "parameters are missing: this kernel requantizes")
    _require(parameters is None or not ready.sums, "parameters given, but this kernel gives int32 sums")
    if parameters is not None:
        _check(parameters, "parameters", torch.int32, ready.given[2], device)


def _conv2d_fake(x: torch.Tensor, weight: torch.Tensor, parameters: torch.Tensor | None, kernel: str) -> torch.Tensor:
    sizes = {one.name: prod(one.shape) for one in kernel_of(kernel).launch.arguments}
    _require(x.numel() == sizes["A"], f"x has {x.numel()} words: the kernel takes {sizes['A']}")
    return x.new_empty((sizes["Out"],), dtype=torch.int32)


def _axes(x: torch.Tensor) -> str:
    """The order of a tensor [N,H,W,C] in memory. Raises InvalidInput for anything but nhwc and nchw."""
    if x.is_contiguous():
        return "nhwc"
    if x.permute(0, 3, 1, 2).is_contiguous():
        return "nchw"
    raise InvalidInput(
        f"x has strides {list(x.stride())}: must be dense, as [N,H,W,C] or [N,C,H,W]; make it contiguous first"
    )


@lru_cache(maxsize=512)
def operand_named(name: str) -> Operand:
    """The type of the words that conversions write and read. Raises InvalidInput."""
    found = Operand.named(name)
    if not convertible(found):
        raise InvalidInput(f"operand {name!r}: conversions are of int4, uint4, int8, uint8, and of these with a zero "
                           "point, such as offset8-z37")  # fmt: skip
    return found


def _packing(form: str, shape: tuple[int, ...], arch: str, dtype: str, axes: str, operand: str) -> Conversion:
    """The conversion for values of a torch dtype. Raises InvalidInput for anything but the operand's own and real
    dtypes."""
    types = operand_named(operand)
    taken = (types.dtype, *REALS)
    _require(len(shape) == 4 and dtype in taken, f"x is torch.{dtype} {list(shape)}: must be [N,H,W,C] of "
             + ", ".join(taken))  # fmt: skip
    n, h, w, c = shape
    return packing(form, (n, h, w, c), arch, dtype, axes, types)


def _pack(
    x: torch.Tensor, thresholds: torch.Tensor | None, form: str, arch: str, operand: str = "int4"
) -> torch.Tensor:
    device, dtype, axes = x.get_device(), str(x.dtype)[6:], _axes(x)
    key = (form, arch, dtype, axes, x.shape, device, operand)
    ready = _ready.get(key)
    if ready is None:
        conversion = _packing(form, tuple(x.shape), arch, dtype, axes, operand)
        plan = conversion.plan
        given = (plan.values, plan.parameters)
        ready = _Ready(_load(conversion, device), given, (plan.words.words,), plan.alignment)
        _ready[key] = ready
    out = torch.empty(ready.gives, dtype=torch.int32, device=x.device)
    _require(x.data_ptr() % ready.alignment == 0, f"x starts at {x.data_ptr():#x}: must be a multiple of "
             f"{ready.alignment} bytes; pass a copy of it")  # fmt: skip
    if dtype not in REALS:
        ready.run((x.data_ptr(), out.data_ptr()), _stream(device), False)
        return out
    _require(thresholds is not None, f"x is {x.dtype}: this layer was given no input_scale, so it takes int8 or words")
    assert thresholds is not None
    _check(thresholds, "thresholds", torch.float32, ready.given[1], device)
    ready.run((x.data_ptr(), out.data_ptr(), thresholds.data_ptr()), _stream(device), False)
    return out


def _pack_fake(
    x: torch.Tensor, thresholds: torch.Tensor | None, form: str, arch: str, operand: str = "int4"
) -> torch.Tensor:
    _require(x.dim() == 4, f"x has {x.dim()} dimensions: must be [N,H,W,C]")
    shape = tuple(int(size) for size in x.shape)
    plan = _packing(form, shape, arch, str(x.dtype)[6:], NHWC, operand).plan
    return x.new_empty((plan.words.words,), dtype=torch.int32)


def _unpack(
    words: torch.Tensor, shape: Sequence[int], form: str, arch: str, element: str, operand: str = "int4"
) -> torch.Tensor:
    device = words.get_device()
    key = (form, arch, element, *shape, device, operand)
    ready = _ready.get(key)
    if ready is None:
        _require(len(shape) == 4, f"shape has {len(shape)} sizes: must be [N,H,W,C]")
        n, h, w, c = shape
        conversion = unpacking(form, (n, h, w, c), arch, element, operand_named(operand))
        ready = _Ready(_load(conversion, device), (prod(conversion.launch.arguments[0].shape),), tuple(shape), VECTOR)
        _ready[key] = ready
    _check(words, "words", torch.int32, ready.given[0], device)
    out = words.new_empty(ready.gives, dtype=_ELEMENTS[element])
    ready.run((words.data_ptr(), out.data_ptr()), _stream(device), False)
    return out


def _unpack_fake(
    words: torch.Tensor, shape: Sequence[int], form: str, arch: str, element: str, operand: str = "int4"
) -> torch.Tensor:
    return words.new_empty(tuple(shape), dtype=_ELEMENTS[element])


def _check(tensor: torch.Tensor, name: str, dtype: torch.dtype, count: int, device: int) -> None:
    """Raise InvalidInput, in one sentence, for a tensor that a launch cannot use."""
    if (tensor.dtype is dtype and tensor.numel() == count and tensor.get_device() == device
            and tensor.is_contiguous() and tensor.data_ptr() % VECTOR == 0):  # fmt: skip
        return
    if tensor.get_device() != device:
        where = "the CPU" if device < 0 else f"cuda:{device}"
        raise InvalidInput(f"{name} is on {tensor.device}: must be on {where}, like x; move the module with .to(...)")
    if tensor.dtype is not dtype or tensor.numel() != count:
        raise InvalidInput(f"{name} is {tensor.dtype} with {tensor.numel()} elements: must be {dtype} with {count}")
    if not tensor.is_contiguous():
        raise InvalidInput(f"{name} has strides {list(tensor.stride())}: must be contiguous")
    at = f"{tensor.data_ptr():#x}"
    raise InvalidInput(f"{name} starts at {at}: must be a multiple of {VECTOR} bytes; pass a copy of it")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvalidInput(message)


def _pool_ready(text: str, device: int) -> _Ready:
    kernel = pool_kernel_of(text)
    sizes = tuple(prod(one.shape) for one in kernel.launch.arguments)
    return _Ready(_load(kernel, device), sizes[:1], sizes[1:], VECTOR)


def _pool(words: torch.Tensor, kernel: str) -> torch.Tensor:
    device = words.get_device()
    ready = _ready.get((kernel, device))
    if ready is None:
        ready = _ready[kernel, device] = _pool_ready(kernel, device)
    _check(words, "words", torch.int32, ready.given[0], device)
    out = torch.empty(ready.gives, dtype=torch.int32, device=words.device)
    ready.run((words.data_ptr(), out.data_ptr()), _stream(device), False)
    return out


def _pool_fake(words: torch.Tensor, kernel: str) -> torch.Tensor:
    plan = pool_kernel_of(kernel).plan
    _require(words.numel() == plan.reads.words, f"words has {words.numel()}: the kernel takes {plan.reads.words}")
    return words.new_empty((plan.writes.words,), dtype=torch.int32)


LIBRARY = torch.library.Library("subbyte", "DEF")
_OPERATORS = (
    ("conv2d(Tensor x, Tensor weight, Tensor? parameters, str kernel) -> Tensor", _conv2d, _conv2d_fake),
    ("pack(Tensor x, Tensor? thresholds, str form, str arch, str operand='int4') -> Tensor", _pack, _pack_fake),
    ("pool(Tensor words, str kernel) -> Tensor", _pool, _pool_fake),
    (
        "unpack(Tensor words, int[] shape, str form, str arch, str element, str operand='int4') -> Tensor",
        _unpack,
        _unpack_fake,
    ),
)
for _schema, _real, _fake in _OPERATORS:
    _name = _schema.partition("(")[0]
    LIBRARY.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))
    for _key in ("CPU", "CUDA"):
        LIBRARY.impl(_name, _real, _key)
    # Integers have no gradients: without this, every call would search for tensors that require one.
    LIBRARY.impl(_name, torch.library.fallthrough_kernel, "Autograd")
    torch.library.register_fake(f"subbyte::{_name}", _fake, lib=LIBRARY)

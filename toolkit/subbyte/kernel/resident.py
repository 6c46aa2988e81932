"""Layers that :func:`subbyte.conv2d` keeps on a GPU for arrays that are there."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from subbyte.device.arch import ARCHS
from subbyte.gpu.arrays import to_host
from subbyte.gpu.borrowed import gpu_number
from subbyte.gpu.driver import GpuInfo, detect
from subbyte.kernel.choose import compile as compile_kernel
from subbyte.kernel.device_layer import DeviceLayer
from subbyte.kernel.execute import EMULATOR
from subbyte.kernel.kernel import Kernel, build
from subbyte.kernel.placed import ends_of
from subbyte.numerics import Requantization, Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


class _Resident(NamedTuple):
    """A resident layer, the request it was made for, and its weights, which are compared element by element: computing
    a digest would take longer."""

    key: tuple[Any, ...]
    weights: bytes
    layer: DeviceLayer


KEPT = 32
"""How many layers' weights stay on GPUs."""
_kernels: dict[tuple[Any, ...], Kernel] = {}
_layers: list[_Resident] = []
"""The resident layers, most recently used last."""


def gpu_of(x: Any, device: str, arch: str | None) -> GpuInfo | None:
    """The GPU that holds an array, if kernels exist for it and the caller does not ask for another device."""
    if device == EMULATOR:
        return None
    ordinal = gpu_number(x)
    if ordinal is None or device not in ("auto", "cuda", f"cuda:{ordinal}"):
        return None
    found = next((gpu for gpu in _gpus() if gpu.ordinal == ordinal), None)
    return found if found is not None and found.arch in ARCHS and arch in (None, found.arch) else None


def resident_layer(
    workload: ConvWorkload, w: Any, requant: Requantization | Thresholds | None, gpu: GpuInfo,
    config: Configuration | None, output: str,
) -> DeviceLayer | None:  # fmt: skip
    """A layer with these weights on a GPU, either resident already or placed there now: the kernel is that of
    ``config``, else the one that :func:`subbyte.compile` takes. None if values of its types cannot be converted on the
    device. Raises what these and :meth:`Kernel.on_device` raise."""
    host, _ = to_host(w, "w")
    key = (workload, config, output, gpu.ordinal, gpu.arch, host.dtype, host.shape, _requant_key(requant))
    weights = host.tobytes()
    for place, kept in enumerate(_layers):
        if kept.key == key and kept.weights == weights:
            _layers.append(_layers.pop(place))
            return kept.layer
    kernel = _kernel(workload, gpu, config, output)
    fitting = kernel.for_requantization(requant)
    if fitting.fusion.sums or ends_of(fitting, fitting).pack is None:
        return None
    layer = kernel.on_device(host, requant, f"cuda:{gpu.ordinal}")
    _layers.append(_Resident(key, weights, layer))
    del _layers[:-KEPT]
    return layer


def _kernel(workload: ConvWorkload, gpu: GpuInfo, config: Configuration | None, output: str) -> Kernel:
    key = (workload, gpu.arch, gpu.name, config, output)
    if key not in _kernels:
        asked = None if output == workload.precision.output.name else output
        _kernels[key] = (compile_kernel(workload, gpu.arch, output=asked) if config is None
                         else build(workload, config, gpu.arch, output=output))  # fmt: skip
    return _kernels[key]


@cache
def _gpus() -> tuple[GpuInfo, ...]:
    """Queried once: each query makes dozens of driver calls."""
    return tuple(detect())


def _requant_key(requant: Requantization | Thresholds | None) -> tuple[object, ...]:
    if requant is None:
        return ()
    values = (getattr(requant, one.name) for one in fields(requant))
    return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)

"""Built kernels and their operands to layers on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import Unsupported
from subbyte.gpu.arrays import to_host
from subbyte.kernel.convert import convertible, packing, unpacking
from subbyte.kernel.device_layer import DeviceLayer, Ends, Link
from subbyte.kernel.operands import check_channels
from subbyte.kernel.place import place_for
from subbyte.numerics import Requantization, Thresholds, check_values
from subbyte.workload.coverage import BYTE_WEIGHTS
from subbyte.workload.precision import SUMS, Precision

if TYPE_CHECKING:
    from subbyte.kernel.chain import Chain
    from subbyte.kernel.kernel import Kernel
    from subbyte.kernel.pool import PoolKernel


def on_device(kernel: Kernel, w: object, requant: Requantization | Thresholds | None, device: str) -> DeviceLayer:
    """See :meth:`Kernel.on_device`."""
    if kernel.fusion.sums or kernel.fusion.added is not None:
        raise Unsupported(f"output {kernel.output}: it reads or keeps what other layers have; use Chain(...).on_device")
    host, _ = to_host(w, "w")
    wl = kernel.workload
    check_values(host, "w", wl.precision.weights, (wl.k, wl.r, wl.s, wl.c))
    if requant is not None:
        check_channels(requant, wl)
    fitting = kernel.for_requantization(requant)
    return placed([fitting], [Link(fitting, fitting.constants(host, requant))], device)


def held(kernel: Any, w: NDArray[np.int8] | None, requant: Requantization | Thresholds | None) -> dict[str, Any]:
    """The resident words of a layer in a chain; none for a pooling layer."""
    return {} if w is None else kernel.constants(w, requant)


def chain_links(chain: Chain) -> list[Link]:
    """The layers of a chain."""
    return [Link(kernel, held(kernel, w, requant), residual)
            for kernel, (w, requant, residual) in zip(chain.kernels, chain.operands, strict=True)]  # fmt: skip


def placed(kernels: Sequence[Kernel | PoolKernel], links: Sequence[Link], device: str) -> DeviceLayer:
    """Place layers on a device. Raises InvalidInput, MissingDependency."""
    return DeviceLayer(links, place_for(device, kernels[0].arch), ends_of(kernels[0], kernels[-1]))


def ends_of(first: Kernel | PoolKernel, last: Kernel | PoolKernel) -> Ends:
    """The input of the first kernel and the output of the last, with the conversions at both ends."""
    into, out = first.workload, last.workload
    pool = last.fusion.pool
    takes, returns = (into.n, into.h, into.w, into.c), (out.n, out.p // pool, out.q // pool, out.k)
    given, made = into.precision.activations.dense, out.precision.output.dense
    gives, accepts = SUMS if last.output == SUMS else made.dtype, given.dtype
    try:
        pack = packing(first.argument("A").form, takes, first.arch, accepts, operand=given)
        unpack = unpacking(last.argument("Out").form, returns, last.arch, gives, made)
    except Unsupported as error:
        return Ends(takes, returns, gives, None, None, str(error))
    return Ends(takes, returns, gives, pack, unpack, pack_alignment=pack.plan.alignment, accepts=accepts)


def converted(types: Precision) -> bool:
    """Whether kernels multiply a layer's codes as whole integers, so that the device converts values of its types."""
    return types.weights in BYTE_WEIGHTS and convertible(types.activations) and convertible(types.output)

"""A convolution with the user's own weights, in one call."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

from subbyte.arguments import checked, is_whole
from subbyte.errors import BuildFailed, InvalidInput, Unsupported, shown
from subbyte.kernel.default import own_default
from subbyte.kernel.execute import device_arch
from subbyte.kernel.kernel import Kernel, build
from subbyte.kernel.placed import converted
from subbyte.kernel.resident import gpu_of, resident_layer
from subbyte.numerics import Requantization, Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.workload import INT4, ConvWorkload, Precision
from subbyte.workload.precision import EXAMPLE, SUMS


@checked
def conv2d(
    x: Any,
    w: Any,
    requant: Requantization | Thresholds | None = None,
    *,
    pad: Any = 0,
    stride: int = 1,
    dilation: int = 1,
    device: str = "auto",
    arch: str | None = None,
    config: Configuration | None = None,
    precision: Precision | str = INT4,
) -> Any:
    """Convolve int4 values: ``x`` int8 [N,H,W,C] with ``w`` int8 [K,R,S,C], both -8..7.

    With ``requant`` the result is int4 values, int8 [N,P,Q,K]; without, the raw int32 sums. Takes numpy, torch, CuPy
    and JAX arrays and returns an array of x's library.

    An ``x`` on a GPU stays there: it is packed, convolved and unpacked on the library's current stream, without
    synchronization, by the kernel that :func:`subbyte.compile` takes (the fastest of all families). Its values are not
    checked: those out of range are clipped. New weights are first copied to the host, checked, packed and placed on the
    GPU; those of the last 32 layers stay there. Every call compares the weights with those; weights on a GPU are copied
    to the host for this, which synchronizes. :meth:`Kernel.on_device` places weights once, and its calls do not look at
    them.

    The same holds for uint4 values (``precision="w4a4:signed.unsigned"``), for 8-bit ones (``"w8a8:signed.unsigned"``,
    uint8, and ``"w8a8:signed.signed"``, int8) and for those with a zero point (``"w8a8:signed.offset-z37"``: codes
    minus 37, int16). Any other ``x``, and values of other types, go through :meth:`Kernel.run`, which checks every
    value, on ``device``: ``auto``, ``cuda:0`` or ``emulator`` (an x on a GPU is copied to the host for it). ``arch``
    defaults to that of the GPU used (``sm_90a`` on the CPU), ``config`` to the user's own find on this GPU, of any
    family, else the best known one. ``precision``, such as ``"w1a2"``, selects other operand types. Kernels are built
    once and cached. Grouped convolutions and asymmetric padding are rejected with a message that shows how to compute
    them exactly. Kernels on bit planes also accept :class:`~subbyte.numerics.Thresholds`. Raises InvalidInput for wrong
    shapes, dtypes or values, Unsupported with the reason when no kernel covers the convolution.
    """
    types = Precision.of(precision)
    if isinstance(requant, Thresholds) and types == INT4:
        raise InvalidInput("requant is Thresholds, which are for low-bit values: pass precision=, such as "
                           f"{EXAMPLE}; int4 takes a Requantization")  # fmt: skip
    for name, array in (("x", x), ("w", w)):
        if len(getattr(array, "shape", ())) != 4:
            raise InvalidInput(f"{name} has shape {tuple(getattr(array, 'shape', ()))}: expected four dimensions, "
                               f"{'[N,H,W,C]' if name == 'x' else '[K,R,S,C]'}")  # fmt: skip
    n, h, width, c = (int(size) for size in x.shape)
    k, r, s, depth = (int(size) for size in w.shape)
    if depth != c:
        groups = c // depth
        said = "w is [K,R,S,C], with as many channels as x [N,H,W,C]"
        if depth * groups == c and k % groups == 0:  # the shape of a grouped or depthwise layer
            said = (
                f"for {groups} groups convolve x[..., {depth}*g:{depth}*(g+1)] with w[{k // groups}*g:"
                f"{k // groups}*(g+1)] for each g and join the results along the channels, which is exact"
            )
        raise InvalidInput(f"w has {depth} input channels, x has {c}: {said}")
    if not is_whole(pad):
        raise InvalidInput(
            f"pad={shown(pad)}: expected one integer for all four sides; where they differ, put zeros around x first "
            "(numpy.pad, torch.nn.functional.pad) and take pad=0, which is exact"
        )
    pad = int(pad)
    workload = ConvWorkload(n, h, width, c, k, r, s, pad, stride, dilation, precision=types)
    output = SUMS if requant is None else types.output.name
    resident = gpu_of(x, device, arch) if converted(types) else None
    if resident is not None:
        layer = resident_layer(workload, w, requant, resident, config, output)
        if layer is not None:
            return layer(x)
    target = device_arch(device) if arch is None else arch
    own = own_default(workload, target, output, every=True) if config is None else None
    kernel = _built(workload, config, own[0] if own else None, target, output)
    return kernel.run(x, w, requant, device)


@lru_cache(maxsize=256)
def _built(
    workload: ConvWorkload, config: Configuration | None, own: Configuration | None, arch: str, output: str
) -> Kernel:
    """The kernel for a configuration: the caller's, else the user's own find, else the default one."""
    if own is not None:
        with suppress(BuildFailed, Unsupported):  # the find was measured with another output
            return build(workload, own, arch, output=output)
    return build(workload, config, arch, output=output)

"""Running a built kernel, on a GPU of this machine or as CUDA text on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import whole
from subbyte.errors import InvalidInput, MissingDependency, shown
from subbyte.kernel import operands
from subbyte.numerals import natural
from subbyte.numerics import (
    LayerResult,
    Requantization,
    Thresholds,
    random_output,
    random_values,
    reference,
)
from subbyte.numerics.fusion import NOTHING
from subbyte.numerics.reference import accumulator_bound
from subbyte.numerics.requant import with_residual
from subbyte.numerics.residual import LARGEST, NARROW
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.emulator import EmulatorRun
    from subbyte.gpu.check import CheckReport
    from subbyte.gpu.timing import Timing, TimingProtocol
    from subbyte.kernel.kernel import Kernel
    from subbyte.kernel.place import Program

EMULATOR = "emulator"


def resolve_device(device: str, arch: str) -> str:
    """Resolve a device name to ``emulator`` or ``cuda:N``: ``auto`` takes the first GPU of architecture ``arch``.

    Raises InvalidInput for another text, MissingDependency for a GPU that does not exist or has another architecture.
    """
    from subbyte.gpu.driver import detect

    if not isinstance(device, str):
        raise InvalidInput(f"device {shown(device)}: allowed: auto, cuda:0 (or another number), emulator")
    if device == EMULATOR:
        return EMULATOR
    if device == "auto":
        try:
            fitting = [gpu for gpu in detect() if gpu.arch == arch]
        except MissingDependency:
            fitting = []
        return f"cuda:{fitting[0].ordinal}" if fitting else EMULATOR
    kind, _, number = device.partition(":")
    ordinal = natural(number or "0")
    if kind != "cuda" or ordinal is None:
        raise InvalidInput(f"device {shown(device)}: allowed: auto, cuda:0 (or another number), emulator")
    gpus = {gpu.ordinal: gpu for gpu in detect()}
    if ordinal not in gpus:
        raise MissingDependency(f"there is no GPU {ordinal} here; found: {', '.join(map(str, gpus)) or 'none'}")
    if gpus[ordinal].arch != arch:
        raise MissingDependency(
            f"GPU {ordinal} ({gpus[ordinal].name}) is {gpus[ordinal].arch}, the kernel is built for {arch}; "
            f"build it with arch={gpus[ordinal].arch!r}"
        )
    return f"cuda:{ordinal}"


def resolve_devices(device: str, arch: str) -> tuple[str, ...]:
    """The distinct devices of a list such as ``cuda:0,cuda:1``. Any other text is resolved by
    :func:`resolve_device`. Raises what that raises, and InvalidInput."""
    if "," not in str(device):
        return (resolve_device(device, arch),)
    names = [one.strip() for one in device.split(",")]
    if any(not one.startswith("cuda") for one in names):
        raise InvalidInput(f"device {shown(device)}: several devices must be GPUs, such as cuda:0,cuda:1")
    found = tuple(resolve_device(one, arch) for one in names)
    if len(set(found)) < len(found):
        raise InvalidInput(f"device {shown(device)} names a GPU twice: expected each once, such as cuda:0,cuda:1")
    return found


def device_arch(device: str) -> str:
    """Architecture to build for: that of the first GPU in ``device`` (``auto``: the first one with a kernel);
    ``sm_90a`` if the CPU runs the kernel."""
    from subbyte.device.arch import ARCHS
    from subbyte.gpu.driver import detect

    if device != EMULATOR:
        try:
            known = [gpu for gpu in detect() if gpu.arch in ARCHS]
        except MissingDependency:
            known = []
        number = device.partition(",")[0].partition(":")[2]
        for gpu in known:
            if not number or str(gpu.ordinal) == number:
                return str(gpu.arch)
    return "sm_90a"


def run(kernel: Kernel, x: Any, w: Any, requant: Requantization | Thresholds | None, device: str) -> Any:
    """See :meth:`Kernel.run`; ``kernel`` already fits ``requant``."""
    from subbyte.gpu.arrays import to_host

    types = kernel.workload.precision
    host_x, origin = to_host(operands.as_values(x, types.activations, "x"), "x")
    host_w, _ = to_host(operands.as_values(w, types.weights, "w"), "w")
    buffers = kernel.pack(host_x, host_w, requant)
    words = run_words(kernel, buffers, resolve_device(device, kernel.arch))
    return origin.give_back(kernel.unpack(words))


def run_layer(
    kernel: Kernel, x: Any, w: Any, requant: Requantization | Thresholds, residual: Any, device: str
) -> LayerResult:
    """See :meth:`Kernel.run_layer`; ``kernel`` already fits ``requant``."""
    from subbyte.gpu.arrays import to_host

    types = kernel.workload.precision
    host_x, origin = to_host(operands.as_values(x, types.activations, "x"), "x")
    host_w, _ = to_host(operands.as_values(w, types.weights, "w"), "w")
    added = None if residual is None else to_host(residual, "residual")[0]
    outputs = run_outputs(kernel, kernel.pack(host_x, host_w, requant, added), resolve_device(device, kernel.arch))
    sums = operands.kept_sums(outputs["Sum"], kernel.workload, kernel.fusion) if kernel.fusion.keep else None
    return LayerResult(origin.give_back(kernel.unpack(outputs["Out"])), sums)


def run_words(kernel: Kernel, buffers: dict[str, NDArray[Any]], device: str) -> NDArray[Any]:
    """Output words for packed input buffers on a resolved device."""
    return run_outputs(kernel, buffers, device)["Out"]


def run_outputs(kernel: Program, buffers: dict[str, NDArray[Any]], device: str) -> dict[str, NDArray[Any]]:
    """The words of all outputs, by argument name."""
    if device == EMULATOR:
        from subbyte.emulator import run_cuda

        made = {one.name: np.empty(one.shape, one.dtype) for one in kernel.launch.arguments if one.role == "out"}
        run_cuda(kernel.cuda, kernel.launch, {**buffers, **made}, check=False)
        return made
    from subbyte.gpu.device import open_device
    from subbyte.gpu.launched import GpuKernel

    on = open_device(int(device.partition(":")[2]))
    with on.unmoved(), GpuKernel(kernel.cubin, kernel.launch, on) as gpu:
        return dict(gpu.run(buffers))


def random_operands(
    kernel: Kernel, seed: int
) -> tuple[NDArray[np.int8], NDArray[np.int8], Requantization | Thresholds | None]:
    """Operands over the full range of their types, and a requantization that makes the output use its full range."""
    w = kernel.workload
    rng = np.random.default_rng(whole(seed, "seed"))
    x = random_values(w.precision.activations, (w.n, w.h, w.w, w.c), rng)
    weights = random_values(w.precision.weights, (w.k, w.r, w.s, w.c), rng)
    requant = random_output(w, rng) if kernel.output != SUMS else None
    if kernel.fusion.added is not None and isinstance(requant, Requantization):
        requant = with_residual(requant, kernel.fusion.added, rng)
    return x, weights, requant


def random_residual(kernel: Kernel, seed: int) -> NDArray[Any] | None:
    """A residual for the kernel to add: values of a type [N,P,Q,K], or sums of an earlier layer, int32
    [N,P*by,Q*by,channels], over the full range that their bits allow; None if the kernel adds none."""
    w, fused = kernel.workload, kernel.fusion
    if fused.added is not None:
        rng = np.random.default_rng([whole(seed, "seed"), 1])
        return random_values(fused.added, (w.n, w.p, w.q, w.k), rng)
    if not fused.residual:
        return None
    most = LARGEST[fused.residual_bits]
    if fused.keep or fused.residual_bits == NARROW:
        most = min(most, max(0, LARGEST[fused.keep_bits] - accumulator_bound(w)))
    shape = (w.n, w.p * fused.residual_pool, w.q * fused.residual_pool, fused.residual)
    return np.random.default_rng(whole(seed, "seed")).integers(-most, most + 1, shape, np.int32)


def expected(
    kernel: Kernel, x: NDArray[np.int8], w: NDArray[np.int8], requant: Requantization | Thresholds | None,
    residual: NDArray[np.int32] | None = None,
) -> NDArray[Any]:  # fmt: skip
    """The correct result, from the independent reference: values of the output type or int32 [N,P,Q,K]."""
    return expected_layer(kernel, x, w, requant, residual).values


def expected_layer(
    kernel: Kernel, x: NDArray[np.int8], w: NDArray[np.int8], requant: Requantization | Thresholds | None,
    residual: NDArray[np.int32] | None = None,
) -> LayerResult:  # fmt: skip
    """The same, with the sums if the kernel keeps them."""
    fused = kernel.fusion
    if isinstance(requant, Requantization) and fused.added is not None:
        sums = reference(kernel.workload, x, w)
        return LayerResult(requant.apply(sums, residual), sums)
    if requant is not None and fused != NOTHING:
        return fused.reference(kernel.workload, x, w, Thresholds.of(requant), residual)
    sums = reference(kernel.workload, x, w)
    return LayerResult(sums if requant is None else requant.apply(sums), sums)


def compared(kernel: Kernel, outputs: Mapping[str, NDArray[Any]], wanted: LayerResult) -> CheckReport:
    """Compare every element of a kernel's output words and, if these are right, of the sums it keeps."""
    from subbyte.gpu.check import compare

    report = compare(kernel.unpack(outputs["Out"]), wanted.values)
    if report.ok and "Sum" in outputs and wanted.sums is not None:
        return compare(operands.kept_sums(outputs["Sum"], kernel.workload, kernel.fusion), wanted.sums)
    return report


def time(kernel: Kernel, protocol: TimingProtocol | None, device: str, seed: int) -> Timing:
    """See :meth:`Kernel.time`."""
    from subbyte.gpu.device import open_device
    from subbyte.gpu.launched import GpuKernel

    place = resolve_device("cuda:0" if device == "auto" else device, kernel.arch)
    if place == EMULATOR:
        raise InvalidInput("the emulator has no meaningful times; use device='cuda:0', or a recorded landscape")
    x, w, requant = random_operands(kernel, seed)
    fitting = kernel.for_requantization(requant)
    on = open_device(int(place.partition(":")[2]))
    with on.unmoved(), GpuKernel(fitting.cubin, fitting.launch, on) as gpu:
        residual = random_residual(fitting, seed)
        outputs = gpu.run(fitting.pack(x, w, requant, residual))
        compared(fitting, outputs, expected_layer(fitting, x, w, requant, residual)).require()
        return gpu.time(protocol)


def trace(kernel: Kernel, blocks: tuple[int, ...], seed: int) -> EmulatorRun:
    """See :meth:`Kernel.trace`."""
    from subbyte.emulator import run_cuda

    x, w, requant = random_operands(kernel, seed)
    fitting = kernel.for_requantization(requant)
    outputs = {one.name: np.zeros(one.shape, one.dtype) for one in fitting.launch.arguments if one.role == "out"}
    buffers = {**fitting.pack(x, w, requant, random_residual(fitting, seed)), **outputs}
    return run_cuda(fitting.cuda, fitting.launch, buffers, seed=seed, trace=True, blocks=blocks)

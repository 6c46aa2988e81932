"""CUTLASS's int8 convolutions (``cutlass/``) in this process: every instance of the driver, the fastest counts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from subbyte.errors import MissingDependency, WrongResult
from subbyte.gpu.timing import TimingProtocol, time_launch
from subbyte.measure.baselines import BaselineResult, PlanCounts, TorchDevice, operands
from subbyte.measure.case import Case
from subbyte.measure.cudnn_graph import KEPT, SCALE, GraphForm, check_graph
from subbyte.workload import ConvWorkload

FORM = GraphForm("int8", "int8", scaled=True)
SIDE = "CUTLASS int8 to int8"
BUILD = "build it with benchmarks/shared/cutlass.sh benchmarks/baselines/cutlass"
PREFIXES = ("baseline", "opponent")
"""What the functions of the library begin with; the second in those that were built before it was called so."""


class Driver:
    """The driver's shared library. Raises MissingDependency when it cannot be loaded."""

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise MissingDependency(f"{path}: {error}; {BUILD}") from None
        prefix = next((word for word in PREFIXES if hasattr(library, f"{word}_count")), None)
        if prefix is None:
            raise MissingDependency(f"{path}: no library of CUTLASS's instances; {BUILD}")
        name, self._open, self._launch, self._close, count = (
            getattr(library, f"{prefix}_{what}") for what in ("name", "open", "launch", "close", "count")
        )
        pointer = ctypes.c_void_p
        name.restype = ctypes.c_char_p
        self._open.restype = pointer
        self._open.argtypes = [
            ctypes.c_int, ctypes.POINTER(ctypes.c_int), pointer, pointer, pointer, ctypes.c_float,
        ]  # fmt: skip
        self._launch.argtypes = [pointer, pointer]
        self._close.argtypes = [pointer]
        self.names = [name(i).decode() for i in range(count())]

    def open(self, index: int, sizes: list[int], pointers: tuple[int, int, int], scale: float) -> int | None:
        """An instance made ready for a convolution, None when it does not take it."""
        held: int | None = self._open(index, (ctypes.c_int * 10)(*sizes), *pointers, scale)
        return held

    def launch(self, held: int, stream: int) -> None:
        """Enqueue it. Raises RuntimeError when CUTLASS refuses."""
        if self._launch(held, stream):
            raise RuntimeError("CUTLASS could not launch")

    def close(self, held: int) -> None:
        """Free it."""
        self._close(held)


def sizes_of(wl: ConvWorkload, channels: int) -> list[int]:
    """The ten numbers that the driver takes."""
    return [wl.n, wl.h, wl.w, channels, wl.k, wl.r, wl.s, wl.pad, wl.stride, wl.dilation]


def through_cutlass(
    case: Case, device: TorchDevice, driver: Driver, protocol: TimingProtocol, only: Collection[str] = ()
) -> BaselineResult:
    """The fastest right instance. Raises WrongResult when none ran and was right."""
    torch, where, wl = device.torch, f"cuda:{device.info.ordinal}", case.workload
    x, w = operands(case, torch.int8, where, FORM.multiple)
    y = torch.empty((wl.n, wl.k, wl.p, wl.q), dtype=torch.int8, device=where, memory_format=torch.channels_last)
    sizes, pointers = sizes_of(wl, int(x.shape[1])), (x.data_ptr(), w.data_ptr(), y.data_ptr())
    quick = replace(protocol, launches=5, min_total_ms=1.0, repeats=3, warmup_ms=0.5, cold=False)
    ranking: list[tuple[float, str, float, Callable[[], None]]] = []
    failures, opened = [], []
    for index, name in enumerate(driver.names):
        if only and name not in only:
            continue
        try:
            held = driver.open(index, sizes, pointers, SCALE)
            if held is None:
                raise RuntimeError("does not take this convolution")
            opened.append(held)
            launch = launcher(driver, held, torch)
            with device.turn:
                y.fill_(77)
                launch()
                device.synchronize()
                error = check_graph(y.permute(0, 2, 3, 1).double(), device.exact(case), FORM)
                ranking.append((time_launch(device, launch, quick).microseconds, name, error, launch))
        except Exception as problem:  # an instance that fails is left out; its reason counts when none is left
            failures.append(f"{name}: {str(problem)[:100]}")
    try:
        if not ranking:
            raise WrongResult(f"{SIDE}: no instance ran and was right; " + "; ".join(failures[:3]))
        ranking.sort(key=lambda entry: entry[0])
        with device.turn:
            timed = [(time_launch(device, entry[3], protocol), entry) for entry in ranking[:2]]
        timing, (_, name, error, _) = min(timed, key=lambda pair: pair[0].microseconds)
    finally:
        device.synchronize()
        for held in opened:
            driver.close(held)
    plan = name + (f", channels padded to {x.shape[1]}" if x.shape[1] != wl.c else "")
    order = tuple((name, us) for us, name, _, _ in ranking[:KEPT])
    tried = len(ranking) + len(failures)
    counts = PlanCounts(len(driver.names), len(set(driver.names)), tried, len(failures))
    return BaselineResult(SIDE, FORM.output, FORM.epilogue, plan, len(ranking), error, timing, order, counts)


def launcher(driver: Driver, held: int, torch: Any) -> Callable[[], None]:
    """What enqueues an open instance on PyTorch's current stream."""

    def launch() -> None:
        driver.launch(held, torch.cuda.current_stream().cuda_stream)

    return launch

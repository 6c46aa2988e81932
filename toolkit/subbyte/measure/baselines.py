"""cuDNN on the same workload, timed the same way: what a user gets without this toolkit.

This module uses PyTorch (channels-last, ``torch.backends.cudnn.benchmark``); :mod:`subbyte.measure.cudnn_graph` uses
cuDNN's graph API. The operands are the int4 values of the case, so the answers can be compared with the exact
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from subbyte.errors import MissingDependency, WrongResult
from subbyte.gpu.driver import GpuInfo
from subbyte.gpu.timing import Timing, TimingProtocol, time_launch
from subbyte.measure.case import Case

TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 5e-2}
"""Largest accepted ``norm(y - exact) / norm(exact)``: the rounding error of an output stored in that type."""


@dataclass(frozen=True)
class PlanCounts:
    """What a search among the plans of a library did: ``offered`` plans with ``distinct`` names; of these ``tried``
    (built, run, compared), of which ``failed``; ``cut`` were not reached within the time limit. The rest was not
    requested."""

    offered: int
    distinct: int
    tried: int
    failed: int
    cut: int = 0

    def to_dict(self) -> dict[str, int]:
        """Plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class BaselineResult:
    """One way to run the convolution in cuDNN. ``error`` is relative (0.0 = equal), ``plans`` says how many ran.

    ``ranking`` holds the fastest plans with their quick times in microseconds, if several were tried; ``counts`` what
    the search knows about the number of plans, None if the library chooses by itself.
    """

    side: str
    output: str
    epilogue: str
    plan: str
    plans: int
    error: float
    timing: Timing
    ranking: tuple[tuple[str, float], ...] = ()
    counts: PlanCounts | None = None


class TorchDevice:
    """The parts of a :class:`~subbyte.gpu.device.CudaDevice` that timing needs, on PyTorch's streams and graphs.

    ``turn`` is held while something runs on the GPU: a lock, if several processes share it.
    """

    def __init__(self, info: GpuInfo) -> None:
        self.torch = load_torch()
        self.info = info
        self.spun_up = False
        self.turn: AbstractContextManager[Any] = nullcontext()
        self._flush: Any = None
        self._where = f"cuda:{info.ordinal}"
        self._exact: tuple[Case, Any] | None = None

    def exact(self, case: Case) -> Any:
        """The exact sums of the case as float64 [N,P,Q,K] on the device; those of the latest case are kept."""
        if self._exact is None or self._exact[0] is not case:
            self._exact = None
            self._exact = (case, self.torch.from_numpy(case.accumulators).to(self._where).double())
        return self._exact[1]

    def activate(self) -> None:
        """Make the device current."""
        self.torch.cuda.set_device(self._where)

    def synchronize(self, timeout_s: float = 0.0) -> None:
        """Wait for the device (PyTorch offers no limit)."""
        self.torch.cuda.synchronize(self._where)

    def flush_buffer(self) -> Any:
        """A buffer of more than twice the L2."""
        if self._flush is None:
            size = max(2 * self.info.l2_bytes + (8 << 20), 32 << 20)
            self._flush = self.torch.empty(size // 4, dtype=self.torch.int32, device=self._where)
        return self._flush

    def flush_l2(self) -> None:
        """Enqueue overwriting the buffer."""
        self.flush_buffer().zero_()

    @contextmanager
    def graph(self, record: Callable[[], None]) -> Iterator[Callable[[], None]]:
        """Capture what ``record`` enqueues; yields a function that replays it."""
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            record()
        yield graph.replay
        self.synchronize()
        graph.reset()

    def elapsed_us(self, work: Callable[[], None], timeout_s: float = 0.0) -> float:
        """Time in microseconds that the device needs for what ``work`` enqueues."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        self.synchronize()
        return 1000.0 * float(start.elapsed_time(stop))


def load_torch() -> Any:
    """PyTorch with a usable GPU. Raises MissingDependency."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingDependency(
            "cuDNN is measured through PyTorch, which is not installed: pip install torch"
        ) from None
    if not torch.cuda.is_available():
        raise MissingDependency("PyTorch sees no GPU: install a build for CUDA that fits the driver")
    return torch


def load_frontend() -> Any:
    """cuDNN's graph API. Raises MissingDependency with the reason why it cannot be used."""
    try:
        import cudnn  # type: ignore[import-not-found,unused-ignore]

        cudnn.backend_version()
    except Exception as error:  # it loads shared libraries, which fail with many exception classes
        raise MissingDependency(
            f"cuDNN's graph API cannot be used ({str(error)[:200]}): pip install nvidia-cudnn-frontend"
        ) from None
    return cudnn


def versions() -> dict[str, str]:
    """Versions of PyTorch, cuDNN and its frontend, as far as they are installed."""
    torch = load_torch()
    found = {"torch": str(torch.__version__), "cudnn": str(torch.backends.cudnn.version())}
    try:
        frontend = load_frontend()
    except MissingDependency:
        return found
    return {**found, "cudnn-frontend": str(frontend.__version__), "cudnn (graph API)": str(frontend.backend_version())}


def operands(case: Case, dtype: Any, where: str, multiple: int = 1) -> tuple[Any, Any]:
    """x [N,C,H,W] and w [K,C,R,S] of the case on the device, channels last; C is zero-padded to a multiple."""
    torch = load_torch()
    missing = -case.workload.c % multiple
    padded = (np.pad(a, ((0, 0), (0, 0), (0, 0), (0, missing))) if missing else a for a in (case.x, case.w))
    # An NHWC array viewed as NCHW is channels-last already. Float8 is made from float16: not every version converts
    # int8.
    moved = (torch.from_numpy(np.ascontiguousarray(a)).to(where) for a in padded)
    if "float8" in str(dtype):
        moved = (a.to(torch.float16) for a in moved)
    x, w = (a.to(dtype).permute(0, 3, 1, 2) for a in moved)
    return x, w


def through_torch(case: Case, device: TorchDevice, dtype: str, protocol: TimingProtocol) -> BaselineResult:
    """``conv2d`` in ``float16`` or ``bfloat16``. Raises WrongResult when the result is off, and PyTorch's
    RuntimeError."""
    torch = device.torch
    torch.backends.cudnn.benchmark = True
    wl = case.workload
    x, w = operands(case, getattr(torch, dtype), f"cuda:{device.info.ordinal}")

    def launch() -> Any:
        return torch.nn.functional.conv2d(x, w, padding=wl.pad, stride=wl.stride, dilation=wl.dilation)

    with torch.no_grad(), device.turn:
        error = relative_error(launch().permute(0, 2, 3, 1).double(), device.exact(case), dtype)
        timing = time_launch(device, launch, protocol)
    epilogue = f"none; {dtype} stored"
    return BaselineResult(f"cuDNN {dtype}, PyTorch", dtype, epilogue, "chosen by PyTorch", 1, error, timing)


def relative_error(got: Any, wanted: Any, dtype: str, tolerance: float = 0.0) -> float:
    """``norm(got - wanted) / norm(wanted)`` of two float64 arrays. Raises WrongResult beyond the type's tolerance."""
    error = float(((got - wanted) ** 2).sum() / (wanted**2).sum()) ** 0.5
    allowed = max(tolerance, TOLERANCE[dtype])
    if not error <= allowed:  # also rejects NaN
        raise WrongResult(f"relative error {error:.2g} of {dtype}: more than {allowed:.0e}")
    return error

"""cuDNN on the same workload, timed the same way: what a user gets without this toolkit.

Through PyTorch (channels-last, ``torch.backends.cudnn.benchmark``), and, where the package ``nvidia-cudnn-frontend``
is installed, through cuDNN's graph API with every plan its heuristics offer, of which the fastest counts. The operands
are the int4 values of the case, so the answers can be compared with the exact reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subbyte.errors import MissingDependency, WrongResult
from subbyte.measure.case import Case
from subbyte.measure.driver import GpuInfo
from subbyte.measure.timing import Timing, TimingProtocol, time_launch

TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3}
"""Largest accepted ``norm(y - exact) / norm(exact)``: the rounding of the output, which is stored in that type."""


@dataclass(frozen=True)
class BaselineResult:
    """One way to run the convolution in cuDNN. ``error`` is relative (0.0 = equal), ``plans`` says how many ran."""

    side: str
    output: str
    epilogue: str
    plan: str
    plans: int
    error: float
    timing: Timing


class TorchDevice:
    """The parts of a :class:`~subbyte.measure.device.CudaDevice` that timing needs, on PyTorch's streams and graphs."""

    def __init__(self, info: GpuInfo) -> None:
        self.torch = load_torch()
        self.info = info
        self.spun_up = False
        self._flush: Any = None
        self._where = f"cuda:{info.ordinal}"

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
        """Enqueue the overwriting of the buffer."""
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
        """Microseconds the device needs for what ``work`` enqueues."""
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
    """cuDNN's graph API. Raises MissingDependency naming why it cannot be used."""
    try:
        import cudnn  # type: ignore[import-not-found,unused-ignore]

        cudnn.backend_version()
    except Exception as error:  # it loads shared libraries, whose failures come in many classes
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


def operands(case: Case, dtype: Any, where: str) -> tuple[Any, Any]:
    """x [N,C,H,W] and w [K,C,R,S] of the case on the device, channels last."""
    torch = load_torch()
    # An NHWC array seen as NCHW is channels-last already.
    pair = (torch.from_numpy(np.ascontiguousarray(a)).to(where).to(dtype).permute(0, 3, 1, 2) for a in (case.x, case.w))
    x, w = pair
    return x, w


def through_torch(case: Case, device: TorchDevice, dtype: str, protocol: TimingProtocol) -> BaselineResult:
    """``conv2d`` in ``float16`` or ``bfloat16``. Raises WrongResult when the answer is off, RuntimeError of PyTorch."""
    torch = device.torch
    torch.backends.cudnn.benchmark = True
    wl = case.workload
    x, w = operands(case, getattr(torch, dtype), f"cuda:{device.info.ordinal}")

    def launch() -> Any:
        return torch.nn.functional.conv2d(x, w, padding=wl.pad, stride=wl.stride, dilation=wl.dilation)

    with torch.no_grad():
        error = _relative_error(launch(), case, dtype)
        timing = time_launch(device, launch, protocol)
    epilogue = f"none; {dtype} stored"
    return BaselineResult(f"cuDNN {dtype}, PyTorch", dtype, epilogue, "chosen by PyTorch", 1, error, timing)


@dataclass(frozen=True)
class GraphForm:
    """Types of one cuDNN graph: operands, output, and whether the output is scaled on the way."""

    operand: str
    output: str
    scaled: bool = False

    @property
    def side(self) -> str:
        """Name of the row."""
        return f"cuDNN {self.operand} to {self.output}, graph API"

    @property
    def epilogue(self) -> str:
        """What happens to the accumulator."""
        return f"scaled by one float, {self.output} stored" if self.scaled else f"none; {self.output} stored"


FORMS = (
    GraphForm("float16", "float16"),
    GraphForm("bfloat16", "bfloat16"),
    GraphForm("int8", "int32"),
    GraphForm("int8", "int8", scaled=True),
)
_NAMES = {"float16": "HALF", "bfloat16": "BFLOAT16", "int8": "INT8", "int32": "INT32", "float32": "FLOAT"}
_SCALE = 1.0 / 64


def through_graph(
    case: Case, device: TorchDevice, form: GraphForm, protocol: TimingProtocol, limit_s: float = 40.0
) -> BaselineResult:
    """The fastest right plan of heuristics A, B and FALLBACK within ``limit_s`` seconds of building and timing.

    Raises MissingDependency without the frontend, WrongResult when every plan that ran was wrong, the frontend's
    exception when it supports no plan.
    """
    frontend = load_frontend()
    handle = frontend.create_handle()
    try:
        return _fastest_plan(frontend, handle, case, device, form, protocol, limit_s)
    finally:
        device.synchronize()
        frontend.destroy_handle(handle)


def _fastest_plan(
    frontend: Any,
    handle: Any,
    case: Case,
    device: TorchDevice,
    form: GraphForm,
    protocol: TimingProtocol,
    limit_s: float,
) -> BaselineResult:
    torch, where = device.torch, f"cuda:{device.info.ordinal}"
    x, w = operands(case, getattr(torch, form.operand), where)
    wl = case.workload
    y = torch.empty((wl.n, wl.k, wl.p, wl.q), dtype=getattr(torch, form.output), device=where)
    y = y.to(memory_format=torch.channels_last)
    graph, tensors = _graph(frontend, handle, wl, form, x, w, y)
    if form.scaled:
        tensors[tensors.pop("scale")] = torch.full((1, 1, 1, 1), _SCALE, dtype=torch.float32, device=where)
    names, failures = [], []
    best: tuple[float, str, float, Callable[[], None]] | None = None
    quick = replace(protocol, min_total_ms=2.0, repeats=3, warmup_ms=1.0, cold=False)
    deadline = time.monotonic() + limit_s
    for index in range(graph.get_execution_plan_count()):
        if time.monotonic() > deadline and best is not None:
            break
        try:
            graph.build_plan_at_index(index)
            name = _plan_name(graph, index)
            launch = _launcher(frontend, graph, handle, tensors, index, torch, where)
            y.fill_(77)
            launch()
            device.synchronize()
            error = _check_graph(y, case, form)
            microseconds = time_launch(device, launch, quick).microseconds
        except Exception as problem:  # a plan that fails is left out; its reason counts when none is left
            failures.append(f"plan {index}: {str(problem)[:150]}")
            continue
        names.append(name)
        if best is None or microseconds < best[0]:
            best = (microseconds, name, error, launch)
    if best is None:
        raise WrongResult(f"{form.side}: no plan ran and was right; " + "; ".join(failures[:3]))
    timing = time_launch(device, best[3], protocol)
    return BaselineResult(form.side, form.output, form.epilogue, best[1], len(names), best[2], timing)


def _graph(frontend: Any, handle: Any, wl: Any, form: GraphForm, x: Any, w: Any, y: Any) -> tuple[Any, dict[Any, Any]]:
    kind = {name: getattr(frontend.data_type, value) for name, value in _NAMES.items()}
    exact = form.operand == "int8"
    inner = kind["int32" if exact else "float32"]
    graph = frontend.pygraph(
        handle=handle,
        io_data_type=kind[form.operand],
        intermediate_data_type=kind["float32"] if form.scaled else inner,
        compute_data_type=inner,
    )
    tensors: dict[Any, Any] = {}
    given = []
    for name, value in (("X", x), ("W", w)):
        dim, stride = list(value.shape), list(value.stride())
        given.append(graph.tensor(name=name, dim=dim, stride=stride, data_type=kind[form.operand]))
        tensors[given[-1]] = value
    out = graph.conv_fprop(
        given[0], given[1],
        pre_padding=[wl.pad] * 2, post_padding=[wl.pad] * 2, stride=[wl.stride] * 2, dilation=[wl.dilation] * 2,
        compute_data_type=inner,
    )  # fmt: skip
    if form.scaled:
        out.set_data_type(kind["int32"])
        scale = graph.tensor(name="S", dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=kind["float32"])
        tensors["scale"] = scale
        out = graph.mul(a=out, b=scale, compute_data_type=kind["float32"])
    out.set_output(True).set_data_type(kind[form.output]).set_dim(list(y.shape)).set_stride(list(y.stride()))
    tensors[out] = y
    graph.validate()
    graph.build_operation_graph()
    modes = frontend.heur_mode
    graph.create_execution_plans([modes.A, modes.B, modes.FALLBACK])
    graph.check_support()
    return graph, tensors


def _launcher(
    frontend: Any, graph: Any, handle: Any, tensors: dict[Any, Any], index: int, torch: Any, where: str
) -> Callable[[], None]:
    workspace = torch.empty(max(1, graph.get_workspace_size_plan_at_index(index)), dtype=torch.uint8, device=where)

    def launch() -> None:
        frontend.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute_plan_at_index(tensors, workspace, index, handle=handle)

    return launch


def _plan_name(graph: Any, index: int) -> str:
    try:
        return str(graph.get_plan_name_at_index(index))
    except Exception:  # older frontends have no names
        return f"plan {index}"


def _check_graph(y: Any, case: Case, form: GraphForm) -> float:
    if form.operand != "int8":
        return _relative_error(y, case, form.output)
    got = y.permute(0, 2, 3, 1).cpu().numpy().astype(np.int64)
    exact = case.accumulators.astype(np.int64)
    if not form.scaled:
        if not np.array_equal(got, exact):
            raise WrongResult(f"{np.count_nonzero(got != exact)} of {exact.size} elements differ from the reference")
        return 0.0
    wanted = np.clip(np.rint(exact * _SCALE), -128, 127)
    if np.abs(got - wanted).max() > 1:  # how ties and fractions round is not documented
        raise WrongResult(f"elements differ from the scaled reference by up to {np.abs(got - wanted).max():.0f}")
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def _relative_error(y: Any, case: Case, dtype: str) -> float:
    got = y.permute(0, 2, 3, 1).float().cpu().numpy().astype(np.float64)
    exact = case.accumulators.astype(np.float64)
    error = float(np.linalg.norm(got - exact) / np.linalg.norm(exact))
    if not error <= TOLERANCE[dtype]:  # also refuses NaN
        raise WrongResult(f"relative error {error:.2g} of {dtype}: more than {TOLERANCE[dtype]:.0e}")
    return error

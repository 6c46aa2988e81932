"""cuDNN's graph API on the same workload: every plan its heuristics offer; the fastest correct one counts.

Needs the package ``nvidia-cudnn-frontend`` and PyTorch, whose memory, streams and graphs it uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from subbyte.errors import WrongResult
from subbyte.gpu.timing import TimingProtocol, time_launch
from subbyte.measure.baselines import (
    BaselineResult,
    PlanCounts,
    TorchDevice,
    load_frontend,
    operands,
    relative_error,
)
from subbyte.measure.case import Case

SCALE = 1.0 / 64
"""Factor on the sums in scaled forms."""
EIGHT_BIT_SUMS = 1e-2
"""Tolerance for sums of float8 products: Hopper's Tensor Cores keep about 14 bits of them."""
KEPT = 8
"""How many plans a result's ranking names."""
SLOW_HOST = 500.0
"""Microseconds that a single launch from Python may take besides the kernel."""


@dataclass(frozen=True)
class GraphForm:
    """Types of one cuDNN graph: operands, output, and whether the output is scaled."""

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

    @property
    def multiple(self) -> int:
        """Input channels are padded to a multiple of this: 16 bytes."""
        return 8 if self.operand in ("float16", "bfloat16") else 16


FORMS = (
    GraphForm("float16", "float16"),
    GraphForm("bfloat16", "bfloat16"),
    GraphForm("int8", "int32"),
    GraphForm("int8", "int8", scaled=True),
    GraphForm("float8_e4m3fn", "float16"),
    GraphForm("float8_e4m3fn", "float8_e4m3fn", scaled=True),
)
_NAMES = {
    "float16": "HALF", "bfloat16": "BFLOAT16", "int8": "INT8", "int32": "INT32", "float32": "FLOAT",
    "float8_e4m3fn": "FP8_E4M3",
}  # fmt: skip


def through_graph(
    case: Case,
    device: TorchDevice,
    form: GraphForm,
    protocol: TimingProtocol,
    limit_s: float = 40.0,
    only: Collection[str] = (),
) -> BaselineResult:
    """The fastest correct plan of heuristics A, B and FALLBACK within ``limit_s`` seconds of building and timing.

    ``only`` names the plans to try, if they are known from an earlier search. Raises MissingDependency without the
    frontend, WrongResult when no plan ran and was right, the frontend's exception when it supports no plan.
    """
    with open_graph(case, device, form) as opened:
        return _fastest_plan(opened, case, device, protocol, limit_s, only)


@contextmanager
def open_graph(case: Case, device: TorchDevice, form: GraphForm) -> Iterator[OpenGraph]:
    """The graph of a form for a case, open for the duration of the ``with`` block. Raises as :func:`through_graph`."""
    frontend = load_frontend()
    handle = frontend.create_handle()
    try:
        yield OpenGraph(frontend, handle, case, device, form)
    finally:
        device.synchronize()
        frontend.destroy_handle(handle)


class OpenGraph:
    """A cuDNN graph on the operands of a case: the plans available, and how each is launched.

    ``x``, ``w``, ``y`` are PyTorch's tensors [N,C,H,W], [K,C,R,S], [N,K,P,Q], channels last; ``names`` are the plans'
    names by index, as the heuristics list them: some occur twice.
    """

    def __init__(self, frontend: Any, handle: Any, case: Case, device: TorchDevice, form: GraphForm) -> None:
        wl = case.workload
        self.device, self.form, self.where = device, form, f"cuda:{device.info.ordinal}"
        self._torch, self._frontend, self._handle = device.torch, frontend, handle
        self.x, self.w = operands(case, getattr(self._torch, form.operand), self.where, form.multiple)
        self.y = self._torch.empty(
            (wl.n, wl.k, wl.p, wl.q), dtype=getattr(self._torch, form.output), device=self.where,
            memory_format=self._torch.channels_last,
        )  # fmt: skip
        self._graph, self._keys = _graph(frontend, handle, wl, form, self.x, self.w, self.y)
        self._scale = self._torch.full((1, 1, 1, 1), SCALE, dtype=self._torch.float32, device=self.where)
        self.names = [_plan_name(self._graph, index) for index in range(self._graph.get_execution_plan_count())]
        self.padding = f", channels padded to {self.x.shape[1]}" if self.x.shape[1] != wl.c else ""

    def build(self, index: int) -> None:
        """Build a plan. Raises the frontend's exception."""
        self._graph.build_plan_at_index(index)

    def launcher(self, index: int, given: tuple[Any, Any, Any] | None = None) -> Callable[[], None]:
        """A function that launches a built plan, on other ``(x, w, y)`` of the same form if given."""
        x, w, y = given or (self.x, self.w, self.y)
        tensors = {self._keys["X"]: x, self._keys["W"]: w, self._keys["Y"]: y}
        if "S" in self._keys:
            tensors[self._keys["S"]] = self._scale
        size = max(1, self._graph.get_workspace_size_plan_at_index(index))
        workspace = self._torch.empty(size, dtype=self._torch.uint8, device=self.where)

        def launch() -> None:
            self._frontend.set_stream(handle=self._handle, stream=self._torch.cuda.current_stream().cuda_stream)
            self._graph.execute_plan_at_index(tensors, workspace, index, handle=self._handle)

        return launch

    def engines(self) -> dict[int, dict[Any, range]]:
        """The engines that can run the graph, and the values that each accepts for its knobs. Raises AttributeError
        with a frontend without engines (before 1.12)."""
        found: dict[int, dict[Any, range]] = {}
        for engine in range(self._graph.get_engine_count()):
            with suppress(Exception):  # cuDNN does not finalize an engine that cannot run the graph
                found[engine] = {
                    knob.type: range(int(knob.min_value), int(knob.max_value) + 1, max(1, int(knob.stride)))
                    for knob in self._graph.get_knobs_for_engine(engine)
                }
        return found

    def add(self, engine: int, knobs: dict[Any, int]) -> int:
        """Build a plan of an engine with chosen knobs; returns its index. Raises the frontend's exception."""
        before = self._graph.get_execution_plan_count()
        self._graph.create_execution_plan(engine, knobs)
        if self._graph.get_execution_plan_count() == before:
            raise WrongResult(f"engine {engine} with {knobs} gave no plan")
        self.build(before)
        return int(before)

    def checked(self, launch: Callable[[], None], case: Case, y: Any = None) -> float:
        """Launch once on a poisoned output and compare it; returns the relative error. Raises WrongResult."""
        y = self.y if y is None else y
        y.fill_(77)
        launch()
        self.device.synchronize()
        return check_graph(_nhwc(y), self.device.exact(case), self.form)


def _fastest_plan(
    opened: OpenGraph, case: Case, device: TorchDevice, protocol: TimingProtocol, limit_s: float, only: Collection[str]
) -> BaselineResult:
    form = opened.form
    failures: list[str] = []
    ranking: list[tuple[float, str, float, Callable[[], None]]] = []
    quick = replace(protocol, launches=5, min_total_ms=1.0, repeats=3, warmup_ms=0.5, cold=False)
    tried: set[str] = set()
    right: set[str] = set()
    spent = 0.0
    for index, name in enumerate(opened.names):
        if spent > limit_s and ranking:
            break
        if name in right or (only and name not in only):  # the heuristics' lists overlap
            continue
        tried.add(name)
        started = time.monotonic()
        try:
            opened.build(index)
            launch = opened.launcher(index)
            spent += time.monotonic() - started
            with device.turn:  # waiting for the turn is not counted
                started = time.monotonic()
                error = opened.checked(launch, case)
                once = device.elapsed_us(launch)  # includes the host's launch time
                slow = ranking and once > 4 * min(ranking)[0] + SLOW_HOST
                microseconds = once if slow else time_launch(device, launch, quick).microseconds
                spent += time.monotonic() - started
        except Exception as problem:  # a failing plan is skipped; its reason is reported if none is left
            failures.append(f"plan {index}: {str(problem)[:150]}")
            continue
        ranking.append((microseconds, name, error, launch))
        right.add(name)
    if not ranking:
        raise WrongResult(f"{form.side}: no plan gave the right result; " + "; ".join(failures[:3]))
    ranking.sort(key=lambda entry: entry[0])
    with device.turn:
        best, timing = min(
            ((entry, time_launch(device, entry[3], protocol)) for entry in ranking[:2]),
            key=lambda pair: pair[1].microseconds,
        )
    asked = {name for name in opened.names if not only or name in only}
    counts = PlanCounts(
        len(opened.names), len(set(opened.names)), len(tried), len(tried - right), len(asked - tried)
    )  # fmt: skip
    return BaselineResult(
        form.side, form.output, form.epilogue, best[1] + opened.padding, len(ranking), best[2], timing,
        tuple((name, us) for us, name, _, _ in ranking[:KEPT]), counts,
    )  # fmt: skip


def _nhwc(y: Any) -> Any:
    """The output as float64 [N,P,Q,K], still on the device."""
    values = y.permute(0, 2, 3, 1)
    return (values.float() if "float8" in str(values.dtype) else values).double()


def _graph(frontend: Any, handle: Any, wl: Any, form: GraphForm, x: Any, w: Any, y: Any) -> tuple[Any, dict[str, Any]]:
    """The graph with its plans listed, and its tensors by name: X, W, Y, and S if the output is scaled."""
    kind = {name: getattr(frontend.data_type, value) for name, value in _NAMES.items()}
    exact = form.operand == "int8"
    inner = kind["int32" if exact else "float32"]
    graph = frontend.pygraph(
        handle=handle,
        io_data_type=kind[form.operand],
        intermediate_data_type=kind["float32"] if form.scaled else inner,
        compute_data_type=inner,
    )
    tensors: dict[str, Any] = {}
    for name, value in (("X", x), ("W", w)):
        dim, stride = list(value.shape), list(value.stride())
        tensors[name] = graph.tensor(name=name, dim=dim, stride=stride, data_type=kind[form.operand])
    out = graph.conv_fprop(
        tensors["X"], tensors["W"],
        pre_padding=[wl.pad] * 2, post_padding=[wl.pad] * 2, stride=[wl.stride] * 2, dilation=[wl.dilation] * 2,
        compute_data_type=inner,
    )  # fmt: skip
    if form.scaled:
        out.set_data_type(kind["int32"])
        scale = graph.tensor(name="S", dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=kind["float32"])
        tensors["S"] = scale
        out = graph.mul(a=out, b=scale, compute_data_type=kind["float32"])
    out.set_output(True).set_data_type(kind[form.output]).set_dim(list(y.shape)).set_stride(list(y.stride()))
    tensors["Y"] = out
    graph.validate()
    graph.build_operation_graph()
    modes = frontend.heur_mode
    graph.create_execution_plans([modes.A, modes.B, modes.FALLBACK])
    graph.check_support()
    return graph, tensors


def _plan_name(graph: Any, index: int) -> str:
    try:
        return str(graph.get_plan_name_at_index(index))
    except Exception:  # older frontends have no names
        return f"plan {index}"


def check_graph(got: Any, exact: Any, form: GraphForm) -> float:
    """Relative error of an output against the exact sums, both float64 [N,P,Q,K]. Raises WrongResult."""
    wanted = exact * SCALE if form.scaled else exact
    if form.operand != "int8":
        return relative_error(got, wanted, form.output, EIGHT_BIT_SUMS if "float8" in form.operand else 0.0)
    if not form.scaled:
        differing = int((got != exact).sum())
        if differing:
            raise WrongResult(f"{differing} elements differ from the reference")
        return 0.0
    wanted = wanted.round().clip(-128, 127)
    worst = float(abs(got - wanted).max())
    if worst > 1:  # how ties and fractions are rounded is not documented
        raise WrongResult(f"elements differ from the scaled reference by up to {worst:.0f}")
    return float(((got - wanted) ** 2).sum() / (wanted**2).sum()) ** 0.5

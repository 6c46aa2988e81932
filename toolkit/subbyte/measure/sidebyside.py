"""The same convolutions in this toolkit and in cuDNN, in one process on one GPU: the record behind ``subbyte
bench``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from subbyte.device.launch import Launch, launch_from_dict
from subbyte.device.peaks import peak_tops, sparse_peak
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import config_from_dict
from subbyte.files import inside
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import Timing, TimingProtocol, command_line
from subbyte.measure import baselines, cudnn_graph
from subbyte.measure.case import Case, Evaluator
from subbyte.records.result import Measured
from subbyte.records.shapes import Count, Name, Sample, Text, Time, Tree
from subbyte.spaces.configuration import Configuration
from subbyte.workload import INT4, ConvWorkload, Operand
from subbyte.workload import workload as parse

TOP_K = 5
SHARE = 0.8
"""The fraction of an instruction's peak that a kernel should reach."""


def epilogue(output: Operand) -> str:
    """What our kernels do after the sums, in words."""
    return f"bias, multiply, shift, round, clip, packed {output} stored"


EPILOGUE = epilogue(INT4.output)


@dataclass(frozen=True)
class Row:
    """One side on one workload. ``tops`` counts the convolution's actual operations over the hot time."""

    workload: Name
    spec: Name
    operations: Count
    side: Name
    output: Name
    epilogue: Text
    plan: Text
    plans: Count
    verified: Name
    microseconds: Time
    cold_microseconds: float | None
    samples: tuple[Sample, ...]
    cold_samples: tuple[float, ...]
    tops: float
    share_of_peak: float | None
    clocks: dict[Name, Tree]
    config: dict[Name, Tree] | None = None


class Absence(msgspec.Struct, frozen=True):
    """A side that could not run a workload, and why."""

    workload: Name
    side: Name
    reason: str


class BenchShape(msgspec.Struct, frozen=True):
    """The record that ``subbyte bench --out`` writes, as it is read back."""

    rows: tuple[Row, ...]
    missing: tuple[Absence, ...]
    schema: Count = 1
    benchmark: Name = ""
    command: str = ""
    date: Name = ""
    gpu: dict[Name, Tree] = {}
    versions: dict[Name, Name | None] = {}
    protocol: dict[Name, Tree] = {}
    peak_tops: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A built kernel of this toolkit."""

    config: Configuration
    cubin: bytes
    launch: Launch


def from_bundles(folders: Sequence[str | os.PathLike[str]]) -> dict[ConvWorkload, list[Candidate]]:
    """Every kernel in the bundles, by workload. Raises InvalidInput, BrokenRecord."""
    from subbyte.records.describe import config_from_dict, workload_from_dict
    from subbyte.records.manifest import read_manifest

    found: dict[ConvWorkload, list[Candidate]] = {}
    for folder in folders:
        manifest, entries = read_manifest(folder)
        candidates = found.setdefault(workload_from_dict(manifest["workload"]), [])
        for entry in entries.values():
            if "failed" not in entry:
                cubin = _kernel(folder, entry["cubin"])
                config = config_from_dict(entry["config"], str(manifest["space"].get("kind", "")))
                candidates.append(Candidate(config, cubin, launch_from_dict(entry["launch"])))
    return found


def _kernel(folder: str | os.PathLike[str], name: str) -> bytes:
    """A kernel from a bundle. Raises InvalidInput if it does not exist."""
    try:
        return inside(folder, name).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{folder}: {name} {error.strerror}; build the bundle again") from None


def side_by_side(
    kernels: dict[ConvWorkload, list[Candidate]],
    device: CudaDevice,
    protocol: TimingProtocol | None = None,
    plan_seconds: float = 40.0,
    graph_api: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every workload on every side; plain data, ready for JSON.

    A side that cannot run becomes an entry of ``missing`` with the reason. Raises MissingDependency without PyTorch.
    """
    how = protocol or TimingProtocol()
    torch_device = baselines.TorchDevice(device.info)
    rows: list[Row] = []
    missing: list[dict[str, str]] = []
    for workload, candidates in kernels.items():
        case = Case(workload)
        for name, measure in _sides(case, candidates, device, torch_device, how, plan_seconds, graph_api):
            try:
                rows.append(measure())
                say(_line(rows[-1]))
            except Exception as error:  # PyTorch's and cuDNN's own errors too: one side fails, the others continue
                missing.append({"workload": workload.label, "side": name, "reason": str(error)[:500]})
                say(f"{workload.label}: {name}: {missing[-1]['reason']}")
    return {
        "schema": 1,
        "benchmark": "side by side with cuDNN",
        "command": command_line(),
        "date": rows[0].clocks["date"] if rows else "",
        "gpu": device.info.to_dict(),
        "versions": baselines.versions(),
        "peak_tops": peak_tops(device.info.name),
        "protocol": how.to_dict(),
        "rows": [asdict(row) for row in rows],
        "missing": missing,
    }


def _sides(
    case: Case,
    candidates: list[Candidate],
    device: CudaDevice,
    torch_device: baselines.TorchDevice,
    how: TimingProtocol,
    plan_seconds: float,
    graph_api: bool,
) -> Iterable[tuple[str, Callable[[], Row]]]:
    own = f"subbyte {case.workload.precision.label}"
    skipping = [one for one in candidates if one.config.skips_zeros]
    others = [one for one in candidates if not one.config.skips_zeros]
    yield own, lambda: ours(case, skipping or others, device, how)
    if skipping and others:
        yield f"{own}, dense twin", lambda: ours(case, others, device, how, ", dense twin")

    def baseline(measure: Callable[[], baselines.BaselineResult]) -> Callable[[], Row]:
        return lambda: _baseline_row(case, device, measure())

    for dtype in ("float16", "bfloat16"):
        yield (
            f"cuDNN {dtype}, PyTorch",
            baseline(
                lambda dtype=dtype: baselines.through_torch(case, torch_device, dtype, how)  # type: ignore[misc]
            ),
        )
    for form in cudnn_graph.FORMS if graph_api else ():
        yield (
            form.side,
            baseline(
                lambda form=form: cudnn_graph.through_graph(case, torch_device, form, how, plan_seconds)  # type: ignore[misc]
            ),
        )


def ours(case: Case, candidates: Sequence[Candidate], device: CudaDevice, how: TimingProtocol, more: str = "") -> Row:
    """The fastest verified candidate: all are timed briefly, then the best few in full. ``more`` is appended to the
    side's name.

    Raises InvalidInput when there is none, or none is correct.
    """
    quick = replace(how, min_total_ms=min(how.min_total_ms, 4.0), repeats=3, warmup_ms=1.0, cold=False)
    evaluator = Evaluator(device, case, quick)
    tried = [(evaluator.evaluate(c.cubin, c.launch), c) for c in candidates]
    right = sorted(
        ((result.microseconds, place) for place, (result, _) in enumerate(tried) if isinstance(result, Measured))
    )
    if not right:
        reasons = [result.reason for result, _ in tried if not isinstance(result, Measured)]
        raise InvalidInput(f"no kernel of {case.workload} gave the right result: {reasons[:1] or 'none was given'}")
    in_full = [(_time_in_full(tried[place][1], case, device, how), tried[place][1]) for _, place in right[:TOP_K]]
    timing, winner = min(in_full, key=lambda pair: pair[0].microseconds)
    evaluator.close()
    types = case.workload.precision
    what = (f"subbyte {types.label}{more}", types.output.name, epilogue(types.output), winner.config.key)
    return _row(case, device, timing, what, len(right), "every element equal", winner.config.to_dict())


def _time_in_full(candidate: Candidate, case: Case, device: CudaDevice, how: TimingProtocol) -> Timing:
    with GpuKernel(candidate.cubin, candidate.launch, device) as kernel:
        buffers = {argument.name: case.operand(argument).ravel() for argument in kernel.inputs}
        return kernel.time(how, buffers)


def _baseline_row(case: Case, device: CudaDevice, result: baselines.BaselineResult) -> Row:
    verified = "every element equal" if result.error == 0 else f"relative error {result.error:.1e}"
    what = (result.side, result.output, result.epilogue, result.plan)
    return _row(case, device, result.timing, what, result.plans, verified, None)


def _row(
    case: Case,
    device: CudaDevice,
    timing: Timing,
    what: tuple[str, str, str, str],
    plans: int,
    verified: str,
    config: dict[str, Any] | None,
) -> Row:
    workload, peak = case.workload, peak_tops(device.info.name)
    tops = timing.tops(workload.operations)
    return Row(
        workload.label, workload.spec, workload.operations, *what, plans, verified,
        timing.microseconds, timing.cold_microseconds, timing.samples, timing.cold_samples,
        tops, tops / peak if peak else None, {"date": timing.date, **timing.clocks()}, config,
    )  # fmt: skip


def _line(row: Row) -> str:
    cold = f"{row.cold_microseconds:8.2f}" if row.cold_microseconds is not None else " " * 8
    return (
        f"{row.workload:22} {row.side:36} {row.microseconds:8.2f} us hot {cold} us cold {row.tops:7.1f} TOPS  "
        f"{row.verified}; {row.plan[:60]} (of {row.plans})"
    )


def text_of(record: dict[str, Any]) -> str:
    """The record's rows as lines for a terminal."""
    lines = [_line(Row(**row)) for row in record["rows"]]
    lines += [
        f"{entry['workload']:22} {entry['side']:36} not measured: {entry['reason']}" for entry in record["missing"]
    ]
    lines += [text for row in record["rows"] if (text := _ceiling(Row(**row), record["gpu"]["name"]))]
    return "\n".join(lines)


def _ceiling(row: Row, gpu: str) -> str:
    """For a kernel on 2:4 weights: the instruction's own peak, and the fraction reached; "" for others."""
    if row.config is None or parse(row.spec).precision.weights.group != (2, 4):
        return ""
    if not config_from_dict(row.config).skips_zeros:
        return ""
    peak = sparse_peak(gpu)
    if peak is None:
        text = f"2:4 instructions were not measured on {gpu}: `subbyte bench atoms wgmma.sp` does that"
    else:
        least = row.operations / peak / 1e6
        text = (
            f"multiplying alone takes {least:.2f} us at {peak:,.0f} TOPS of 2:4 instructions; {SHARE:.0%} of that rate "
            f"{least / SHARE:.2f} us; this kernel {least / row.microseconds:.0%}"
        )
    return f"{row.workload:22} {text}"


def build_candidates(workload: ConvWorkload, arch: str) -> list[Candidate]:
    """Kernels to compare when no bundle is given: the one :func:`subbyte.compile` takes, for weights with a pattern of
    zeros the best known kernel that skips them and the best that does not, and the best of a shipped landscape.

    Raises the errors of :func:`subbyte.compile` when nothing can be built.
    """
    from subbyte.kernel import build
    from subbyte.kernel.choose import best_twins
    from subbyte.kernel.choose import compile as compile_kernel
    from subbyte.records.landscape import Landscape, find_landscape

    chosen = compile_kernel(workload, arch)
    built = [Candidate(chosen.config, bytes(chosen.cubin), chosen.launch)]
    for config in best_twins(workload, arch):
        if config != chosen.config:
            with suppress(SubbyteError):  # the compiled kernel is rejected
                kernel = build(workload, config, arch)
                built.append(Candidate(config, bytes(kernel.cubin), kernel.launch))
    name = find_landscape(workload, arch)
    if name is not None:
        landscape = Landscape.load(name)
        timed = sorted((r.microseconds, i) for i, r in landscape.results.items() if isinstance(r, Measured))
        for config in (landscape.config(index) for _, index in timed[:TOP_K]):
            with suppress(SubbyteError):  # recorded with a generator whose kernels were different
                kernel = build(workload, config, arch)
                built.append(Candidate(config, bytes(kernel.cubin), kernel.launch))
    return built

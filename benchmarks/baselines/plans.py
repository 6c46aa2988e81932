"""The sides that are searched and compared, their plans, and what a search wrote of them."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.baselines.cutlass_driver import SIDE as CUTLASS
from benchmarks.baselines.cutlass_driver import Driver, through_cutlass
from benchmarks.shared.written import digest_of_json
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.baselines import BaselineResult, TorchDevice, through_torch, versions
from subbyte.measure.case import Case
from subbyte.measure.cudnn_graph import FORMS, through_graph
from subbyte.workload import ConvWorkload

QUICK = TimingProtocol(launches=10, warmup_ms=1.0, min_total_ms=4.0, repeats=3, cold=False)
Measure = Callable[[Case, TimingProtocol, tuple[str, ...]], BaselineResult]


def ways_of(device: TorchDevice, driver: Driver | None, plan_seconds: float) -> dict[str, Measure]:
    """How each side is measured, by name."""
    found: dict[str, Measure] = {
        f"cuDNN {dtype}, PyTorch": lambda case, how, _, dtype=dtype: through_torch(case, device, dtype, how)  # type: ignore[misc]
        for dtype in ("float16", "bfloat16")
    }
    for form in FORMS:
        found[form.side] = lambda case, how, only, form=form: through_graph(  # type: ignore[misc]
            case, device, form, how, plan_seconds, only
        )
    if driver is not None:
        found[CUTLASS] = lambda case, how, only: through_cutlass(case, device, driver, how, only)
    return found


def against_of(names: list[str], driver: Driver | None) -> dict[str, Any]:
    """Who the baselines are: times beside others do not belong into one record."""
    cutlass = f"{len(driver.names)} instances, {digest_of_json(driver.names)}" if driver else "none"
    return {"sides": names, "cutlass": cutlass, "versions": versions()}


def read_lines(paths: list[Path]) -> list[dict[str, Any]]:
    """The lines of some files, plain or gzip; a cut last line is left out."""
    lines = []
    for path in paths:
        content = path.read_bytes() if path.exists() else b""
        for text in (gzip.decompress(content) if path.suffix == ".gz" and content else content).decode().splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(text))
    return lines


def best_lines(workload: ConvWorkload, names: list[str], known: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What searches found on a workload, by side: a time (``microseconds``), or why there is none (``reason``)."""
    lines: dict[str, dict[str, Any]] = {}
    for line in known:
        if line["spec"] == workload.spec and line["side"] in names:
            # A side may have been searched again: the search that found the fastest plan counts.
            before = lines.setdefault(line["side"], line)
            if line.get("microseconds", float("inf")) < before.get("microseconds", float("inf")):
                lines[line["side"]] = line
    return lines

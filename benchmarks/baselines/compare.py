"""Time our kernels and the fastest plans of cuDNN and CUTLASS, one after the other in one process.

    python benchmarks/baselines compare RECORD --pack FOLDER --found FOUND [--cutlass LIBRARY]

Measures again the plans that ``search`` found fastest, beside the kernels of a pack (``pack``, or what
``benchmarks/network tune`` left): L2 hot, graph replay, random operands over the whole int4 range, every answer
compared with the exact one. RECORD is written after every layer; started again, it goes on with the layers that it
lacks, or has with other kernels or beside other plans (``--found``, ``--most``, ``--every-side``). A record that was
made beside other sides or versions is left alone. ``rounds`` samples the sides in turns instead, and gives intervals.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.baselines.cutlass_driver import Driver
from benchmarks.baselines.overlapped import OWN_OUTPUT, reads_from, time_overlapped
from benchmarks.baselines.plans import QUICK, Measure, against_of, best_lines, read_lines, ways_of
from benchmarks.shared import kernel_pack
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.written import begun, digest_of, digest_of_json, refuse_others, write_at_once
from subbyte.device.peaks import warpgroup_peak
from subbyte.errors import InvalidInput
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import Timing, TimingProtocol, command_line, time_launch
from subbyte.measure.baselines import BaselineResult, TorchDevice
from subbyte.measure.case import Case, Evaluator
from subbyte.measure.sidebyside import EPILOGUE
from subbyte.records.describe import now
from subbyte.records.result import Failed, Measured
from subbyte.workload import ConvWorkload

FULL = TimingProtocol(launches=20, warmup_ms=3.0, min_total_ms=14.0, repeats=7, cold=False)
TRIED = 2
"""Plans of a side, and kernels of ours, that are measured in full."""
Plans = list[tuple[str, tuple[str, ...]]]
"""Sides of a workload, with the names of the plans to try: all where none is named."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines compare", __doc__)
    parser.add_argument("out", type=Path, metavar="RECORD", help="file of the record")
    parser.add_argument("--pack", type=Path, help="kernels of ours")
    parser.add_argument("--found", type=Path, nargs="*", default=[], help="what `search` wrote")
    parser.add_argument("--cutlass", type=Path, help="the driver's shared library (shared/cutlass.sh)")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e6, help="when to stop, from the start")
    parser.add_argument("--plan-seconds", type=float, default=6.0, help="time for the plans of one cuDNN graph")
    parser.add_argument("--most", type=int, default=99, help="sides of a workload that are compared, fastest first")
    text = "workloads on which --most does not count; they are the first"
    parser.add_argument("--every-side", nargs="*", default=[], help=text)
    args = parser.parse_args(arguments)
    args.end = time.monotonic() + args.seconds
    return compare(args)


@dataclass(frozen=True)
class Ours:
    """The fastest right kernel of a pack on a workload alone, and the fastest in a chain (see ``overlapped.py``)."""

    family: str
    config: dict[str, Any]
    key: str
    reason: str
    tried: int
    timing: Timing
    chain: Timing
    chain_reads: str
    chain_key: str


def compare(args: argparse.Namespace) -> int:
    """Every workload of the pack; the record is written anew after each."""
    if args.pack is None or not (args.pack / "kernels.jsonl").exists():
        raise InvalidInput(f"--pack {args.pack}: no pack of kernels; `python benchmarks/baselines pack` writes one")
    packed = kernel_pack.read(args.pack)
    device = CudaDevice(args.device)
    torch_device = TorchDevice(device.info)
    driver = Driver(args.cutlass) if args.cutlass else None
    ways = ways_of(torch_device, driver, args.plan_seconds)
    against = against_of(list(ways), driver)
    known = read_lines(args.found)
    plans = {workload.spec: planned(workload, list(ways), known, args) for workload in packed}
    before = begun(args.out, device.info.name, "cells")
    record: dict[str, Any] = {
        "format": "subbyte-opponents", "schema": 1, "command": command_line(), "gpu": device.info.to_dict(),
        **against, "protocol": FULL.to_dict(), "our_epilogue": EPILOGUE, "peak": warpgroup_peak(device.info.name),
        "runs": [*before.get("runs", []), {"date": now(), "command": command_line(), "gpu": device.info.to_dict()}],
        "cells": kept_cells(before, packed, against, plans, args.out), "missing": [],
    }  # fmt: skip
    there = {cell["spec"] for cell in record["cells"]}
    order = sorted(packed, key=lambda one: (one.label not in args.every_side, one.n))
    places = {workload.spec: place for place, workload in enumerate(order)}
    failed = 0
    for workload in (one for one in order if one.spec not in there):
        if time.monotonic() > args.end:
            record["missing"].append({"workload": workload.label, "reason": "no time left"})
            continue
        asked = plans[workload.spec]
        cell = one_cell(workload, packed[workload], device, torch_device, ways, asked)
        failed += "ours" not in cell
        record["cells"].append({**cell, "kernels": digest_of(packed[workload]), "asked": digest_of_json(asked)})
        record["cells"].sort(key=lambda one: places[one["spec"]])
        write_at_once(args.out, record)
        print(line_of(cell), flush=True)
    write_at_once(args.out, record)
    if record["missing"]:
        print(f"left: {', '.join(one['workload'] for one in record['missing'])}", flush=True)
    return int(failed > 0 or bool(record["missing"]))


def planned(workload: ConvWorkload, names: list[str], known: list[dict[str, Any]], args: argparse.Namespace) -> Plans:
    """The sides that a workload is compared with, and which of their plans."""
    return ranked(workload, names, known)[: None if workload.label in args.every_side else args.most]


def kept_cells(
    before: dict[str, Any],
    packed: dict[ConvWorkload, list[kernel_pack.Packed]],
    against: dict[str, Any],
    plans: dict[str, Plans],
    out: Path,
) -> list[dict[str, Any]]:
    """What an earlier start measured of the same kernels beside the same plans, but for layers of which every baseline
    failed: the GPU may have been lost meanwhile. Raises InvalidInput when it had other baselines at hand."""
    now_there = {workload.spec: digest_of(kernels) for workload, kernels in packed.items()}
    kept = [cell for cell in before.get("cells", [])
            if "ours" in cell and (cell["opponents"] or not cell["missing"])
            and cell.get("kernels") == now_there.get(cell["spec"], "")]  # fmt: skip
    if kept:
        refuse_others(before, against, out)
    again = [cell["workload"] for cell in kept if cell.get("asked") != digest_of_json(plans[cell["spec"]])]
    if again:
        print(f"measured again, beside other plans than before: {', '.join(again)}", flush=True)
    return [cell for cell in kept if cell["workload"] not in again]


def one_cell(
    workload: ConvWorkload,
    kernels: list[kernel_pack.Packed],
    device: CudaDevice,
    torch_device: TorchDevice,
    ways: dict[str, Measure],
    plans: Plans,
) -> dict[str, Any]:
    """One workload: ours, the sides, the copy that moves as many bytes."""
    case = GpuCase(workload)
    cell: dict[str, Any] = {
        "workload": workload.label, "spec": workload.spec, "operations": workload.operations,
        "bytes": workload.bytes_moved, "opponents": [], "missing": [],
    }  # fmt: skip
    try:
        cell["ours"] = ours_line(ours(case, kernels, device), workload)
    except Exception as error:  # the baselines are worth having all the same
        cell["missing"].append({"side": "subbyte", "reason": f"{type(error).__name__}: {error}"[:300]})
    for side, only in plans:
        try:
            result = ways[side](case, FULL, only)
            cell["opponents"].append(baseline_line(result))
        except Exception as error:
            cell["missing"].append({"side": side, "reason": f"{type(error).__name__}: {error}"[:300]})
    cell["opponents"].sort(key=lambda line: line["microseconds"])
    with contextlib.suppress(RuntimeError):
        cell["copy"] = timing_line(copy_of(workload, torch_device))
    torch_device.torch.cuda.empty_cache()
    return cell


def ranked(workload: ConvWorkload, names: list[str], known: list[dict[str, Any]]) -> Plans:
    """Sides with the plans to try, fastest first: as the search found them; those it found nothing on are left out."""
    lines = best_lines(workload, names, known)
    timed = sorted((line for line in lines.values() if "microseconds" in line), key=lambda line: line["microseconds"])
    found = [(line["side"], tuple(name for name, _ in line["ranking"][:TRIED])) for line in timed]
    return found + [(name, ()) for name in names if name not in lines]


def ours(case: Case, kernels: list[kernel_pack.Packed], device: CudaDevice) -> Ours:
    """Verify and time every kernel shortly, the best in full. Raises ValueError when none is right."""
    evaluator = Evaluator(device, case, QUICK)
    right: list[tuple[float, int]] = []
    reasons = []
    for place, kernel in enumerate(kernels):
        result = evaluator.evaluate(kernel.cubin, kernel.launch)
        if isinstance(result, Measured):
            right.append((result.microseconds, place))
        elif isinstance(result, Failed):
            reasons.append(f"{kernel.config.key}: {result.reason}")
    evaluator.close()
    if not right:
        raise ValueError(f"no kernel was right: {reasons[:1]}")
    again = [(full(kernels[place], case, device), kernels[place]) for _, place in sorted(right)[:TRIED]]
    timing, best = min(again, key=lambda pair: pair[0].microseconds)
    following = None
    if reads_from(best.launch) == OWN_OUTPUT:
        following = GpuCase(case.workload, x=case.expected, w=case.w, requant=case.requant)
    overlapping = [kernels[place] for _, place in sorted(right) if kernels[place].launch.dependent_launch][:TRIED]
    chains = [
        (time_overlapped(one.cubin, one.launch, case, following, device, FULL), one)
        for one in dict.fromkeys([best, *overlapping])
    ]
    chain, linked = min(chains, key=lambda pair: pair[0].microseconds)
    return Ours(
        best.family, best.config.to_dict(), best.config.key, best.reason, len(right), timing, chain,
        reads_from(linked.launch), linked.config.key,
    )  # fmt: skip


def full(kernel: kernel_pack.Packed, case: Case, device: CudaDevice) -> Timing:
    """One layer alone, no overlap."""
    with GpuKernel(kernel.cubin, kernel.launch, device) as loaded:
        return loaded.time(replace(FULL, cold=True), {a.name: case.operand(a).ravel() for a in loaded.inputs})


def copy_of(workload: ConvWorkload, device: TorchDevice) -> Timing:
    """An elementwise kernel that reads half of the layer's bytes and writes the other half."""
    torch = device.torch
    words = max(1, workload.bytes_moved // 8)
    source = torch.zeros(words, dtype=torch.int32, device=f"cuda:{device.info.ordinal}")
    target = torch.empty_like(source)
    return time_launch(device, lambda: torch.bitwise_not(source, out=target), FULL)


def timing_line(timing: Timing) -> dict[str, Any]:
    """A timing in the record."""
    return {
        "microseconds": timing.microseconds, "samples": list(timing.samples),
        "cold_microseconds": timing.cold_microseconds, "date": timing.date, "clocks": timing.clocks(),
    }  # fmt: skip


def ours_line(found: Ours, workload: ConvWorkload) -> dict[str, Any]:
    """Our entry of a cell."""
    plain = {name: value for name, value in asdict(replace(found, timing=None, chain=None)).items() if value}  # type: ignore[arg-type]
    chain = timing_line(found.chain)
    return {
        **plain, **timing_line(found.timing), "tops": found.timing.tops(workload.operations),
        "chain": {"microseconds": chain["microseconds"], "samples": chain["samples"], "reads": found.chain_reads,
                  "key": found.chain_key},
        "verified": "every element equal, alone and in the chain",
    }  # fmt: skip


def baseline_line(result: BaselineResult) -> dict[str, Any]:
    """A side's entry of a cell."""
    return {
        "side": result.side, "epilogue": result.epilogue, "plan": result.plan, "plans": result.plans,
        "error": result.error, "counts": result.counts and result.counts.to_dict(), **timing_line(result.timing),
    }  # fmt: skip


def line_of(cell: dict[str, Any]) -> str:
    """A cell in one line of text."""
    own, best = cell.get("ours"), next(iter(cell["opponents"]), None)
    parts = [f"{cell['workload']:32}"]
    parts.append(
        f"{own['microseconds']:7.2f} alone {own['chain']['microseconds']:7.2f} chain" if own else " ours failed"
    )
    if best:
        parts.append(f"{best['microseconds']:7.2f} {best['side'][:34]}")
    if own and best:
        parts.append(f"x{best['microseconds'] / own['microseconds']:.2f}")
    return " ".join(parts) + "".join(f" !{m['side']}: {m['reason'][:60]}" for m in cell["missing"][:2])

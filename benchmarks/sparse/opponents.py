"""Time our kernels on 2:4 weights, their dense twins, and libraries that multiply such weights, in turns.

    python benchmarks/sparse opponents --build --pack FOLDER [--cells CELL...]            # where TVM is, no GPU
    python benchmarks/sparse opponents --pack FOLDER --out RECORD [--cutlass LIBRARY]     # where the GPU is

Weights are pruned 2:4 from values of the whole range of int4, the same on every side. Each layer is measured in two
runs, each a process of its own: all sides are loaded, compared with the exact answer, captured and then sampled in
turns, in an order drawn anew in each round, L2 hot. What cannot run stands in the record with the reason.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.baselines.plans import best_lines, read_lines
from benchmarks.baselines.rounds import FOUND, plan_name
from benchmarks.baselines.rounds_record import run_of, write_record
from benchmarks.baselines.sides import Side, baseline_sides
from benchmarks.shared import kernel_pack
from benchmarks.shared.command import again, answering
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.kernel_pack import Packed, family_of
from benchmarks.sparse.libraries import ContextLost, Cutlass, Make, library_sides, product_of, settled
from benchmarks.sparse.packs import add_run, pack_parser, require_pack
from benchmarks.sparse.texts import WEIGHTS
from subbyte.device.arch import arch
from subbyte.errors import SubbyteError, Unsupported, WrongResult
from subbyte.families.registry import newest_first
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import command_line
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_twins
from subbyte.measure.baselines import TorchDevice, versions
from subbyte.measure.cudnn_graph import FORMS
from subbyte.measure.rounds import Entry, Replays, RoundProtocol, interleave
from subbyte.records.describe import now
from subbyte.workload import ConvWorkload
from subbyte.workload.precision import INT4

STAGES = [f"resnet50.stage{stage}@{batch}" for batch in (8, 64, 256) for stage in (2, 3, 4, 5)]
POINTWISE = [f"resnet50.stage{stage}.reduce1x1@{batch}" for batch in (8, 64, 256) for stage in (2, 3, 4, 5)]
POINTWISE += [f"resnet50.stage{stage}.expand1x1@64" for stage in (2, 3, 4, 5)]
CELLS = ["gemm4096", *STAGES, *POINTWISE]
RUNS = 2
LOST, ATTEMPTS = 75, 12
"""Exit status of a process whose GPU context a library made unusable; processes of a run at most."""
HOW = RoundProtocol(rounds=12, sample_ms=2.0, warmup_ms=0.3)
HOW_SLOW = replace(HOW, launches=2)
SLOW = ("cuSPARSE CSR", "torch.sparse blocks")
"""Sides of which a graph holds fewer launches; they are left out where the turns fail."""
TURNS = "the turns"
TRIED = 64
"""Configurations that are tried until one can be built."""


@answering
def main(arguments: Sequence[str]) -> int:
    """Build the kernels, or measure."""
    parser = pack_parser("sparse opponents", __doc__, CELLS)
    parser.add_argument("--cutlass", type=Path, help="CUTLASS's sparse products (shared/cutlass.sh)")
    parser.add_argument("--found", type=Path, nargs="*", default=sorted(FOUND.glob("search-*.jsonl.gz")),
                        help="what `baselines search` found of cuDNN's plans")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no further layer after so many")
    asked = parser.parse_args(arguments)
    if asked.build:
        return build(asked.pack, asked.cells)
    require_pack(asked)
    if asked.run:
        return one_run(asked)
    end = time.monotonic() + asked.seconds
    for number in range(1, RUNS + 1):
        until = time.monotonic() + (end - time.monotonic()) / (RUNS + 1 - number)
        for _ in range(ATTEMPTS):
            more = ["--run", str(number), "--seconds", str(until - time.monotonic())]
            if subprocess.run(again("sparse opponents", arguments, *more), check=False).returncode != LOST:
                break
    return 0 if asked.out.exists() else 1


def build(folder: Path, cells: list[str]) -> int:
    """The best known 2:4 kernel of each layer and the best that multiplies zeros too, on the same operands."""
    count = 0
    for cell in cells:
        for skips in (True, False):
            try:
                kernel = built(subbyte.workload(f"{cell}:{WEIGHTS}"), skips)
            except SubbyteError as error:  # the others are worth having
                print(error, flush=True)
                continue
            count += kernel_pack.add(folder, [kernel])
            print(cell, kernel.config.key, flush=True)
    print(f"{count} kernels in {folder}")
    return 0


def built(workload: ConvWorkload, skips_zeros: bool) -> Packed:
    """The first kernel of a kind that the compiler makes without a fault: the best known, then by the estimate. Raises
    the last fault."""
    target = arch("sm_90a")
    family = next(one for one in newest_first() if any(kind.skips_zeros for kind in one.configurations))
    order = chain(best_twins(workload), family.candidates(workload, target))
    configs = dict.fromkeys(config for config in islice(order, TRIED) if config.skips_zeros == skips_zeros)
    problem: SubbyteError = Unsupported(f"{workload}: no kernel that was asked for")
    for config in configs:
        try:
            kernel = Kernel(make_plan(workload, config, "sm_90a", None, None, "fixed"))
            name = "2:4" if skips_zeros else "dense"
            return Packed(workload, family_of(config), config, name, bytes(kernel.cubin), kernel.launch)
        except SubbyteError as error:
            problem = error
    raise problem


def one_run(asked: Namespace) -> int:
    """One run of every layer."""
    end = time.monotonic() + asked.seconds
    device = CudaDevice(0)
    torch_device = TorchDevice(device.info)
    cutlass: Make | str = "the library was not given (--cutlass, made by benchmarks/shared/cutlass.sh)"
    if asked.cutlass:
        try:
            cutlass = Cutlass(asked.cutlass)
        except SubbyteError as error:
            cutlass = str(error)
    packed, known = kernel_pack.read(asked.pack), read_lines(asked.found)
    record = begun(asked.out, device)
    for cell in asked.cells:
        workload = subbyte.workload(f"{cell}:{WEIGHTS}")
        if time.monotonic() > end:
            record["left"].append({"cell": cell, "run": asked.run})
            continue
        if any(one["cell"] == cell and run["run"] == asked.run for one in record["cells"] for run in one["runs"]):
            continue
        started, crashed = time.monotonic(), record["crashed"].setdefault(cell, {})
        try:
            run = measured(asked.run, workload, packed[workload], device, torch_device, cutlass, known, crashed)
        except ContextLost as error:
            for side in SLOW if error.side == TURNS else (error.side,):
                crashed[side] = f"{error.reason}; left out after that"
            write_record(asked.out, record)
            print(f"run {asked.run} {cell}: {error.side}: {error.reason}", flush=True)
            return LOST
        except (SubbyteError, RuntimeError) as error:  # the other layers go on
            record["left"].append({"cell": cell, "run": asked.run, "reason": str(error)[:300]})
            print(f"run {asked.run} {cell}: {error}", flush=True)
            continue
        add_run(record, cell, run, spec=workload.spec, operations=workload.operations)
        write_record(asked.out, record)
        print(said(cell, run), f"{time.monotonic() - started:.1f} s", flush=True)
    write_record(asked.out, record)
    return 0


def begun(path: Path, device: CudaDevice) -> dict[str, Any]:
    """The record, with the runs of earlier processes."""
    with suppress(OSError, ValueError):
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return {
        "format": "subbyte-sparse-opponents", "schema": 1, "command": command_line(), "gpu": device.info.to_dict(),
        "versions": versions(), "protocol": HOW.to_dict(), "weights": WEIGHTS, "cells": [], "left": [], "crashed": {},
    }  # fmt: skip


def measured(
    number: int, workload: ConvWorkload, kernels: list[Packed], device: CudaDevice, torch_device: TorchDevice,
    cutlass: Make | str, known: list[dict[str, Any]], crashed: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    """One run of a layer: all its sides, in turns."""
    with ExitStack() as stack:
        try:
            run = turns_of(stack, number, workload, kernels, device, torch_device, cutlass, known, crashed)
        except ContextLost:
            stack.pop_all()  # nothing can be freed any more: the process ends
            raise
    torch_device.torch.cuda.empty_cache()
    return run


def turns_of(
    stack: ExitStack, number: int, workload: ConvWorkload, kernels: list[Packed], device: CudaDevice,
    torch_device: TorchDevice, cutlass: Make | str, known: list[dict[str, Any]], crashed: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    """The sides, opened in ``stack``, and their turns. Raises ContextLost."""
    case = GpuCase(workload)
    replays, slow, entries = Replays(stack, HOW), Replays(stack, HOW_SLOW), list[Entry]()
    sides, absent = our_sides(stack, kernels, case, device)
    settled(torch_device, "subbyte")
    cudnn, plan = plan_of_cudnn(workload, known)
    if cudnn in crashed:
        absent.append({"side": cudnn, "reason": crashed[cudnn]})
    elif plan:
        found, missing = baseline_sides(stack, case, torch_device, None, cudnn, (plan,), False)
        sides += found
        absent += missing
        settled(torch_device, cudnn)
    else:
        absent.append({"side": cudnn, "reason": "the search of cuDNN's plans has none of this layer"})
    try:
        found, missing = library_sides(product_of(case, torch_device), stack, cutlass, crashed)
        sides += found
        absent += missing
    except (SubbyteError, RuntimeError) as error:
        absent.append({"side": "products of matrices", "reason": str(error)[:300]})
    kept = []
    for side in sides:
        try:
            timed = slow if side.about["side"] in SLOW else replays
            entries.append(Entry(side.name, "hot", timed.hot(side.device, side.launch)))
            kept.append({"name": side.name, **side.about})
            settled(torch_device, side.about["side"])
        except ContextLost:
            raise
        except Exception as error:  # what cannot be captured is not measured
            settled(torch_device, side.about["side"])
            absent.append({"side": side.name, "reason": f"{type(error).__name__}: {error}"[:300]})
    rng = random.Random(f"{workload.spec} {number}")
    try:
        rounds = interleave(entries, HOW.rounds, rng, Telemetry(device.info.bus_id).snapshot)
    except (SubbyteError, RuntimeError) as error:
        raise ContextLost(TURNS, str(error)) from None
    return run_of(number, now(), rounds, entries, kept, absent)


def our_sides(
    stack: ExitStack, kernels: list[Packed], case: GpuCase, device: CudaDevice
) -> tuple[list[Side], list[dict[str, str]]]:
    """Our kernels, every element compared; those that are wrong are absent."""
    there = {packed.reason for packed in kernels}
    sides, absent = [], [{"side": f"subbyte {kind}", "reason": "the pack has none: see what --build said"}
                         for kind in ("2:4", "dense") if kind not in there]  # fmt: skip
    for packed in kernels:
        name = f"subbyte {packed.reason}"
        try:
            kernel = stack.enter_context(GpuKernel(packed.cubin, packed.launch, device))
            outputs = kernel.run({argument.name: case.operand(argument).ravel() for argument in kernel.inputs})
            for argument in kernel.outputs:
                report = case.check(outputs[argument.name], argument)
                if not report.ok:
                    raise WrongResult(str(report))
            about = {"side": "subbyte", "plan": packed.config.key, "output": "int4", "error": 0.0}
            nbytes = sum(argument.nbytes for argument in packed.launch.arguments)
            sides.append(Side(name, about, device, kernel.launcher(), nbytes))
        except SubbyteError as error:
            absent.append({"side": name, "reason": str(error)[:300]})
    return sides, absent


def plan_of_cudnn(workload: ConvWorkload, known: list[dict[str, Any]]) -> tuple[str, str]:
    """cuDNN's int8 convolution with a scale: the side, and the plan that the search found fastest on the dense layer;
    "" where it found none."""
    side = next(form.side for form in FORMS if form.operand == "int8" and form.scaled)
    line = best_lines(replace(workload, precision=INT4), [side], known).get(side, {})
    return side, plan_name(line.get("plan", ""))


def said(cell: str, run: dict[str, Any]) -> str:
    """A run in one line of text."""
    times = [f"{entry['side']} {sorted(entry['samples'])[len(entry['samples']) // 2]:.2f}" for entry in run["entries"]]
    absent = "".join(f" !{one['side']}: {one['reason'][:60]}" for one in run["absent"])
    return f"run {run['run']} {cell}: " + ", ".join(times) + absent

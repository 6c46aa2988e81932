"""Time our kernels and the best baselines of the searches in turns: every layer twice, in separate processes.

    python benchmarks/baselines rounds --build --pack FOLDER --cells all                  # where TVM is, no GPU
    python benchmarks/baselines rounds --pack FOLDER --out RECORD.json --cells stages --cutlass LIBRARY

Layers of few bits are named with their precision (``resnet50.stage3@256:w1a1``).
Ours is the one kernel that ``subbyte.compile`` takes. Beside it: of the two sides that the searches (``--found``) found
fastest on the layer, up to two plans each, by name. All of them are loaded and compared with the exact answer, their
graphs captured, and then sampled in turns: in every round each side once, L2 hot, L2 cold and in a chain of four such
layers (``sides.py``), in an order drawn anew, with clocks and power beside the round. The whole is done in two runs,
each a process of its own; layers whose runs differ by more than 2 % are measured a third time. ``rounds_record.py``
says what the runs mean together, ``rounds-table`` prints it.

The record is written after every layer. Started again with the same command, it goes on with the runs that it lacks, or
has with other kernels or beside other plans; a record that was made beside other baselines or versions it leaves alone.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.baselines.compare import against_of, best_lines, read_lines
from benchmarks.baselines.cutlass_driver import SIDE as CUTLASS
from benchmarks.baselines.cutlass_driver import Driver
from benchmarks.baselines.rounds_record import FORMAT, RUNS, disagreeing, results, run_of, whole, write_record
from benchmarks.baselines.rounds_table import lines_of
from benchmarks.baselines.sides import GRAPH_SIDES, OURS, absence, baseline_sides, chains_with_itself, our_side
from benchmarks.network.chains import packed as compiled
from benchmarks.shared import kernel_pack
from benchmarks.shared.command import RESULTS, again, answering, parser_of
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.written import begun, digest_of, digest_of_json, prove_writable, refuse_others
from subbyte.device.peaks import warpgroup_peak
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import hold
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import command_line
from subbyte.measure.baselines import TorchDevice
from subbyte.measure.interval import TOLERANCE
from subbyte.measure.rounds import Entry, Replays, RoundProtocol, interleave
from subbyte.records.describe import now
from subbyte.workload import ConvWorkload, workloads
from subbyte.workload.precision import INT4

FOUND = RESULTS / "baselines"
STAGES = [f"resnet50.stage{stage}@{batch}" for batch in (8, 64, 256) for stage in (2, 3, 4, 5)]
EVERY = ["resnet50@8", "resnet18@8", "vgg16@8", "resnet50@64", "resnet50@256"]
SIDES, PLANS = 2, 2
"""Baselines of a layer, and plans of each."""
LOST = 75
"""Exit status of a run that lost the GPU: another process goes on."""
ATTEMPTS = 3
BESIDE = ("sides", "cutlass", "versions")


@answering
def main(arguments: Sequence[str]) -> int:
    args = parser().parse_args(arguments)
    end = time.monotonic() + args.seconds
    cells = cells_of(args.cells)
    if args.build:
        return build(args.pack, cells, args.workers)
    asked_for_once(args, cells)
    if args.run:
        return one_run(args, cells, end)
    return all_runs(arguments, args, cells, end)


def parser() -> argparse.ArgumentParser:
    found = parser_of("baselines rounds", __doc__)
    found.add_argument("--pack", type=Path, required=True, help="folder of our kernels")
    found.add_argument("--build", action="store_true", help="build the pack: needs TVM, no GPU")
    found.add_argument("--workers", type=int, default=2, help="processes that build")
    found.add_argument("--out", type=Path, help="the record")
    found.add_argument("--cells", nargs="+", default=["stages"], help="stages, all, or names of workloads")
    found.add_argument("--found", type=Path, nargs="*", default=sorted(FOUND.glob("search-*.jsonl.gz")),
                       help="what `search` wrote")  # fmt: skip
    found.add_argument("--cutlass", type=Path, help="the driver's shared library (shared/cutlass.sh)")
    found.add_argument("--device", type=int, default=0)
    found.add_argument("--rounds", type=int, default=RoundProtocol.rounds)
    found.add_argument("--seconds", type=float, default=1e6, help="begin no further layer after so many")
    found.add_argument("--run", type=int, help=argparse.SUPPRESS)
    return found


def cells_of(names: list[str]) -> list[ConvWorkload]:
    """The layers by name: the twelve ``stages``, or ``all``."""
    if names == ["stages"]:
        names = STAGES
    elif names == ["all"]:
        names = [*STAGES, *EVERY]
    return list(workloads(names))


# ---- without a GPU -------------------------------------------------------------------------------------------------


def build(folder: Path, cells: list[ConvWorkload], workers: int) -> int:
    """Pack what compile takes for each layer, and nothing else."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        count = kernel_pack.replace(folder, pool.map(compiled, cells))
    print(f"{count} kernels in {folder}")
    return 0


def asked_for_once(args: argparse.Namespace, cells: list[ConvWorkload]) -> None:
    """Everything that can be wrong before a GPU is touched. Raises InvalidInput, BrokenRecord."""
    RoundProtocol(rounds=args.rounds)
    if args.out is None:
        raise InvalidInput("--out: name the file of the record")
    if not (args.pack / kernel_pack.INDEX).exists():
        raise InvalidInput(f"--pack {args.pack}: no pack of kernels; {builds(args)}")
    there = kernel_pack.read(args.pack)
    lacking = [cell.label for cell in cells if cell not in there]
    if lacking:
        raise InvalidInput(f"--pack {args.pack}: no kernel of {', '.join(lacking[:4])}; {builds(args)}")
    for path in (*args.found, *([args.cutlass] if args.cutlass else [])):
        if not path.is_file():
            raise InvalidInput(f"{path}: there is no such file (--found, --cutlass)")
    prove_writable(args.out, "--out")
    if args.out.exists():
        read_record(args.out)
    known = read_lines(args.found)
    alone = [cell.label for cell in cells if not asked_of(cell, known)]
    if alone:
        raise InvalidInput(
            f"--found: no search has a baseline of {', '.join(alone[:4])}, to be measured beside; "
            "`python benchmarks/baselines search` makes one"
        )


def builds(args: argparse.Namespace) -> str:
    """The command that makes the pack."""
    words = f"--build --pack {args.pack} --cells {' '.join(args.cells)}"
    return f"`python benchmarks/baselines rounds {words}` makes it, where TVM is"


def read_record(path: Path) -> dict[str, Any]:
    """A record of this program. Raises BrokenRecord for anything else."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise ValueError("another format")
        iter(record["cells"])
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenRecord(
            f"{path}: no record of `benchmarks/baselines rounds` ({error!r}); choose another file"
        ) from None
    return record


def asked_of(cell: ConvWorkload, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sides and plans that a layer is measured beside, fastest first, with what the search knew of them: libraries
    multiply 8 bits or more, so that their plans are those of the int4 layer whatever the precision."""
    lines = best_lines(replace(cell, precision=INT4), [*GRAPH_SIDES, CUTLASS], known).values()
    fastest = sorted((line for line in lines if "microseconds" in line), key=lambda line: line["microseconds"])[:SIDES]
    return [
        {
            "side": line["side"], "searched_microseconds": line["microseconds"], "searched_plans": line["plans"],
            "counts": line.get("counts"), "limit_seconds": line.get("limit_seconds"),
            "plans": list(dict.fromkeys([plan_name(line["plan"]), *(name for name, _ in line["ranking"])]))[:PLANS],
        }
        for line in fastest
    ]  # fmt: skip


def plan_name(plan: str) -> str:
    """A plan's name without what was done to the operands."""
    return plan.split(", channels padded", maxsplit=1)[0]


# ---- on the GPU ----------------------------------------------------------------------------------------------------


def all_runs(words: Sequence[str], args: argparse.Namespace, cells: list[ConvWorkload], end: float) -> int:
    """Two runs, a third of what disagrees, and the results; 0 when every layer has them."""
    wanted = {cell.spec for cell in cells}
    for number in range(1, RUNS + 2):
        only = []
        if number > RUNS:
            only = disagreeing(cell for cell in read_record(args.out)["cells"] if cell["spec"] in wanted)
            if not only:
                break
            print(f"runs differ by more than {100 * TOLERANCE:g} %, a third: {', '.join(only)}", flush=True)
        for _ in range(ATTEMPTS):
            code = another_process(words, number, only, end)
            if code != LOST:
                break
        if code:
            return code
    record = read_record(args.out)
    record["results"] = results(record["cells"])
    write_record(args.out, record)
    for line in lines_of(record):
        print(line, flush=True)
    lacking = [cell.label for cell in cells if not complete(record, cell)]
    if lacking:
        print(f"left: {', '.join(lacking)}", flush=True)
    return int(bool(lacking))


def another_process(words: Sequence[str], number: int, only: list[str], end: float) -> int:
    """Do one run in a process of its own, which is given the same ``words``; its exit status."""
    more = ["--run", str(number), "--seconds", str(end - time.monotonic()), *(["--cells", *only] if only else [])]
    return subprocess.run(again("baselines rounds", words, *more)).returncode


def complete(record: dict[str, Any], cell: ConvWorkload) -> bool:
    """Whether a layer has the runs it needs, each with our kernel and baselines."""
    found = next((one for one in record["cells"] if one["spec"] == cell.spec), {"runs": []})
    good = [run for run in found["runs"] if whole(run, found["asked"])]
    return len(good) >= RUNS + (len(good) > 0 and len(disagreeing([found])) > 0)


def one_run(args: argparse.Namespace, cells: list[ConvWorkload], end: float) -> int:
    """One run of every layer that lacks it; 75 when the GPU was lost."""
    device = CudaDevice(args.device)
    with hold(device.info):
        torch_device = TorchDevice(device.info)
        driver = Driver(args.cutlass) if args.cutlass else None
        packed, known = kernel_pack.read(args.pack), read_lines(args.found)
        record = begin(args, device, against_of([*GRAPH_SIDES, CUTLASS], driver))
        gc.collect()
        gc.freeze()  # PyTorch may collect before every capture: what is loaded by now need not be looked at each time
        for workload in cells:
            kernel, asked = packed[workload][0], asked_of(workload, known)
            cell = cell_of(record, workload, kernel, asked)
            if time.monotonic() > end or any(run["run"] == args.run for run in cell["runs"]):
                continue
            run = measured(args, kernel, asked, device, torch_device, driver)
            if device.lost or run is None:
                return LOST
            cell["runs"] = sorted([*cell["runs"], run], key=lambda one: int(one["run"]))
            record["cells"] = [one for one in record["cells"] if one["spec"] != workload.spec] + [cell]
            record["cells"].sort(key=lambda one: (one["batch"], one["workload"]))
            write_record(args.out, record)
            print(said(workload, run), flush=True)
    return 0


def begin(args: argparse.Namespace, device: CudaDevice, against: dict[str, Any]) -> dict[str, Any]:
    """The record with the runs that an earlier start made. Raises InvalidInput when they have other baselines."""
    before = begun(args.out, device.info.name, "cells")
    if before.get("cells"):
        refuse_others(before, {name: against[name] for name in BESIDE}, args.out)
    start = {"run": args.run, "date": now(), "command": command_line(), "gpu": device.info.to_dict()}
    return {
        "format": FORMAT, "schema": 1, "command": command_line(), "gpu": device.info.to_dict(), **against,
        "protocol": RoundProtocol(rounds=args.rounds).to_dict(), "tolerance": TOLERANCE,
        "peak": warpgroup_peak(device.info.name), "starts": [*before.get("starts", []), start],
        "cells": before.get("cells", []), "results": [],
    }  # fmt: skip


def cell_of(
    record: dict[str, Any], workload: ConvWorkload, kernel: kernel_pack.Packed, asked: list[dict[str, Any]]
) -> dict[str, Any]:
    """The cell of a layer, with the runs it has of this kernel beside these plans."""
    cell = {
        "workload": workload.label, "spec": workload.spec, "batch": workload.n, "operations": workload.operations,
        "bytes": workload.bytes_moved, "family": kernel.family, "key": kernel.config.key,
        "config": kernel.config.to_dict(), "reason": kernel.reason, "kernels": digest_of([kernel]), "asked": asked,
    }  # fmt: skip
    before = next((one for one in record["cells"] if one["spec"] == workload.spec), {})
    same = before.get("kernels") == cell["kernels"] and digest_of_json(before.get("asked")) == digest_of_json(asked)
    return {**cell, "runs": [run for run in before.get("runs", []) if same and whole(run, asked)]}


def measured(
    args: argparse.Namespace, kernel: kernel_pack.Packed, asked: list[dict[str, Any]], device: CudaDevice,
    torch_device: TorchDevice, driver: Driver | None,
) -> dict[str, Any] | None:  # fmt: skip
    """One run of a layer: all its sides, in turns. None when our kernel lost the GPU."""
    how = RoundProtocol(rounds=args.rounds)
    case = GpuCase(kernel.workload)
    sides, absent = [], []
    with ExitStack() as stack:
        replays, entries = Replays(stack, how), list[Entry]()
        try:
            sides.append(our_side(stack, kernel, case, device))
        except Exception as error:  # the baselines are worth having all the same
            if getattr(error, "kind", "") in ("crash", "timeout"):
                return None
            absent.append(absence(OURS, kernel.config.key, error))
        for line in asked:
            chained, plans = chains_with_itself(kernel), tuple(line["plans"])
            found, missing = baseline_sides(stack, case, torch_device, driver, line["side"], plans, chained)
            sides += found
            absent += missing
        for side in sides:
            entries += side.entries(replays)
        rng = random.Random(f"{kernel.workload.spec} {args.run}")
        rounds = interleave(entries, how.rounds, rng, Telemetry(device.info.bus_id).snapshot)
        run = run_of(args.run, now(), rounds, entries, [side.to_dict() for side in sides], absent)
    torch_device.torch.cuda.empty_cache()
    return run


def said(workload: ConvWorkload, run: dict[str, Any]) -> str:
    """A run in one line of text."""
    times = [
        f"{sorted(entry['samples'])[len(entry['samples']) // 2]:.2f} {entry['side'][:34]}"
        for entry in run["entries"] if entry["what"] == "hot"
    ]  # fmt: skip
    absent = "".join(f" !{one['side']}: {one['reason'][:60]}" for one in run["absent"][:2])
    return f"run {run['run']} {workload.label:32} " + ", ".join(times) + absent

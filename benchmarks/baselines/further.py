"""What ``search`` does not ask for: cuDNN's engines with knobs chosen here, and its older interface on NC/32HW32.

    python benchmarks/baselines further RECORD.json --pack FOLDER --cells stages [--seconds N]

Of each layer, int8 to int8 with one scale: every plan that the heuristics list; then engines of the graph with knobs
drawn at random from all values they take (``--drawn``, by a seed), each built, compared with the exact answer and timed
quickly; then the layout NC/32HW32. The fastest of each kind and our kernel (``rounds --build`` writes the pack) are
sampled in turns, in two runs with graphs of their own. The record is written after every layer; started again, the
program goes on with the layers that it lacks.

Some drawn knobs give a plan that touches memory which is not its own, and no other work of the process comes through
after that. So each layer has a process of its own; when one ends so, another does the layer without that plan.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.baselines.cutlass_driver import FORM
from benchmarks.baselines.plans import QUICK
from benchmarks.baselines.rounds import LOST, STAGES, said
from benchmarks.baselines.rounds_record import RUNS, results, run_of, write_record
from benchmarks.baselines.sides import Side, absence, nbytes_of, our_side
from benchmarks.baselines.vectored import REORDERED, SIDE, vectored_side
from benchmarks.shared import kernel_pack
from benchmarks.shared.command import again, answering, parser_of
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.written import begun
from subbyte.errors import InvalidInput
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import hold
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import command_line, time_launch
from subbyte.measure.baselines import TorchDevice, versions
from subbyte.measure.case import Case
from subbyte.measure.cudnn_graph import OpenGraph, open_graph
from subbyte.measure.rounds import Entry, Replays, RoundProtocol, interleave
from subbyte.records.describe import now
from subbyte.workload import workloads

FORMAT = "subbyte-further-baselines"
LISTED, DRAWN = "cuDNN int8 to int8, listed by heuristics", "cuDNN int8 to int8, engine with drawn knobs"
FATAL = "reads or writes memory that is not its own: left out by name"
MOST_FATAL = 12
"""After so many plans of a layer that end the GPU's context it is given up."""
FAR = 4.0
"""Beyond so many times the fastest plan, the older interface is timed quickly and not in turns."""
BEST = 2
"""Plans of each kind that are sampled in turns."""


@dataclass(frozen=True)
class Tried:
    """A plan that ran and was right: its kind, a name, its index in the graph, the quick time."""

    kind: str
    name: str
    index: int
    microseconds: float


Knobs = dict[Any, range]
"""The values that an engine takes for each of its knobs."""


def choices(engines: dict[int, Knobs], rng: random.Random, count: int) -> Iterator[tuple[int, dict[Any, int]]]:
    """``count`` different pairs of an engine and values of its knobs, engines in turns; fewer where there are fewer."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for turn in range(20 * count):
        if len(seen) == count or not engines:
            return
        engine = list(engines)[turn % len(engines)]
        values = {knob: rng.choice(allowed) for knob, allowed in engines[engine].items() if len(allowed)}
        key = (engine, tuple(values.values()))
        if key not in seen:
            seen.add(key)
            yield engine, values


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines further", __doc__)
    parser.add_argument("out", type=Path, metavar="RECORD")
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--cells", nargs="+", default=["stages"])
    parser.add_argument("--drawn", type=int, default=150, help="plans of drawn knobs of a layer (default %(default)s)")
    parser.add_argument("--layer-seconds", type=float, default=25.0, help="for building and timing a layer's plans")
    parser.add_argument("--seconds", type=float, default=1e6, help="begins no layer after so long")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--layer", help=argparse.SUPPRESS)
    parser.add_argument("--without", nargs="*", default=[], help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.drawn < 1:
        raise InvalidInput(f"--drawn {args.drawn}: at least 1 is needed")
    args.trying = args.out.with_name(f"{args.out.name}.trying")
    if args.layer:
        return one_layer(args)
    end = time.monotonic() + args.seconds
    unfinished = 0
    for workload in workloads(STAGES if args.cells == ["stages"] else args.cells):
        fatal: list[str] = []
        code = LOST
        while code == LOST and len(fatal) < MOST_FATAL and time.monotonic() < end:
            words = again("baselines further", arguments, "--layer", workload.label, "--without", *fatal)
            code = subprocess.run(words).returncode
            if code == LOST:
                fatal.append(args.trying.read_text(encoding="utf-8"))
        unfinished += code != 0
    args.trying.unlink(missing_ok=True)
    return int(unfinished > 0)


def one_layer(args: argparse.Namespace) -> int:
    """Search and time one layer, unless the record has it; ``LOST`` when a plan took the GPU's context with it."""
    device, packed = CudaDevice(args.device), kernel_pack.read(args.pack)
    with hold(device.info):
        torch_device = TorchDevice(device.info)
        torch_device.activate()
        record: dict[str, Any] = {
            "format": FORMAT, "schema": 1, "command": command_line(), "gpu": device.info.to_dict(),
            "versions": versions(), "protocol": RoundProtocol().to_dict(), "cells": [],
        } | begun(args.out, device.info.name, "cells")  # fmt: skip
        (workload,) = workloads([args.layer])
        if any(cell["spec"] == workload.spec for cell in record["cells"]):
            return 0
        try:
            cell = cell_of(packed[workload][0], args, device, torch_device)
        except FatalPlan:
            os._exit(LOST)  # whatever would be closed needs the context
        record["cells"].append(cell)
        record["results"] = results(record["cells"])
        write_record(args.out, record)
    return 0


class FatalPlan(BaseException):
    """A plan after which the GPU's context answers no more."""


def cell_of(
    kernel: kernel_pack.Packed, args: argparse.Namespace, device: CudaDevice, torch_device: TorchDevice
) -> dict[str, Any]:
    """A layer: what was tried, and two runs of the fastest in turns."""
    wl, case = kernel.workload, GpuCase(kernel.workload)
    cell: dict[str, Any] = {"workload": wl.label, "spec": wl.spec, "batch": wl.n, "asked": [], "runs": []}
    absent: list[dict[str, str]] = []
    best: list[Tried] = []
    with ExitStack() as stack:
        sides = [our_side(stack, kernel, case, device)]
        try:
            opened = stack.enter_context(open_graph(case, torch_device, FORM))
            best, cell["tried"] = search(opened, case, torch_device, args)
            for one in best:
                launch = opened.launcher(one.index)
                about = {"side": one.kind, "plan": one.name, "epilogue": FORM.epilogue,
                         "error": opened.checked(launch, case), "counts": None, "chain_how": None}  # fmt: skip
                nbytes = sum(map(nbytes_of, (opened.x, opened.w, opened.y)))
                sides.append(Side(f"{one.kind}, {one.name}", about, torch_device, launch, nbytes))
        except Exception as error:  # the frontend's own; the other layout is worth having
            absent.append(absence(LISTED, "all", error))
        cell["vectors"] = {}
        for how in REORDERED:
            try:
                side = vectored_side(stack, case, torch_device, how)
                cell["vectors"][how] = time_launch(torch_device, side.launch, QUICK).microseconds
            except Exception as error:
                absent.append(absence(SIDE, how, error))
                continue
            if cell["vectors"][how] < FAR * min((one.microseconds for one in best), default=0.0):
                sides.append(side)
        for number in range(1, RUNS + 1):
            cell["runs"].append(one_run(number, sides, absent, wl.spec, device))
            print(said(wl, cell["runs"][-1]), flush=True)
    torch_device.torch.cuda.empty_cache()
    return cell


def one_run(
    number: int, sides: list[Side], absent: list[dict[str, str]], spec: str, device: CudaDevice
) -> dict[str, Any]:  # fmt: skip
    """All sides in turns, with graphs of this run."""
    how = RoundProtocol()
    with ExitStack() as stack:
        replays = Replays(stack, how)
        entries = [Entry(side.name, "hot", replays.hot(side.device, side.launch)) for side in sides]
        rounds = interleave(
            entries, how.rounds, random.Random(f"{spec} {number}"), Telemetry(device.info.bus_id).snapshot
        )
    return run_of(number, now(), rounds, entries, [side.to_dict() for side in sides], absent)


def search(
    opened: OpenGraph, case: Case, device: TorchDevice, args: argparse.Namespace
) -> tuple[list[Tried], dict[str, Any]]:
    """The fastest plans of each kind, and what was tried: counts, failures, all quick times. Raises FatalPlan."""

    def attempt(kind: str, name: str, build: Callable[[], int]) -> list[Tried]:
        if name in args.without:
            failed[FATAL] = failed.get(FATAL, 0) + 1
            return []
        args.trying.write_text(name, encoding="utf-8")
        try:
            index = build()
            launch = opened.launcher(index)
            opened.checked(launch, case)
            return [Tried(kind, name, index, time_launch(device, launch, QUICK).microseconds)]
        except Exception as error:
            reason = f"{kind}: {type(error).__name__}: {error}"[:160]
            failed[reason] = failed.get(reason, 0) + 1
        try:
            device.synchronize()
        except Exception:
            raise FatalPlan from None
        return []

    listed = {name: index for index, name in reversed(list(enumerate(opened.names)))}
    found: list[Tried] = []
    failed: dict[str, int] = {}
    end = time.monotonic() + args.layer_seconds / 2
    for name, index in listed.items():
        if time.monotonic() < end or not found:
            found += attempt(LISTED, name, partial(built, opened, index))
    engines = opened.engines()
    end = time.monotonic() + args.layer_seconds
    drawn = 0
    for engine, knobs in choices(engines, random.Random(case.workload.spec), args.drawn):
        if time.monotonic() > end:
            break
        drawn += 1
        name = f"engine {engine}, " + ", ".join(f"{short(knob)} {value}" for knob, value in knobs.items())
        found += attempt(DRAWN, name, partial(opened.add, engine, knobs))
    found.sort(key=lambda one: one.microseconds)
    best = [one for kind in (LISTED, DRAWN) for one in [one for one in found if one.kind == kind][:BEST]]
    tried = {
        "listed": len(listed), "drawn": drawn, "failed": failed,
        "engines": {str(engine): {short(knob): [allowed.start, allowed.stop - 1, allowed.step]
                                  for knob, allowed in knobs.items()} for engine, knobs in engines.items()},
        "right": [[one.kind, one.name, round(one.microseconds, 3)] for one in found],
    }  # fmt: skip
    return best, tried


def short(knob: Any) -> str:
    """A knob's name without the frontend's prefix."""
    return str(knob).rsplit(".", 1)[-1]


def built(opened: OpenGraph, index: int) -> int:
    """Build a listed plan; its index."""
    opened.build(index)
    return index

"""Try what ``search`` leaves out: cuDNN's engines with knobs chosen here, and its older interface on NC/32HW32.

    python benchmarks/baselines further RECORD.json --pack FOLDER --cells stages [--seconds N]

Of each layer, int8 to int8 with one scale: every plan that the heuristics list; then engines of the graph with all
values of their knobs while K is not split, and with values drawn at random (``--drawn`` plans in all, by a seed), each
built, compared with the exact answer and timed quickly; then the layout NC/32HW32. The fastest of each kind and our
kernel (``rounds --build`` writes the pack) are sampled in turns, in two runs with graphs of their own. The record is
written after every layer; started again, the program goes on with the layers that it lacks.

Some drawn knobs give a plan that does not end, or that touches memory which is not its own, and no other work of the
process comes through after that. So each layer has a process of its own, which notes each plan before it begins
(``RECORD.tried``); when one ends so or takes too long, the next goes on behind that plan. Of an engine with three such
plans no more are drawn.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.baselines.cutlass_driver import FORM
from benchmarks.baselines.plans import QUICK
from benchmarks.baselines.rounds import LOST, STAGES, said
from benchmarks.baselines.rounds_record import RUNS, results, run_of, write_record
from benchmarks.baselines.sides import Side, absence, nbytes_of, our_side
from benchmarks.baselines.tried import ENDLESS, FATAL, Log, Tried, watch
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
FATAL_OF_ENGINE = 3
"""After so many plans that end the GPU's context no more of an engine are drawn."""
MOST_FATAL = 40
"""After so many of a layer it is given up."""
FAR = 4.0
"""Beyond so many times the fastest plan, the older interface is timed quickly and not in turns."""
BEST = 2
"""Plans of each kind that are sampled in turns."""


Knobs = dict[Any, range]
"""The values that an engine takes for each of its knobs."""


SPLIT = "SPLIT_K"
"""In the name of the knob that most kernels take at its least value alone."""


def choices(engines: dict[int, Knobs], rng: random.Random, count: int) -> Iterator[tuple[int, dict[Any, int]]]:
    """``count`` different pairs of an engine and values of its knobs, engines in turns; fewer where there are fewer.

    First all values of the others with K not split, in an order of the generator's, then values drawn of all.
    """
    seen: set[tuple[int, tuple[int, ...]]] = set()
    whole = {engine: _unsplit(knobs, rng) for engine, knobs in engines.items()}
    for turn in range(20 * count):
        if len(seen) == count or not engines:
            return
        engine = list(engines)[turn % len(engines)]
        drawn = {knob: rng.choice(allowed) for knob, allowed in engines[engine].items() if len(allowed)}
        values = whole[engine].pop() if whole[engine] else drawn
        key = (engine, tuple(values.values()))
        if key not in seen:
            seen.add(key)
            yield engine, values


def _unsplit(knobs: Knobs, rng: random.Random) -> list[dict[Any, int]]:
    """All values of an engine's knobs with K not split."""
    ranges = {knob: allowed[:1] if SPLIT in str(knob) else allowed for knob, allowed in knobs.items() if len(allowed)}
    found = [dict(zip(ranges, values, strict=True)) for values in itertools.product(*ranges.values())]
    rng.shuffle(found)
    return found


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines further", __doc__)
    parser.add_argument("out", type=Path, metavar="RECORD")
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--cells", nargs="+", default=["stages"])
    parser.add_argument("--drawn", type=int, default=600, help="plans of chosen knobs of a layer (default %(default)s)")
    parser.add_argument("--layer-seconds", type=float, default=25.0, help="for building and timing a layer's plans")
    parser.add_argument("--seconds", type=float, default=1e6, help="begins no layer after so long")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--layer", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.drawn < 1:
        raise InvalidInput(f"--drawn {args.drawn}: at least 1 is needed")
    args.tried = args.out.with_name(f"{args.out.name}.tried")
    if args.layer:
        return one_layer(args)
    end = time.monotonic() + args.seconds
    unfinished = 0
    for workload in workloads(STAGES if args.cells == ["stages"] else args.cells):
        code: int | None = LOST
        fatal = 0
        while code in (LOST, None) and fatal <= MOST_FATAL and time.monotonic() < end:
            child = subprocess.Popen(again("baselines further", arguments, "--layer", workload.label))
            code = watch(child, args.tried, workload.spec)
            fatal += code in (LOST, None)
        unfinished += code != 0
    if not unfinished:
        args.tried.unlink(missing_ok=True)
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
        cell = cell_of(packed[workload][0], args, device, torch_device)
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
    best: list[tuple[Tried, int]] = []
    with ExitStack() as stack:
        sides = [our_side(stack, kernel, case, device)]
        try:
            opened = stack.enter_context(open_graph(case, torch_device, FORM))
            try:
                best, cell["tried"] = search(opened, case, torch_device, args)
            except FatalPlan:
                os._exit(LOST)  # whatever would be closed needs the context
            for one, index in best:
                launch = opened.launcher(index)
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
            if cell["vectors"][how] < FAR * min((one.microseconds or 0.0 for one, _ in best), default=0.0):
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
) -> tuple[list[tuple[Tried, int]], dict[str, Any]]:
    """The fastest plans of each kind with their indices, and what was tried: counts, failures, all quick times.

    Raises FatalPlan.
    """
    log = Log(args.tried, case.workload.spec)
    builders: dict[str, Callable[[], int]] = {}

    def attempt(kind: str, name: str, engine: int = -1) -> None:
        if name in log.known:
            return
        log.write(Tried(kind, name, engine))
        try:
            launch = opened.launcher(builders[name]())
            opened.checked(launch, case)
            log.write(Tried(kind, name, engine, time_launch(device, launch, QUICK).microseconds))
            return
        except Exception as error:
            reason = f"{kind}: {type(error).__name__}: {error}"[:160]
        try:
            device.synchronize()
        except Exception:
            raise FatalPlan from None
        log.write(Tried(kind, name, engine, None, reason))

    listed = {name: index for index, name in reversed(list(enumerate(opened.names)))}
    builders |= {name: partial(built, opened, index) for name, index in listed.items()}
    end = time.monotonic() + args.layer_seconds / 2
    for name in listed:
        if time.monotonic() < end or not log.of(LISTED):
            attempt(LISTED, name)
    engines = opened.engines()
    end = time.monotonic() + args.layer_seconds / 2
    for engine, knobs in choices(engines, random.Random(case.workload.spec), args.drawn):
        name = f"engine {engine}, " + ", ".join(f"{short(knob)} {value}" for knob, value in knobs.items())
        builders[name] = partial(opened.add, engine, knobs)
        if time.monotonic() < end and log.fatal(engine) < FATAL_OF_ENGINE:
            attempt(DRAWN, name, engine)
    best = [(one, builders[one.name]()) for kind in (LISTED, DRAWN) for one in log.of(kind)[:BEST]]
    failed: dict[str, int] = {}
    for one in log.known.values():
        if one.failed:
            reason = f"{one.kind}: {one.failed}" if one.failed in (FATAL, ENDLESS) else one.failed
            failed[reason] = failed.get(reason, 0) + 1
    tried = {
        "listed": len(listed), "drawn": sum(one.kind == DRAWN for one in log.known.values()), "failed": failed,
        "given_up": [str(engine) for engine in engines if log.fatal(engine) >= FATAL_OF_ENGINE],
        "engines": {str(engine): {short(knob): [allowed.start, allowed.stop - 1, allowed.step]
                                  for knob, allowed in knobs.items()} for engine, knobs in engines.items()},
        "right": [[one.kind, one.name, round(one.microseconds or 0.0, 3)]
                  for kind in (LISTED, DRAWN) for one in log.of(kind)],
    }  # fmt: skip
    return best, tried


def short(knob: Any) -> str:
    """A knob's name without the frontend's prefix."""
    return str(knob).rsplit(".", 1)[-1]


def built(opened: OpenGraph, index: int) -> int:
    """Build a listed plan; its index."""
    opened.build(index)
    return index

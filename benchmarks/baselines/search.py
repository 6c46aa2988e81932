"""Time every plan of cuDNN (float16, bfloat16, float8, int8) and CUTLASS on some layers, and keep the fastest.

    python benchmarks/baselines search FOUND.jsonl WORKLOAD... [--lock FILE] [--cutlass LIBRARY]

Appends to FOUND a line for each layer and side: the fastest plans with their times, and how many were tried. It goes on
where it stopped, and several processes that share a lock file build side by side and measure in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines.cutlass_driver import Driver
from benchmarks.baselines.plans import QUICK, Measure, read_lines, ways_of
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.written import append_line
from subbyte.gpu.driver import detect
from subbyte.measure.baselines import TorchDevice
from subbyte.measure.case import Case
from subbyte.workload import workloads


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines search", __doc__)
    parser.add_argument("out", type=Path, metavar="FOUND", help="file that is appended to")
    parser.add_argument("workloads", nargs="+")
    parser.add_argument("--cutlass", type=Path, help="the driver's shared library (shared/cutlass.sh)")
    parser.add_argument("--lock", type=Path, help="file that whoever measures holds")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e6, help="when to stop, from the start")
    parser.add_argument("--plan-seconds", type=float, default=6.0, help="time for the plans of one cuDNN graph")
    parser.add_argument("--sides", nargs="*", default=[""], help="only sides whose name begins so (_ for a blank)")
    text = "search again what these searches found in more than --plan-seconds"
    parser.add_argument("--again", type=Path, nargs="*", default=[], help=text)
    args = parser.parse_args(arguments)
    args.end = time.monotonic() + args.seconds
    return search(args)


def search(args: argparse.Namespace) -> int:
    """Every side of every workload that the file does not hold yet."""
    device = TorchDevice(detect()[args.device])
    device.activate()
    if args.lock:
        device.turn = FileTurn(args.lock)
    ways = ways_of(device, Driver(args.cutlass) if args.cutlass else None, args.plan_seconds)
    known = {(line["spec"], line["side"]) for line in read_lines([args.out])}
    cut = {(line["spec"], line["side"]) for line in read_lines(args.again) if line["seconds"] > args.plan_seconds}
    for workload in workloads(args.workloads):
        wanted = [side for side in ways if side.replace(" ", "_").startswith(tuple(args.sides))]
        missing = [side for side in wanted if (workload.spec, side) not in known]
        if args.again:
            missing = [side for side in missing if (workload.spec, side) in cut]
        if not missing or time.monotonic() > args.end:
            continue
        case = GpuCase(workload)
        for side in missing:
            if time.monotonic() > args.end:
                break
            append_line(args.out, found_line(case, side, ways[side], args.plan_seconds))
    return 0


def found_line(case: Case, side: str, measure: Measure, limit_s: float | None = None) -> dict[str, Any]:
    """What a search found on one side within ``limit_s`` seconds of building and timing, or why it found nothing."""
    started = time.monotonic()
    line: dict[str, Any] = {"workload": case.workload.label, "spec": case.workload.spec, "side": side}
    try:
        result = measure(case, QUICK, ())
        line |= {
            "microseconds": result.timing.microseconds, "plan": result.plan, "plans": result.plans,
            "epilogue": result.epilogue, "error": result.error, "ranking": [list(entry) for entry in result.ranking],
            "counts": result.counts and result.counts.to_dict(), "limit_seconds": limit_s,
        }  # fmt: skip
    except Exception as error:  # one side fails, the others go on
        line["reason"] = f"{type(error).__name__}: {error}"[:300]
    return {**line, "seconds": round(time.monotonic() - started, 2)}


class FileTurn(contextlib.AbstractContextManager["FileTurn"]):
    """A lock that is the turn of one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> FileTurn:
        import fcntl

        self._file = open(self._path, "a")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

"""Measures a bundle of prebuilt kernels (:mod:`subbyte.tune.bundle`) on this GPU. Needs neither TVM nor a compiler.

``python -m subbyte.measure.bundle FOLDER OUT.jsonl`` verifies and times every kernel of the bundle and appends one
line for each (see :mod:`subbyte.records.measurements`), after a header
with the workload, the space, the GPU and the protocol. An interrupted measurement can be resumed. The
measuring runs in a child process: if a kernel hangs or kills the process, its line says so and a new child
continues with the next kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from subbyte.device.launch import launch_from_dict
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.files import inside
from subbyte.gpu.device import CudaDevice, open_device
from subbyte.gpu.lock import hold
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.measure.arrivals import Share, input_is_open
from subbyte.measure.case import Case, Evaluator
from subbyte.records.measurements import FORMAT, Results, read_measurements, read_results, to_landscape
from subbyte.records.result import Failed, Result, result_from_dict

__all__ = ["BundleMeasurement", "main", "measure_bundle", "read_measurements", "read_results", "to_landscape"]
DEVICE_LOST = 75
"""Exit status of a child whose GPU context cannot be recovered: a new child can continue."""


@dataclass(frozen=True)
class BundleMeasurement:
    """What was done: lines in the file that ``measured`` and ``failed`` (total), and those ``kept`` from an earlier
    run.

    ``lost`` says that this process can no longer use the GPU and ``remaining`` kernels were not tried.
    """

    path: str
    measured: int
    failed: int
    kept: int
    remaining: int
    lost: bool
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def measure_bundle(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    device: int | CudaDevice = 0,
    protocol: TimingProtocol | None = None,
    seed: int = 0,
    indices: Iterable[int] | None = None,
    progress: Callable[[int, int, int, Result], None] | None = None,
    evaluator: Evaluator | None = None,
    share: Share | None = None,
    known: Iterable[str | os.PathLike[str]] = (),
) -> BundleMeasurement:
    """Verify and time every kernel of the bundle in ``folder``, in this process; results are appended to ``out``.

    Kernels of the same program are measured once. ``indices`` restricts the kernels, and so does ``share``: a part of a
    bundle that may still grow; kernels and programs with results in the files ``known`` are then skipped.
    ``progress(done, total, index, result)`` is called after each. With ``evaluator``, which the caller keeps, its
    device, protocol and operands are used instead, so that bundles of one workload can be measured in turn. Raises
    InvalidInput (no bundle, ``out`` belongs to another bundle, or the bundle was built for another architecture or
    workload), BrokenRecord (a damaged file), MissingDependency (no GPU, or another process measures on it).
    """
    from subbyte.records.describe import workload_from_dict
    from subbyte.records.manifest import read_manifest

    started = time.monotonic()
    manifest, entries = read_manifest(folder)
    if evaluator is not None:
        gpu, how, seed = evaluator.device, evaluator.protocol, evaluator.case.seed
    else:
        gpu, how = device if isinstance(device, CudaDevice) else open_device(device), protocol or TimingProtocol()
    workload = workload_from_dict(manifest["workload"])
    if evaluator is not None and evaluator.case.workload != workload:
        raise InvalidInput(f"{folder} is for {workload.label}, the evaluator for {evaluator.case.workload.label}")
    if manifest["space"]["arch"] != gpu.info.arch:
        raise InvalidInput(
            f"{folder} was built for {manifest['space']['arch']}, {gpu.info.name} is {gpu.info.arch}: build the "
            f"bundle for {gpu.info.arch}"
        )
    done = _open_results(Path(out), manifest, gpu, how, seed)
    for path in known:
        if Path(path).exists() and Path(path).resolve() != Path(out).resolve():
            done.add(read_results(path))
    wanted = sorted(entries) if indices is None else list(indices)
    missing = [index for index in wanted if index not in entries]
    if missing:
        raise InvalidInput(f"{folder} has no configuration {missing[0]}; it holds {len(entries)} of them")
    kept = sum(index in done.results for index in wanted)
    judge = evaluator or Evaluator(gpu, Case(workload, seed), how)
    arriving = (entries[index] for index in wanted) if share is None else share.entries(folder)
    with hold(gpu.info), open(out, "a", encoding="utf-8") as file:
        todo = (entry for entry in arriving if entry["index"] not in done.results)
        for count, entry in enumerate(todo, start=1):
            index, result = _measure_one(judge, folder, entry, done, file, _marker(out))
            if progress is not None:
                progress(kept + count, max(len(wanted), kept + count), index, result)
            if gpu.lost:
                break
    _marker(out).unlink(missing_ok=True)
    if judge is not evaluator:
        judge.close()
    if share is not None:
        wanted = [index for index, entry in read_manifest(folder)[1].items() if share.holds(entry)]
    found = [done.results[index] for index in wanted if index in done.results]
    measured = sum(result.ok for result in found)
    return BundleMeasurement(
        str(out), measured, len(found) - measured, kept, len(wanted) - len(found), gpu.lost, time.monotonic() - started
    )


def _measure_one(
    judge: Evaluator, folder: str | os.PathLike[str], entry: Mapping[str, Any], done: Results, file: IO[str],
    marker: Path,
) -> tuple[int, Result]:  # fmt: skip
    """Measure one entry, or give it the result of an equal program, and write its line."""
    from subbyte.records.describe import to_line

    index, program = entry["index"], entry.get("program", "")
    owner = done.programs.get(program)
    if owner is not None:
        result = done.results[owner]
        file.write(to_line({"index": index, "same_as": owner}) + "\n")
        done.same[index] = owner
    else:
        marker.write_text(str(index), encoding="utf-8")
        result = _evaluate(judge, Path(folder), entry)
        file.write(to_line({**_line(index, result), **({"program": program} if program else {})}) + "\n")
        if program:
            done.programs[program] = index
    file.flush()
    done.results[index] = result
    return index, result


def _evaluate(evaluator: Evaluator, folder: Path, entry: Mapping[str, Any]) -> Result:
    if "failed" in entry:
        return result_from_dict(entry["failed"])
    try:
        cubin = inside(folder, entry["cubin"]).read_bytes()
        launch = launch_from_dict(entry["launch"])
    except (OSError, KeyError, SubbyteError) as error:
        return Failed("build", f"the bundle's entry cannot be used: {error}")
    result = evaluator.evaluate(cubin, launch)
    return replace(result, seconds={"build": entry.get("seconds", 0.0), **result.seconds})


def _line(index: int, result: Result) -> dict[str, Any]:
    """One line. The device is in the header."""
    return {"index": index, **{key: value for key, value in result.to_dict().items() if key != "device"}}


def _open_results(out: Path, manifest: dict[str, Any], gpu: CudaDevice, how: TimingProtocol, seed: int) -> Results:
    """Results of an earlier run; writes the header of a new file and truncates a half-written last line."""
    from subbyte.records.describe import to_line
    from subbyte.records.landscape import make_header

    uuid = Telemetry(gpu.info.bus_id).uuid()
    if out.exists() and out.stat().st_size:
        content = out.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            out.write_bytes(whole)
        read = read_results(out)
        if header := read.header:
            if header["space"]["hash"] != manifest["space"]["hash"] or header["workload"] != manifest["workload"]:
                raise InvalidInput(f"{out} holds measurements of {header['workload']['spec']} in another space; "
                                   "choose another file")  # fmt: skip
            if header["device"].get("uuid") != uuid:
                raise InvalidInput(f"{out} holds measurements of GPU {header['device'].get('uuid')}, this is {uuid}: "
                                   "choose another file")  # fmt: skip
            return read
    device = {"runner": "cuda", **gpu.info.to_dict(), "uuid": uuid}
    protocol = {**how.to_dict(), "seed": seed}
    header = make_header(manifest["workload"], manifest["space"], device, protocol, command_line())
    out.write_text(to_line({**header, "format": FORMAT, "schema": 1}) + "\n", encoding="utf-8")
    return Results()


def _marker(out: str | os.PathLike[str]) -> Path:
    """The file that names the kernel being measured, in case the process dies."""
    return Path(f"{os.fspath(out)}.running")


def _record_death(out: str, status: int) -> bool:
    """After a child died, write a failed line for the kernel it was measuring. False if it died before any kernel."""
    marker = _marker(out)
    if not marker.exists():
        return False
    index = int(marker.read_text(encoding="utf-8"))
    marker.unlink()
    how = f"signal {-status}" if status < 0 else f"status {status}"
    line = json.dumps(_line(index, Failed("crash", f"the measuring process died ({how})")))
    with open(out, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    return True


def main(arguments: list[str] | None = None) -> int:
    """``python -m subbyte.measure.bundle``; exit status as for the command line (0 done, 2 bad input, 3 no GPU)."""
    about = "Verify and time every kernel of a bundle on this GPU."
    parser = argparse.ArgumentParser(prog="python -m subbyte.measure.bundle", description=about)
    parser.add_argument("folder", help="bundle written by `subbyte landscape record --build-only`")
    parser.add_argument("out", help="results, one JSON line per kernel; appended to when it exists")
    parser.add_argument("--device", type=int, default=0, help="GPU number")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random operands")
    parser.add_argument("--no-cold", action="store_true", help="leave the L2-cold times out")
    parser.add_argument("--min-total-ms", type=float, default=20.0, help="device time of the hot samples together")
    parser.add_argument("--limit", type=int, help="measure only this many configurations")
    parser.add_argument("--timeout-s", type=float, default=20.0, help="limit for one kernel, in seconds")
    parser.add_argument("--share", metavar="N/M", help="measure part N (from 0) of M while the bundle is being built, "
                        "until the standard input is closed")  # fmt: skip
    parser.add_argument("--known", metavar="FILE", nargs="*", default=(), help="results of other parts")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    try:
        return _child(args) if args.child else _supervise(args, list(sys.argv[1:] if arguments is None else arguments))
    except SubbyteError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _supervise(args: argparse.Namespace, arguments: list[str]) -> int:
    command = [sys.executable, "-m", "subbyte.measure.bundle", *arguments, "--child"]
    while True:
        status = subprocess.run(command).returncode
        if status == DEVICE_LOST:
            continue
        if 0 <= status <= 3 or not _record_death(args.out, status):
            return status if 0 <= status <= 3 else 1


def _child(args: argparse.Namespace) -> int:
    from subbyte.records.manifest import read_manifest

    protocol = TimingProtocol(cold=not args.no_cold, min_total_ms=args.min_total_ms, timeout_s=args.timeout_s)
    indices = sorted(read_manifest(args.folder)[1])[: args.limit] if args.limit else None
    share = Share.parse(args.share, input_is_open) if args.share else None
    step = [0.0]

    def progress(done: int, total: int, index: int, result: Result) -> None:
        if done == total or not result.ok or time.monotonic() > step[0] + 5:
            step[0] = time.monotonic()
            if isinstance(result, Failed):
                text = f"{result.kind}: {result.reason}"[:200]
            else:
                text = f"{result.microseconds:.2f} us"
            print(f"{done}/{total} configuration {index}: {text}", file=sys.stderr, flush=True)

    report = measure_bundle(
        args.folder, args.out, device=args.device, protocol=protocol, seed=args.seed, indices=indices,
        progress=progress, share=share, known=args.known,
    )  # fmt: skip
    print(json.dumps(report.to_dict()), flush=True)
    if report.lost and (report.remaining or share is not None):
        os._exit(DEVICE_LOST)  # an ordinary exit would wait for the hanging kernel
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # skips the interpreter's exit handlers: a lost context must not block the exit

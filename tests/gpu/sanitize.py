"""Kernels under compute-sanitizer: stray accesses, races in shared memory, barriers. Design variants of the wgmma
family, and a sample of every other one.

    PYTHONPATH=toolkit python tests/gpu/build_kernels.py FOLDER --variants                 where TVM is
    PYTHONPATH=toolkit python tests/gpu/sanitize.py FOLDER --record RECORD.json            on the GPU
    PYTHONPATH=toolkit python tests/gpu/sanitize.py FOLDER --record RECORD.json --missing  what is left; needs no GPU

RECORD is read, if it is there, and written anew after every variant: started again, the program goes on with what is
missing. A variant is known by the digest of its kernel's text, so that its entry stays valid while other sources
change. First comes what has no entry under any tool, then what was recorded with another text, then what did not end.
A variant counts as clean when the tool reported nothing while it ran and its output was right. Each has a time limit:
one that hangs, or takes the process down, is recorded as that, and a new process goes on behind it. Exit code 1 when
one is not clean or missing, 3 when the machine lacks a GPU or the tool.

racecheck orders accesses by barriers of shared memory (mbarrier) for the very threads that arrive. These kernels let
one lane of a warp arrive, behind ``__syncwarp``; the accesses of its 31 neighbours are then reported as races. So it
runs a second form of each variant, in which every lane arrives and nothing else differs; that must be clean.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from subbyte.device.launch import launch_from_dict
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency, SubbyteError
from subbyte.families.registry import config_from_dict
from subbyte.files import replace_file
from subbyte.gpu.device import open_device
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import command_line
from subbyte.measure.case import Case
from subbyte.numerics import Requantization
from subbyte.records.describe import now, workload_from_dict
from subbyte.workload.precision import INT4

TOOLS = ("memcheck", "synccheck", "racecheck", "initcheck")
AS_BUILT, EVERY_LANE = "as built", "every lane arrives"
CUBIN = {AS_BUILT: "cubin", EVERY_LANE: "every_lane"}
"""Names of a form's cubin in ``kernels.jsonl``; its text's digest has the same name with ``_text`` behind it."""
PLACES = ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer")
BEGIN, END, DEVICE = "VARIANT", "RESULT", "DEVICE"
DONE, TIMED_OUT, NO_TIME = "done", "timed out", "no time left"
NO_RESULT = 75
"""Exit code behind a variant without a result: the GPU may be of no more use to the process."""
START_S = 90.0
"""How long a process may take until its first variant."""
REPEATED = ("mma family", "2:4 weights")
"""Names that several kernels of a folder have: here they are told apart by configuration and workload."""
NEVER, OTHER_TEXT, NOT_ENDED, UNCLEAN, CLEAN = "never run", "with another text", "not ended", "not clean", "clean"
STATES = (NEVER, OTHER_TEXT, NOT_ENDED, UNCLEAN, CLEAN)
LEFT = STATES[:3]
"""What is run, in this order."""
Variant = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="what build_kernels.py wrote")
    parser.add_argument("--record", type=Path, help="is continued when it exists")
    parser.add_argument("--missing", action="store_true", help="only say what the record lacks; needs no GPU")
    parser.add_argument("--tools", nargs="+", default=TOOLS[:3], choices=TOOLS)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a variant under a tool (default 20)")
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no further variant after so many in all")
    parser.add_argument("--program", help="where compute-sanitizer is")
    parser.add_argument("--here", choices=tuple(CUBIN), help="run this form of the variants in this process")
    parser.add_argument("--variants", type=int, nargs="+", default=[], help="their numbers")
    args = parser.parse_args(arguments)
    try:
        if args.here:
            return run_here(args.folder, args.here, args.variants, args.limit)
        if args.record is None:
            parser.error("name the file to --record in")
        variants, record = read_variants(args.folder), read_record(args.record)
        if not args.missing:
            run_what_is_left(args, variants, record)
    except SubbyteError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return summary(record, variants, args.tools)


def run_what_is_left(args: argparse.Namespace, variants: list[Variant], record: dict[str, Any]) -> None:
    """Run what the record lacks, and write it after every variant. Raises MissingDependency."""
    program, end = args.program or find(), time.monotonic() + args.seconds
    if program is None or shutil.which(program) is None:
        raise MissingDependency(
            f"no {program or 'compute-sanitizer'} on this machine: it comes with NVIDIA's CUDA toolkit"
        )
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    run = {"date": now(), "command": command_line(), "program": program, "version": said.split("\n")[-1]}
    record["runs"].append(run)
    tries = [(tool, form) for tool in args.tools for form in forms_of(tool)]
    left = {way: [(state_of(record, way, one), n) for n, one in enumerate(variants) if CUBIN[way[1]] in one]
            for way in tries}  # fmt: skip
    for wanted in LEFT:
        for way in tries:
            numbers = [number for state, number in left[way] if state == wanted]
            held = record["tools"].setdefault(", ".join(way), {})

            def settle(number: int, entry: dict[str, Any], held: dict[str, Any] = held, form: str = way[1]) -> None:
                held[variants[number]["name"]] = {"text": text_of(variants[number], form), **entry}
                write_record(args.record, record)

            command = [program, "--tool", way[0], "--print-limit", "2000", sys.executable, __file__, str(args.folder),
                       "--here", way[1], "--limit", str(args.limit), "--variants"]  # fmt: skip
            run |= under(command, numbers, args.limit, end, settle)


def forms_of(tool: str) -> tuple[str, ...]:
    """The forms of the variants that a tool runs; the control first."""
    return (EVERY_LANE, AS_BUILT) if tool == "racecheck" else (AS_BUILT,)


def find() -> str | None:
    """Where compute-sanitizer is, None when it is not there."""
    found = [path for pattern in PLACES for path in sorted(glob.glob(pattern))]
    return shutil.which("compute-sanitizer") or (found[-1] if found else None)


# ---- the record ------------------------------------------------------------------------------------------------------


def read_variants(folder: Path) -> list[Variant]:
    """The kernels of a folder that have a digest: design variants, and a sample of every family. Raises InvalidInput
    when it holds none."""
    path = folder / "kernels.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    probed = [line for line in lines if f"{CUBIN[AS_BUILT]}_text" in line]
    for line in probed:
        if line["name"] in REPEATED:
            line["name"] += f" {line['key']} for {workload_from_dict(line['workload']).spec}"
    found = list({line["name"]: line for line in probed}.values())
    if not found:
        raise InvalidInput(f"{folder} holds no variants with a digest: run tests/gpu/build_kernels.py {folder} "
                           "--variants where TVM is")  # fmt: skip
    return found


def text_of(variant: Variant, form: str) -> str:
    """The digest of a variant's kernel text."""
    return str(variant[f"{CUBIN[form]}_text"])


def read_record(path: Path) -> dict[str, Any]:
    """A record; one of the first schema, whose entries name no text, in today's form. Raises BrokenRecord."""
    if not path.exists():
        return {"schema": 2, "runs": [], "tools": {}}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["schema"] == 2:
            return {"schema": 2, "runs": record["runs"], "tools": record["tools"]}
        tools = {
            name: {one["name"]: {"text": None, "ended": DONE, **one} for one in found["variants"]}
            for name, found in record["tools"].items()
        }
        run = {name: record.get(name) for name in ("program", "version", "device")}
        return {"schema": 2, "runs": [run], "tools": tools}
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenRecord(f"{path}: not a record of this program ({error!r})") from None


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace the record, at once: whoever is killed while writing leaves the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(record, indent=1) + "\n").encode())


def state_of(record: dict[str, Any], way: tuple[str, str], variant: Variant) -> str:
    """What a record says of a variant under a tool, in a form."""
    entry = record["tools"].get(", ".join(way), {}).get(variant["name"])
    if entry is None:
        return NEVER
    if entry["text"] != text_of(variant, way[1]):
        return OTHER_TEXT
    if entry["ended"] != DONE:
        return NOT_ENDED
    return CLEAN if entry["clean"] else UNCLEAN


def summary(record: dict[str, Any], variants: list[Variant], tools: Iterable[str]) -> int:
    """Print a line for each tool and form; 1 when something that must be clean is not. (racecheck on kernels as they
    are built reports what notes/correctness.md explains; those with another form for it must only have run.)"""
    fine, excused = True, {one["name"] for one in variants if CUBIN[EVERY_LANE] in one}
    for way in [(tool, form) for tool in tools for form in forms_of(tool)]:
        found: dict[str, list[str]] = {state: [] for state in STATES}
        for one in (one for one in variants if CUBIN[way[1]] in one):
            found[state_of(record, way, one)].append(one["name"])
        counts = [f"{len(names)} {state}" for state, names in reversed(found.items()) if names]
        named = [f"  {state}: {', '.join(found[state])}" for state in (*LEFT, UNCLEAN) if found[state]]
        print("\n".join([f"{', '.join(way)}: {', '.join(counts)}", *named]))
        expected = excused if way == ("racecheck", AS_BUILT) else set()
        fine &= not any(found[state] for state in LEFT) and expected.issuperset(found[UNCLEAN])
    return 0 if fine else 1


# ---- variants under a tool -------------------------------------------------------------------------------------------


class Process:
    """A command with all processes it starts, read line by line."""

    def __init__(self, command: list[str]) -> None:
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        assert self._child.stdout is not None
        self._pipe = self._child.stdout.fileno()
        self._held = b""

    def line(self, until: float) -> str | None:
        """The next line, None behind the last one. Raises TimeoutError, also when it does not stop printing: what has
        come is given, nothing more is read behind the time."""
        while b"\n" not in self._held:
            if time.monotonic() > until:
                raise TimeoutError
            if select.select([self._pipe], [], [], 0.2)[0]:
                part = os.read(self._pipe, 1 << 16)
                if part:
                    self._held += part
                    continue
                break
            if self._child.poll() is not None:  # what it started may still hold the pipe
                break
        if not self._held:
            return None
        text, _, self._held = self._held.partition(b"\n")
        return text.decode(errors="replace")

    def ended(self) -> str:
        """How it ended; whatever is left of it is stopped."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(5.0)
        self.stop()
        status = self._child.returncode
        return f"signal {-status}" if status < 0 else f"exit code {status}"

    def stop(self) -> None:
        """Stop it with all that it started."""
        assert self._child.stdout is not None
        if not self._child.stdout.closed:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child.stdout.close()


def under(
    command: list[str], numbers: list[int], limit: float, end: float, settle: Callable[[int, dict[str, Any]], None]
) -> dict[str, Any]:
    """Run variants under a tool; each entry goes to ``settle``. Behind one that did not end a new process goes on with
    the next. Returns what is known of the device. Raises MissingDependency when none can begin."""
    known: dict[str, Any] = {}
    waiting = list(numbers)
    while waiting and time.monotonic() < end:
        settled: list[tuple[int, dict[str, Any]]] = []
        begun = 0
        with closing(sections(Process([*command, *map(str, waiting)]), limit, end)) as printed:
            for lines, how in printed:
                if not lines[0].startswith(f"{BEGIN} "):
                    known |= begun_on(lines, how)
                    continue
                begun += 1
                if how != NO_TIME:
                    settled.append((waiting[begun - 1], entry_of(lines, how)))
                    settle(*settled[-1])
                if how is not None:
                    judge(settled, lines, how, settle)
        waiting = waiting[begun:]
    return known


def begun_on(lines: list[str], how: str | None) -> dict[str, Any]:
    """The device that a process named before its first variant. Raises MissingDependency when it came to an end."""
    if how is not None and how != NO_TIME:
        said = [line for line in lines if line.startswith("error: ")] or lines[-1:]
        raise MissingDependency(f"no variant could begin ({how}): {said[0].removeprefix('error: ')}")
    told = [line.removeprefix(f"{DEVICE} ") for line in lines if line.startswith(f"{DEVICE} ")]
    return {"device": json.loads(told[0])} if told else {}


def sections(process: Process, limit: float, end: float) -> Generator[tuple[list[str], str | None], None, None]:
    """The lines before the first variant, then those of each; with the last how it came to its end."""
    lines, allowed, since = [""], START_S, time.monotonic()
    try:
        while True:
            line = process.line(min(since + allowed, end))
            if line is None:
                yield lines, process.ended()
                return
            if line.startswith(f"{BEGIN} "):
                yield lines, None
                lines, allowed, since = [], limit, time.monotonic()
            lines.append(line)
    except TimeoutError:
        yield lines, NO_TIME if time.monotonic() > end else f"{TIMED_OUT} after {allowed:g} s"
    finally:
        process.stop()


def entry_of(lines: list[str], how: str | None) -> dict[str, Any]:
    """What was printed from the beginning of a variant to that of the next. ``how`` is set for the last one alone."""
    name, spec, key = json.loads(lines[0].removeprefix(f"{BEGIN} "))
    reports = [line for line in lines if re.match(r"=+\s+(?!COMPUTE|\w+ SUMMARY)\S", line)]
    results = [line for line in lines if line.startswith(f"{END} ")]
    wrong = int(results[0].split()[1]) if results else None
    ended = DONE if results and not (how or "").startswith(TIMED_OUT) else how or "without a result"
    told = [line for line in lines if line.startswith("failed: ")]
    return {"name": name, "workload": spec, "config": key, "ended": ended, "wrong": wrong, "reports": len(reports),
            "races": races(reports), "first": [*told, *reports[:2]], "clean": ended == DONE and not reports
            and wrong == 0}  # fmt: skip


def judge(
    settled: list[tuple[int, dict[str, Any]]], lines: list[str], how: str, settle: Callable[[int, dict[str, Any]], None]
) -> None:
    """At a process's end: what its tool counted must be what it reported while the variants ran. Of a tool that counted
    nothing, or counted errors that belong to no variant, no variant is clean."""
    if how != "exit code 0":
        return
    counted = [int(found[1]) for line in lines if (found := re.search(r"SUMMARY: (\d+)", line))]
    reported = any(entry["reports"] for _, entry in settled)
    if counted and (reported or not any(counted)):
        return
    reason = f"the tool counted {counted[0]} reports in all" if counted else "the tool gave no summary"
    for number, entry in settled:
        settle(number, {**entry, "ended": reason, "clean": False})


def races(reports: list[str]) -> dict[str, int]:
    """What racecheck reported, as pairs of accesses by kind ("Write, Read": the first, and that which came upon it)."""
    found: Counter[str] = Counter()
    first = ""
    for line in reports:
        begins = re.search(r"Race reported between (\w+) access", line)
        first = begins[1] if begins else first
        other = re.search(r"and (\w+) access at .*?\[(\d+) hazards?\]", line)
        if other:
            found[f"{first}, {other[1]}"] += int(other[2])
    return dict(found)


# ---- in the process under the tool -----------------------------------------------------------------------------------


def run_here(folder: Path, form: str, numbers: list[int], limit: float) -> int:
    """Each variant once, with its output compared; what the tool finds stands between the printed lines. Ends with
    NO_RESULT behind a variant that gave none: the GPU may be of no more use to the process."""
    threading.Thread(target=end_with_input, daemon=True).start()
    variants, device = read_variants(folder), open_device(0)
    print(f"{DEVICE} {json.dumps({'name': device.info.name, 'arch': device.info.arch})}", flush=True)
    for variant in (variants[number] for number in numbers):
        wl = workload_from_dict(variant["workload"])
        case = Case(wl)
        if wl.precision.output == INT4.output:
            drawn = case.requant
            case = Case(wl, requant=Requantization(drawn.bias, drawn.multiplier, drawn.shift, tuple(variant["clip"])))
        key = config_from_dict(variant["config"]).key
        print(f"\n{BEGIN} {json.dumps([variant['name'], wl.spec, key])}", flush=True)
        try:
            cubin = (folder / variant[CUBIN[form]]).read_bytes()
            with GpuKernel(cubin, launch_from_dict(variant["launch"]), device) as gpu:
                words = gpu.run({argument.name: case.operand(argument) for argument in gpu.inputs}, limit)["Out"]
                report = case.check(words, gpu.outputs[0])
        except SubbyteError as error:
            print(f"failed: {error}", flush=True)
            os._exit(NO_RESULT)  # without waiting for a kernel that may never end
        print(f"{END} {report.wrong} of {np.size(words)} words", flush=True)
    return 0


def end_with_input() -> None:
    """End this process when whoever started it is there no more, whatever the GPU does."""
    while os.read(0, 1):
        pass
    os._exit(NO_RESULT)


if __name__ == "__main__":
    sys.exit(main())

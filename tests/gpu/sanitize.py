"""The warpgroup family's design variants under compute-sanitizer: stray accesses, races in shared memory, barriers.

    PYTHONPATH=toolkit python tests/gpu/sanitize.py FOLDER --out RECORD.json

FOLDER is what build_kernels.py wrote. Each tool runs all variants once in one process, with a time limit; a variant
counts as clean when the tool reported nothing while it ran and its output was right. Exit code 1 when one is not.

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
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from subbyte.data import Requantization
from subbyte.errors import SubbyteError
from subbyte.measure.case import Case, launch_from_dict
from subbyte.measure.device import open_device
from subbyte.measure.gpu import GpuKernel
from subbyte.schedule import WarpgroupConfig
from subbyte.workload import ConvWorkload

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
AS_BUILT, EVERY_LANE = "as built", "every lane arrives"
PLACES = ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer")
BEGIN, END = "VARIANT", "RESULT"
OUT_OF_TIME = "stopped: out of time"
NO_RESULT = 75
WAIT_S = 5.0
"""Exit code behind a variant without a result, and how long one may take."""
NOT_HERE = ("recorded", "default", "drawn", "chain", "chain at once", "warp family")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tools", nargs="+", default=TOOLS[:3], choices=TOOLS)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each tool (default 120)")
    parser.add_argument("--here", choices=(AS_BUILT, EVERY_LANE), help="run this form of the variants in this process")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the variant to begin with there")
    args = parser.parse_args()
    if args.here:
        return run_all(args.folder, args.here, args.first)
    program = find()
    record: dict[str, Any] = {"schema": 1, "program": program, "tools": {}}
    if program is None:
        record["missing"] = "no compute-sanitizer on this machine"
        if args.out:
            args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    else:
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        record["version"] = said.strip().split("\n")[-1]
        record["device"] = {"name": open_device(0).info.name, "arch": open_device(0).info.arch}
        for tool in args.tools:
            forms = (AS_BUILT, EVERY_LANE) if tool == "racecheck" else (AS_BUILT,)
            for form in forms:
                record["tools"][f"{tool}, {form}"] = under(program, tool, form, args.folder, args.limit)
                if args.out:
                    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for tool, found in record["tools"].items():
        unclean = [f"{one['name']} ({one['races'] or one['first']}, {one['wrong']} wrong)"
                   for one in found["variants"] if not one["clean"]]  # fmt: skip
        print(f"{tool}: {found['ran']} variants, {found['ran'] - len(unclean)} clean, {found['seconds']} s, "
              f"{found['ended']}; {'; '.join(found['summary'])} {', '.join(unclean)}")  # fmt: skip
    if program is None:
        print(record["missing"])
    needed = [found["clean"] for name, found in record["tools"].items() if name != f"racecheck, {AS_BUILT}"]
    return 0 if needed and all(needed) else 1


def find() -> str | None:
    """Where compute-sanitizer is, None when it is not there."""
    found = [path for pattern in PLACES for path in sorted(glob.glob(pattern))]
    return shutil.which("compute-sanitizer") or (found[-1] if found else None)


def under(program: str, tool: str, form: str, folder: Path, limit: float) -> dict[str, Any]:
    """All variants under one tool. Behind one without a result a new process goes on with the next."""
    command = [program, "--tool", tool, "--print-limit", "2000", sys.executable, __file__, str(folder), "--here", form]
    started, texts, variants = time.monotonic(), [], []
    while True:
        left = limit - (time.monotonic() - started)
        ended, text = _run([*command, "--from", str(len(variants))], left)
        texts.append(text)
        found = sections(text)
        variants += found
        if not found or found[-1]["wrong"] is not None or ended == OUT_OF_TIME:
            break
    lines = "\n".join(texts).splitlines()
    summary = [line.removeprefix("========= ") for line in lines if "SUMMARY" in line]
    clean = bool(variants) and bool(summary) and all(one["clean"] for one in variants)
    told = [] if clean else [line for line in lines if line.startswith("=========")][:20] or lines[-10:]
    return {"seconds": round(time.monotonic() - started, 1), "ended": ended, "summary": summary, "clean": clean,
            "ran": len(variants), "told": told, "variants": variants}  # fmt: skip


def _run(command: list[str], limit: float) -> tuple[str, str]:
    """How a command ended, and what it printed."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=max(limit, 1)
        )
        return f"exit code {done.returncode}", done.stdout
    except subprocess.TimeoutExpired as stopped:
        text = stopped.stdout.decode(errors="replace") if isinstance(stopped.stdout, bytes) else ""
        return OUT_OF_TIME, text


def sections(text: str) -> list[dict[str, Any]]:
    """What was printed between the beginning and the end of each variant."""
    found = []
    for part in text.split(f"\n{BEGIN} ")[1:]:
        head, _, rest = part.partition("\n")
        name, spec, key = json.loads(head)
        told, _, after = rest.partition(f"{END} ")
        reports = [line for line in told.splitlines() if re.match(r"=+\s+(?!COMPUTE)\S", line)]
        wrong = int(after.split()[0]) if after.strip() else None
        found.append({"name": name, "workload": spec, "config": key, "wrong": wrong, "reports": len(reports),
                      "races": races(reports), "first": reports[:2], "clean": not reports and wrong == 0})  # fmt: skip
    return found


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


def run_all(folder: Path, form: str, first: int) -> int:
    """Each variant from number ``first`` on once, with its output compared; what the tool finds stands between the two
    printed lines. Ends with NO_RESULT behind a variant that gave none: the GPU may be of no more use to the process."""
    device = open_device(0)
    lines = [json.loads(line) for line in (folder / "kernels.jsonl").read_text().splitlines()]
    wanted = "cubin" if form == AS_BUILT else "every_lane"
    chosen = {line["name"]: line for line in lines if line["name"] not in NOT_HERE and wanted in line}
    for line in list(chosen.values())[first:]:
        wl = ConvWorkload(**line["workload"])
        drawn = Case(wl).requant
        case = Case(wl, requant=Requantization(drawn.bias, drawn.multiplier, drawn.shift, tuple(line["clip"])))
        key = WarpgroupConfig.from_dict(line["config"]).key
        print(f"\n{BEGIN} {json.dumps([line['name'], wl.spec, key])}", flush=True)
        try:
            with GpuKernel((folder / line[wanted]).read_bytes(), launch_from_dict(line["launch"]), device) as gpu:
                words = gpu.run({argument.name: case.operand(argument) for argument in gpu.inputs}, WAIT_S)["Out"]
                report = case.check(words, gpu.outputs[0])
        except SubbyteError as error:
            print(f"failed: {error}", flush=True)
            os._exit(NO_RESULT)  # without waiting for a kernel that may never end
        print(f"{END} {report.wrong} of {np.size(words)} words", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compile, verify and time texts of likely configurations of layers on this GPU. Needs NVRTC, no TVM.

    python benchmarks/network times TEXTS.jsonl.xz OUT.json [--seconds 100] [--again 6 SECOND.json]

A line of the texts has ``cell`` (a layer's spec), ``config`` (a configuration's key; of two launches both, with the
images of each) and ``cuda``, perhaps the machine code (``sample --build``); the lines of a layer
are measured in their order, so that repeated ones give several rounds of turns. Every element of
every output is compared with a reference that is computed on the GPU; a kernel is timed by graph replay, hot L2. What
the compiler's report refuses, and what is wrong, is recorded with its reason. With ``--again`` the fastest of a layer
are verified and timed a second time behind all others, into a record of their own: what ``taken`` asks for. What
``train`` reads, and what default kernels are judged by.
"""

from __future__ import annotations

import json
import lzma
import os
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.gpu_case import GpuCase
from subbyte.device.arch import arch
from subbyte.device.joined_text import separate
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import config_from_key, family_of
from subbyte.families.base import Plan
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import open_device
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel.build import machine_code
from subbyte.kernel.edit import EditedKernel
from subbyte.kernel.split import SplitKernel, SplitPlan, split_plan
from subbyte.measure.case import Evaluator
from subbyte.records.result import Measured

FORMAT = "subbyte-network-times"
PROTOCOL = TimingProtocol(launches=20, warmup_ms=2.0, min_total_ms=8.0, repeats=5, cold=False, timeout_s=5.0)
Line = dict[str, str]


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network times", __doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=100.0, help="begin no kernel after that (default 100)")
    parser.add_argument("--again", nargs=2, metavar=("COUNT", "SECOND"), default=("0", ""))
    args = parser.parse_args(arguments)
    end = time.monotonic() + args.seconds
    count, second = _again(*args.again)
    for path in filter(None, (args.out, second)):
        prove_writable(path)
    found, again = measured(lines_of(args.texts), end, count)
    record = {
        "format": FORMAT, "schema": 1, "command": command_line(), "date": datetime.now(UTC).date().isoformat(),
        "protocol": PROTOCOL.__dict__, **found,
    }  # fmt: skip
    write_file(args.out, (json.dumps(record) + "\n").encode())
    if second is not None:
        write_file(second, (json.dumps({**record, "left": 0, "kernels": again}) + "\n").encode())
    right = sum("microseconds" in one for one in record["kernels"])
    print(f"{right} kernels right and timed, {len(record['kernels']) - right} not, {record['left']} not begun")
    return 0


def _again(count: str, second: str) -> tuple[int, Path | None]:
    """How many of a layer are timed again, and where that is written. Raises InvalidInput."""
    if not second:
        return 0, None
    if not count.isdigit() or not int(count):
        raise InvalidInput(f"--again {count} {second}: expected a number of kernels and a file, such as 6 second.json")
    return int(count), Path(second)


def lines_of(path: Path) -> list[Line]:
    """The texts of a file, FILE.jsonl or FILE.jsonl.xz. Raises InvalidInput."""
    try:
        raw = path.read_bytes()
        lines = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode().splitlines()
        return [checked_line(json.loads(line)) for line in lines]
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError) as error:
        raise InvalidInput(f"{path}: no texts of kernels ({error!r}); `sample` writes them") from None


def checked_line(given: Mapping[str, str]) -> Line:
    """A line's fields; ``cubin`` is the machine code in base64, where it was built before. Raises KeyError."""
    return {name: given[name] for name in ("cell", "config", "cuda")} | {
        name: given[name] for name in ("cubin",) if name in given
    }


def plan_of(line: Line) -> Plan:
    """The plan of a line's kernel, or of its kernels, whose key names the images of each."""
    layer = subbyte.workload(line["cell"])
    if ":" in line["config"]:
        return split_plan(layer, line["config"], arch("sm_90a"))
    config = config_from_key(line["config"])
    return family_of(config).plan(layer, config, arch("sm_90a"))


def built(line: Line) -> bytes | str:
    """Machine code of a line's text, or why there is none. Of several kernels each is built apart, and then all."""
    if "cubin" in line:
        return b64decode(line["cubin"])
    try:
        plan, texts = plan_of(line), separate(line["cuda"])
        if isinstance(plan, SplitPlan):
            parts = [EditedKernel(one, text) for one, text in zip(plan.plans, texts, strict=True)]
            return SplitKernel.joining(plan.workload, parts).cubin
        return machine_code(plan, line["cuda"])[0]
    except SubbyteError as error:
        return str(error)[:300]


def prepared(cell: str, lines: Sequence[Line]) -> GpuCase:
    """Operands of a layer in every form that its kernels read."""
    case = GpuCase(subbyte.workload(cell), seed=1)
    for line in lines:
        for argument in plan_of(line).launch.arguments:
            if argument.role == "in":
                case.operand(argument)
    return case


def measured(lines: Sequence[Line], end: float, again: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A result for each line that was begun before ``end``; the layers in their order. And second results of the
    ``again`` fastest of each."""
    cells: dict[str, list[Line]] = {}
    for line in lines:
        cells.setdefault(line["cell"], []).append(line)
    found: list[dict[str, Any]] = []
    second: list[dict[str, Any]] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        different = {(line["cell"], line["config"]): line for line in lines}  # a repeated line is built once
        cases = {cell: pool.submit(prepared, cell, own) for cell, own in cells.items()}  # before hundreds of builds
        builds = {key: pool.submit(built, line) for key, line in different.items()}
        begun: dict[str, tuple[Future[GpuCase], list[Future[bytes | str]]]] = {
            cell: (cases[cell], [builds[cell, line["config"]] for line in own]) for cell, own in cells.items()
        }
        device = open_device(0)  # behind the fork of the builders
        for cell, (case, cubins) in begun.items():
            if time.monotonic() < end:
                own, more = _of_layer(cells[cell], case.result(), [one.result() for one in cubins], device, end, again)
                found, second = found + own, second + more
        pool.shutdown(cancel_futures=True)
    return {"gpu": device.info.to_dict(), "left": len(lines) - len(found), "kernels": found}, second


def _of_layer(
    lines: Sequence[Line], case: GpuCase, builds: Sequence[bytes | str], device: Any, end: float, again: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results of a layer's kernels, one after the other, and those of the fastest once more."""
    evaluator = Evaluator(device, case, PROTOCOL)

    def result_of(place: int) -> dict[str, Any]:
        line, cubin = lines[place], builds[place]
        result: dict[str, Any] = {"cell": line["cell"], "config": line["config"]}
        if isinstance(cubin, str):
            return {**result, "kind": "build", "reason": cubin}
        one = evaluator.evaluate(cubin, plan_of(line).launch)
        if isinstance(one, Measured):
            return {**result, "microseconds": one.microseconds, "samples": one.samples, "clocks": one.clocks}
        return {**result, "kind": one.kind, "reason": one.reason[:300]}

    found: list[dict[str, Any]] = []
    for place in range(len(lines)):
        if time.monotonic() > end or device.lost:
            break
        found.append(result_of(place))
    right = sorted((one["microseconds"], place) for place, one in enumerate(found) if "microseconds" in one)
    second = [result_of(place) for _, place in right[:again] if not device.lost]
    evaluator.close()
    print(f"{lines[0]['cell']}: {len(found)} kernels, best {right[0][0] if right else 0:.2f} us", flush=True)
    return found, second

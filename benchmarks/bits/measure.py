"""Compile, verify and time the texts of ``texts`` on this GPU. Needs NVRTC, no TVM.

Every element of every output is compared with the reference, random operands over the whole range of their types. A
kernel is timed by graph replay, hot L2, without programmatic dependent launch. The three fastest of each cell are
measured again at the end, in turns over all cells: ``again`` is how far both medians are apart.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.bits.texts import cell_of
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import compiled
from subbyte.device.arch import arch
from subbyte.families import config_from_key, family_of
from subbyte.files import prove_writable, write_file
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel.execute import expected_layer, random_operands, random_residual
from subbyte.kernel.operands import kept_sums
from subbyte.kernel.resources import read_resources

PROTOCOL = TimingProtocol(cold=False, launches=50)
BEST = 3


class Cell:
    """Operands and answer of a cell."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.workload, self.output = cell_of(name)
        self.operands: Any = None
        self.wanted: Any = None

    def measure(self, key: str, cubin: bytes, log: str) -> dict[str, Any]:
        """A kernel's time and what its outputs are worth."""
        config = config_from_key(key)
        target = arch("sm_90a")
        plan = family_of(config).plan(self.workload, config, target, self.output)
        kernel = subbyte.Kernel(plan)
        if self.operands is None:
            self.operands = (*random_operands(kernel, 1), random_residual(kernel, 2))
            self.wanted = expected_layer(kernel, *self.operands)
        resources = read_resources(log, target, plan.launch.block[0], plan.shared_bytes)
        with GpuKernel(cubin, plan.launch, 0) as gpu:
            words = gpu.run(kernel.pack(*self.operands))
            wrong = int(np.count_nonzero(kernel.unpack(words["Out"]) != self.wanted.values))
            if "Sum" in words:
                wrong += int(
                    np.count_nonzero(kept_sums(words["Sum"], self.workload, kernel.fusion) != self.wanted.sums)
                )
            timing = gpu.time(PROTOCOL)
        return {
            "cell": self.name, "config": key, "microseconds": timing.microseconds, "wrong": wrong,
            "least": min(timing.samples), "most": max(timing.samples), "registers": resources.registers,
            "local_bytes": resources.local_bytes, "clock": timing.after.to_dict(), "gpu": dict(timing.device),
        }  # fmt: skip


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure them."""
    parser = parser_of("bits measure", __doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=400.0, help="begin no kernel after that (default 400)")
    asked = parser.parse_args(arguments)
    prove_writable(asked.out)
    end = time.monotonic() + asked.seconds
    lines = asked.texts.read_text(encoding="utf-8").splitlines()
    texts = {json.loads(line)["cuda"]: line for line in lines}  # batches may share one; a second time has no report
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        of_text = dict(zip(texts, pool.map(compiled, texts.values(), chunksize=2), strict=True))
    built = [of_text[json.loads(line)["cuda"]] for line in lines]
    found: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    ready: dict[tuple[str, str], tuple[Cell, bytes, str]] = {}
    cell = Cell("resnet50.stage2@8:w1a1")
    for line, result in zip(lines, built, strict=True):
        entry = json.loads(line)
        if entry["cell"] != cell.name:
            cell = Cell(entry["cell"])
        if isinstance(result, str) or not result[1]:
            failed.append({**entry, "cuda": "", "reason": result if isinstance(result, str) else "no report"})
            continue
        if time.monotonic() > end:
            break
        ready[entry["cell"], entry["config"]] = (cell, *result)
        found.append(cell.measure(entry["config"], *result))
        print(found[-1]["cell"], entry["config"], found[-1]["microseconds"], found[-1]["wrong"], flush=True)
    _again(found, ready, end)
    devices = {json.dumps(one.pop("gpu"), sort_keys=True) for one in found}
    record = {
        "command": command_line(), "date": datetime.now(UTC).date().isoformat(),
        "gpus": [json.loads(text) for text in devices], "protocol": PROTOCOL.__dict__, "kernels": found,
        "failed": failed,
    }  # fmt: skip
    write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return 1 if any(one["wrong"] for one in found) else 0


def _again(found: list[dict[str, Any]], ready: dict[tuple[str, str], tuple[Cell, bytes, str]], end: float) -> None:
    """The fastest of each cell once more, in turns."""
    for place in range(BEST):
        for cell in dict.fromkeys(one["cell"] for one in found):
            fastest = sorted((one for one in found if one["cell"] == cell), key=lambda one: one["microseconds"])
            if place < len(fastest) and time.monotonic() < end:
                one = fastest[place]
                kept, cubin, log = ready[cell, one["config"]]
                one["second"] = kept.measure(one["config"], cubin, log)["microseconds"]
                one["again"] = abs(one["second"] / one["microseconds"] - 1)

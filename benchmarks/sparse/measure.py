"""Compile, verify and time the texts of ``texts`` on this GPU. Needs NVRTC, no TVM.

Operands are drawn from the whole range of int4, weights with two of four neighbouring channels 0, or with those blocks
0 that pruning normal weights by magnitude leaves out. Every element of
every output, of the dense twins too, is compared with a product of its own that knows no packing. A kernel is timed by
graph replay, hot L2, without programmatic dependent launch. Then the fastest of each cell and its dense twin are timed
in turns, ``--rounds`` times: ``median`` is of all rounds, ``ratio`` the median of dense time over sparse time in each.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import all_compiled, lines_of
from benchmarks.sparse.texts import BLOCK_WEIGHTS, typed
from subbyte import sparse
from subbyte.errors import BuildFailed, SubbyteError
from subbyte.families import config_from_key, family_of
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import random_operands
from subbyte.kernel.operands import activation_words, parameter_words, weight_words
from subbyte.kernel.resources import read_resources
from subbyte.numerics import random_values, reference
from subbyte.workload.precision import SUMS

PROTOCOL = TimingProtocol(cold=False, launches=50)
ROUND = TimingProtocol(cold=False, launches=50, repeats=3, min_total_ms=9.0, spin_up_ms=0.0)


class Cell:
    """Operands and answers of a cell, the same for all of its kernels."""

    def __init__(self, name: str) -> None:
        self.name, self.workload = name, subbyte.workload(typed(name))
        self.operands: Any = None
        self.wanted: dict[str, Any] = {}
        self.open: dict[str, GpuKernel] = {}
        self.kept: dict[tuple[str, str], Any] = {}

    def kernel(self, entry: dict[str, Any]) -> Kernel:
        """What a line describes."""
        config = config_from_key(entry["config"])
        return Kernel(make_plan(self.workload, config, "sm_90a", entry["output"], None, "fixed"))

    def inputs(self, kernel: Kernel) -> dict[str, Any]:
        """The words of the operands; each form is packed once."""
        if self.operands is None:
            self.operands = self._drawn(kernel)
        x, w, requant = self.operands
        for one in kernel.launch.arguments:
            place = one.name, one.form
            if one.role != "in" or place in self.kept:
                continue
            if one.name == "A":
                self.kept[place] = activation_words(one, self.workload, x)
            elif one.name == "Wt":
                self.kept[place] = weight_words(one, self.workload, w)
            else:
                self.kept[place] = parameter_words(one, self.workload, requant, w)
        return {one.name: self.kept[one.name, one.form] for one in kernel.launch.arguments if one.role == "in"}

    def _drawn(self, kernel: Kernel) -> Any:
        x, w, requant = random_operands(kernel, 1)
        types, rng = self.workload.precision.weights, np.random.default_rng(2)
        if types.live_percent is not None:
            kept = sparse.prune(rng.standard_normal(w.shape, np.float32), types.sparsity) != 0
            w = np.where(kept, random_values(types.dense, w.shape, rng), np.int8(0))
        return x, w, requant

    def answer(self, output: str) -> Any:
        """What a kernel must give."""
        x, w, requant = self.operands
        if not self.wanted:
            sums = reference(self.workload, x, w)
            self.wanted = {SUMS: sums, "int4": requant.apply(sums)}
        return self.wanted[output]

    def wrong(self, kernel: Kernel, words: Any) -> int:
        """Elements that are not what they must be. Words that were found right once need not be unpacked again."""
        place = kernel.output, kernel.argument("Out").form
        if place in self.kept and np.array_equal(words, self.kept[place]):
            return 0
        count = int(np.count_nonzero(kernel.unpack(words) != self.answer(kernel.output)))
        if count == 0:
            self.kept[place] = words
        return count

    def measure(self, entry: dict[str, Any], cubin: bytes, log: str, device: CudaDevice) -> dict[str, Any]:
        """A kernel's time, and what its output is worth. It stays open for the rounds."""
        kernel = self.kernel(entry)
        plan = kernel.plan
        resources = read_resources(log, plan.arch, plan.launch.block[0], plan.shared_bytes)
        reason = family_of(plan.config).refused(cubin, log, resources.local_bytes)
        about = {"cell": self.name, "config": entry["config"], "dense": entry["dense"], "output": entry["output"],
                 "registers": resources.registers, "local_bytes": resources.local_bytes, "refused": reason}  # fmt: skip
        gpu = GpuKernel(cubin, plan.launch, device)
        try:
            about["wrong"] = self.wrong(kernel, gpu.run(self.inputs(kernel))["Out"])
            about["elements"] = self.answer(kernel.output).size
            if entry["output"] == SUMS:
                return about
            timing = gpu.time(PROTOCOL)
        except SubbyteError as error:
            return {**about, "wrong": None, "reason": str(error)[:300]}
        finally:
            if entry["output"] == SUMS:
                gpu.close()
        self.open[entry["config"]] = gpu
        return {**about, "microseconds": timing.microseconds, "least": min(timing.samples),
                "most": max(timing.samples), "clock": timing.after.to_dict(), "gpu": dict(timing.device)}  # fmt: skip

    def rounds(self, found: Sequence[dict[str, Any]], count: int, best: int) -> list[dict[str, Any]]:
        """The fastest kernels and the dense twin, in turns."""
        timed = [one for one in found if one["cell"] == self.name and "microseconds" in one and one["wrong"] == 0]
        sparse = sorted((one for one in timed if not one["dense"]), key=lambda one: one["microseconds"])[:best]
        sides = [one["config"] for one in timed if one["dense"]] + [one["config"] for one in sparse]
        times: dict[str, list[float]] = {key: [] for key in sides}
        for turn in range(count):
            for key in sides if turn % 2 == 0 else reversed(sides):
                times[key].append(self.open[key].time(ROUND).microseconds)
        dense = times[sides[0]]
        return [
            {"cell": self.name, "config": key, "dense": key == sides[0], "median": statistics.median(samples),
             "samples": samples,
             "ratio": statistics.median(a / b for a, b in zip(dense, samples, strict=True))}
            for key, samples in times.items()
        ]  # fmt: skip

    def close(self) -> None:
        """Free the kernels."""
        for gpu in self.open.values():
            gpu.close()
        self.open = {}


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure them."""
    parser = parser_of("sparse measure", __doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=480.0, help="begin no kernel after that (default 480)")
    parser.add_argument("--rounds", type=int, default=12, help="of the fastest kernels and the twin (default 12)")
    parser.add_argument("--best", type=int, default=3, help="kernels in the rounds (default 3)")
    asked = parser.parse_args(arguments)
    prove_writable(asked.out)
    end = time.monotonic() + asked.seconds
    lines = lines_of(asked.texts)
    built = all_compiled(lines, chunksize=2)
    device = CudaDevice(0)
    found: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    entries = [(one, result) for line, result in zip(lines, built, strict=True) for one in at_each(json.loads(line))]
    for name in dict.fromkeys(entry["cell"] for entry, _ in entries):
        cell = Cell(name)
        for entry, result in entries:
            if entry["cell"] != name or time.monotonic() > end:
                continue
            if isinstance(result, str):
                failed.append({**entry, "cuda": "", "reason": result})
                continue
            try:
                one = cell.measure(entry, *result, device)
            except BuildFailed as error:
                failed.append({**entry, "cuda": "", "reason": str(error)[:300]})
                continue
            found.append(one)
            shown = [name, one["config"], one["output"], one.get("microseconds"), "wrong", one["wrong"]]
            print(*shown, one["refused"] or "", flush=True)
        if time.monotonic() < end:
            turns += cell.rounds(found, asked.rounds, asked.best)
            for one in turns:
                if one["cell"] == name:
                    print("  in turns", one["config"], round(one["median"], 3), round(one["ratio"], 4), flush=True)
        cell.close()
        write_record(asked.out, found, failed, turns)
    return 1 if any(one["wrong"] != 0 for one in found) else 0


def at_each(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """A line of ``texts`` as what is to be measured: once, or at each share of live blocks."""
    shares = [BLOCK_WEIGHTS.format(percent) for percent in entry.pop("live", [])]
    return [{**entry, "cell": f"{entry['cell']}:{types}"} for types in shares] or [entry]


def write_record(out: Path, found: list[dict[str, Any]], failed: list[dict[str, Any]], turns: list[Any]) -> None:
    """What is known so far."""
    devices = {json.dumps(one["gpu"], sort_keys=True) for one in found if "gpu" in one}
    record = {
        "schema": 1, "command": command_line(), "date": datetime.now(UTC).date().isoformat(),
        "gpus": [json.loads(text) for text in sorted(devices)], "protocol": PROTOCOL.to_dict(),
        "round": ROUND.to_dict(), "kernels": [{k: v for k, v in one.items() if k != "gpu"} for one in found],
        "rounds": turns, "failed": failed,
    }  # fmt: skip
    write_file(out, (json.dumps(record, indent=1) + "\n").encode())

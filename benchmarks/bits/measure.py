"""Compile, verify and time the texts of ``texts`` on this GPU. Needs NVRTC, no TVM.

Every element of every output is compared with the reference, random operands over the whole range of their types. A
kernel is timed by graph replay, hot L2, without programmatic dependent launch. The three fastest of each cell are
measured again at the end, in turns over all cells: ``again`` is how far both medians are apart. Of a layer of more than
64 images, a multiple of that, the images repeat themselves after 64.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
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
from subbyte.kernel import operands as packing
from subbyte.kernel.execute import expected_layer, random_operands, random_residual
from subbyte.kernel.operands import layout_words
from subbyte.kernel.resources import read_resources
from subbyte.numerics.arrays import Words
from subbyte.numerics.fusion import SEPARATOR, LayerResult

PROTOCOL = TimingProtocol(cold=False, launches=50)
BEST = 3
DRAWN = 64
"""Images that are drawn and that the reference computes; a larger batch repeats them."""


@dataclass
class Cell:
    """Operands and answer of a cell, made once for all of its kernels."""

    name: str
    operands: tuple[Any, ...]
    wanted: LayerResult | None = None
    """Of fused layers."""
    activations: dict[str, Words] = field(default_factory=dict)
    """By their form."""
    outputs: dict[str, Words] = field(default_factory=dict)
    """The right words by their form; of fused layers values are compared, and sums that are kept."""

    def measure(self, key: str, cubin: bytes, log: str) -> dict[str, Any]:
        """A kernel's time and what its outputs are worth."""
        kernel = kernel_of(self.name, key)
        plan = kernel.plan
        resources = read_resources(log, plan.arch, plan.launch.block[0], plan.shared_bytes)
        with GpuKernel(cubin, plan.launch, 0) as gpu:
            words = gpu.run(self.packed(kernel))
            wrong = self.wrong(kernel, words)
            timing = gpu.time(PROTOCOL)
        return {
            "cell": self.name, "config": key, "microseconds": timing.microseconds, "wrong": wrong,
            "least": min(timing.samples), "most": max(timing.samples), "registers": resources.registers,
            "local_bytes": resources.local_bytes, "clock": timing.after.to_dict(), "gpu": dict(timing.device),
        }  # fmt: skip

    def packed(self, kernel: subbyte.Kernel) -> dict[str, Any]:
        """What a kernel reads."""
        if not self.outputs:
            return kernel.pack(*self.operands)
        argument, workload, (_, w, thresholds, _) = kernel.argument, kernel.workload, self.operands
        return {
            "A": self.activations[argument("A").form], "Wt": packing.weight_words(argument("Wt"), workload, w),
            "Prm": packing.parameter_words(argument("Prm"), workload, thresholds, w),
        }  # fmt: skip

    def wrong(self, kernel: subbyte.Kernel, words: Mapping[str, Any]) -> int:
        """How many of its words (fused: values) are not the right ones."""
        if self.outputs:
            return int(np.count_nonzero(words["Out"] != self.outputs[kernel.argument("Out").form]))
        assert self.wanted is not None
        wrong = int(np.count_nonzero(kernel.unpack(words["Out"]) != self.wanted.values))
        if "Sum" in words:
            kept = packing.kept_sums(words["Sum"], kernel.workload, kernel.fusion)
            wrong += int(np.count_nonzero(kept != self.wanted.sums))
        return wrong


def kernel_of(name: str, key: str) -> subbyte.Kernel:
    """The kernel of a configuration for a cell."""
    workload, output = cell_of(name)
    config = config_from_key(key)
    return subbyte.Kernel(family_of(config).plan(workload, config, arch("sm_90a"), output))


def refused(name: str, key: str, result: tuple[bytes, str] | str) -> str | None:
    """Why a text's machine code is not measured, None when it is."""
    if isinstance(result, str) or not result[1]:
        return result if isinstance(result, str) else "no report"
    plan = kernel_of(name, key).plan
    resources = read_resources(result[1], plan.arch, plan.launch.block[0], plan.shared_bytes)
    return family_of(plan.config).refused(*result, resources.local_bytes or 0)


def prepared(name: str, keys: Sequence[str]) -> Cell:
    """A cell for kernels of these configurations."""
    kernels = [kernel_of(name, key) for key in keys]
    first, repeats = kernels[0], 1
    workload, output = cell_of(name)
    if workload.n > DRAWN and workload.n % DRAWN == 0 and SEPARATOR not in output:
        repeats, workload = workload.n // DRAWN, replace(workload, n=DRAWN, name="")
        kernels = [kernel_of(f"{workload.spec} {output}", key) for key in keys]
        first = kernels[0]
    operands = (*random_operands(first, 1), random_residual(first, 2))
    wanted = expected_layer(first, *operands)
    if SEPARATOR in cell_of(name)[1]:
        return Cell(name, operands, wanted)
    cell = Cell(name, (None, *operands[1:]))
    for kernel in kernels:
        read, written = kernel.argument("A"), kernel.argument("Out")
        if read.form not in cell.activations:
            words = packing.activation_words(read, kernel.workload, operands[0])
            cell.activations[read.form] = np.tile(words, repeats)
        if written.form not in cell.outputs:
            values = layout_words(written.form, wanted.values, kernel.workload.precision.output)
            cell.outputs[written.form] = np.tile(values.reshape(-1), repeats)
    return cell


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
    texts = {json.loads(line)["cuda"]: line for line in lines}  # batches may share one
    entries = [json.loads(line) for line in lines]
    keys: dict[str, list[str]] = {}
    for entry in entries:
        keys.setdefault(entry["cell"], []).append(entry["config"])
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        making = {cell: pool.submit(prepared, cell, of_cell) for cell, of_cell in keys.items()}
        of_text = dict(zip(texts, pool.map(compiled, texts.values(), chunksize=2), strict=True))
        cells = {cell: made.result() for cell, made in making.items()}
    found: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    ready: dict[tuple[str, str], tuple[Cell, bytes, str]] = {}
    for entry in entries:
        result = of_text[entry["cuda"]]
        reason = refused(entry["cell"], entry["config"], result)
        if isinstance(result, str) or reason is not None:
            failed.append({**entry, "cuda": "", "reason": reason})
            continue
        if time.monotonic() > end:
            break
        ready[entry["cell"], entry["config"]] = (cells[entry["cell"]], *result)
        found.append(cells[entry["cell"]].measure(entry["config"], *result))
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

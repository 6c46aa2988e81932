"""Find what a step of a kernel that finds zeros waits for: time it without one kind of its instructions.

``build FILE`` writes CUDA texts in which an instruction is an empty statement with the same operands, so that all that
leads to it stays: matrix instructions, loads of fragments (``ldmatrix``), the unpacking of nibbles. Their outputs mean
nothing. ``measure FILE OUT`` times them on operands of two densities: the difference, divided by the difference of the
steps, is what a step costs, and what is left at no step is everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import subbyte
from benchmarks.shared.command import answering
from benchmarks.shared.texts import all_compiled, lines_of
from benchmarks.sparse.built import two_steps, write_lines
from subbyte.families import config_from_key, family_of
from subbyte.files import prove_writable, write_file
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.measure.densities import PROTOCOL, Bench, Operands, Side, operands_of
from subbyte.records.describe import to_line

LAYER = "gemm4096"
CONFIGS = ("cd-rw4-cw4-pn2-ch16-ct1", "cd-rw4-cw4-pn2-ch16-ct2", "cd-rw4-cw4-pn2-ch16-ct4")
VARIANTS = ("", "mma", "ldmatrix", "unpacking", "mma ldmatrix", "mma unpacking", "ldmatrix unpacking")
"""What is left out, several together."""
ROUNDS = 3


def without(text: str, variant: str) -> str:
    """A kernel's text without some of its instructions."""
    for what in variant.split():
        if what == "unpacking":
            text = re.sub(r"uint low_(\d+) = \(\((word_ptr\w*\[0\]) << \(uint\)4\) & \(uint\)4042322160\);",
                          r"uint low_\1 = \2;", text)  # fmt: skip
            text = re.sub(
                r"uint high_(\d+) = \((word_ptr\w*\[0\]) & \(uint\)4042322160\);", r"uint high_\1 = \2;", text
            )
        else:
            text = re.sub(rf'asm volatile\("{what}[^"]*;"', 'asm volatile(""', text)
    return text


def build(out: Path) -> int:
    """Write the texts, with the steps that a tile takes and the instructions of the whole kernel."""
    lines = []
    for key in CONFIGS:
        kernel = Kernel(make_plan(subbyte.workload(LAYER), config_from_key(key), "sm_90a", None, None, "fixed"))
        for variant in VARIANTS:
            text = without(kernel.cuda, variant)
            assert (text == kernel.cuda) == (not variant)
            lines.append(to_line({"layer": LAYER, "config": key, "without": variant, "cuda": text}))
    write_lines(out, lines)
    return 0


def measure(texts: Path, out: Path, densities: Sequence[float]) -> int:
    """Time them."""
    from subbyte.gpu.device import CudaDevice

    prove_writable(out)
    lines = lines_of(texts)
    built = all_compiled(lines)
    device, workload = CudaDevice(0), subbyte.workload(LAYER)
    rows = []
    data = {density: operands_of(workload, density, sums_of=_no_sums) for density in densities}
    for line, result in zip(lines, built, strict=True):
        entry = json.loads(line)
        about = {name: entry[name] for name in ("layer", "config", "without")}
        if isinstance(result, str):
            rows.append({**about, "reason": result})
            continue
        plan = make_plan(workload, config_from_key(entry["config"]), "sm_90a", None, None, "fixed")
        bench = Bench(workload, [Side(Kernel(plan), result[0])], device)
        times, steps = _times(bench, data)
        bench.close()
        dense, sparse = densities
        each = (times[dense] - times[sparse]) / (steps[dense] - steps[sparse])
        rows.append({**about, "microseconds": times, "steps": steps, "each": each,
                     "rest": times[sparse] - each * steps[sparse]})  # fmt: skip
        print(entry["config"], entry["without"] or "whole", {k: round(v, 2) for k, v in times.items()},
              f"{each:.3f} us a step of all tiles, {rows[-1]['rest']:.1f} us beside", flush=True)  # fmt: skip
        record = {"schema": 1, "kind": "steps", "device": device.info.to_dict(), "protocol": PROTOCOL.to_dict(),
                  "rounds": ROUNDS, "rows": rows}  # fmt: skip
        write_file(out, (json.dumps(record, indent=1) + "\n").encode())
    return 0


def _no_sums(x: Any, w: Any) -> Any:
    return np.zeros((*x.shape[:3], w.shape[0]), np.int32)


def _times(bench: Bench, data: dict[float, Operands]) -> tuple[dict[float, float], dict[float, float]]:
    """Medians of a few samples, and the steps of a tile, by density."""
    side = bench.sides[0]
    kernel = side.kernel
    times: dict[float, float] = {}
    steps: dict[float, float] = {}
    for density, found in data.items():
        inputs = bench.inputs(kernel, found, {})
        gpu = bench.open[side.name]
        times[density] = median(gpu.time(PROTOCOL, inputs).microseconds for _ in range(ROUNDS))
        keeps = family_of(kernel.config).keeps(kernel.plan, found.x, found.w)
        steps[density] = keeps["steps"] if keeps else 0.0
    return times, steps


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser, _, running = two_steps("sparse steps", __doc__)
    running.add_argument("--densities", type=float, nargs=2, default=[1.0, 0.02])
    asked = parser.parse_args(arguments)
    if asked.what == "build":
        return build(asked.out)
    return measure(asked.texts, asked.out, asked.densities)

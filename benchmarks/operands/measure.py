"""Check every element of the kernels that ``build`` wrote, and time those of a layer in turns (needs a GPU, NVRTC).

    python benchmarks/operands measure FILE.jsonl RECORD.json

Operands are random over the whole range of their types; each kernel runs twice on differently poisoned outputs. Two
runs of rounds in which every side of a layer is timed once, in an order drawn anew. The record is written after each
layer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import all_compiled, lines_of
from subbyte.errors import SubbyteError
from subbyte.families import config_from_key
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import compared, expected_layer, random_operands, random_residual
from subbyte.records.describe import now
from subbyte.workload import workload

RUNS, ROUNDS = 2, 12
ABOUT = ("side", "layer", "config", "output", "requant", "pool")
"""Of a line of texts what its record keeps, where it has it."""
Loader = Callable[[dict[str, Any], bytes, CudaDevice, ExitStack], GpuKernel]
BRIEF = TimingProtocol(cold=False, repeats=3, min_total_ms=4.0)


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure."""
    parser = parser_of("operands measure", __doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args(arguments)
    prove_writable(asked.out)
    lines = lines_of(asked.file)
    made = list(zip(map(json.loads, lines), all_compiled(lines), strict=True))
    device = CudaDevice(0)
    record: dict[str, Any] = {"schema": 1, "date": now(), "command": command_line(), "device": device.info.to_dict(),
                              "runs": RUNS, "rounds": ROUNDS, "layers": []}  # fmt: skip
    for label in dict.fromkeys(line["label"] for line, _ in made):
        of_layer = [(line, cubin) for line, cubin in made if line["label"] == label]
        record["layers"].append({"layer": label, **measured(of_layer, device)})
        write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
        print(label, {one["side"]: one["us"] for one in record["layers"][-1]["sides"]}, flush=True)
    wrong = [one for layer in record["layers"] for one in layer["sides"] if one["wrong"] != 0]
    print(f"{len(wrong)} kernels wrong or not run")
    return int(bool(wrong))


def measured(
    made: Sequence[tuple[dict[str, Any], tuple[bytes, str] | str]], device: CudaDevice, load: Loader | None = None
) -> dict[str, Any]:
    """The sides of one layer: what was wrong, and the samples of each run; clocks beside them. ``load`` compares a
    kernel and gives it loaded (default: :func:`right_kernel`)."""
    ready = load or right_kernel
    sides: list[dict[str, Any]] = []
    telemetry = Telemetry(device.info.bus_id)
    with ExitStack() as stack:
        loaded: list[tuple[int, GpuKernel]] = []
        for line, cubin in made:
            about = {name: line[name] for name in ABOUT if name in line}
            sides.append({**about, "wrong": None, "samples": [[] for _ in range(RUNS)], "us": None})
            if isinstance(cubin, str):
                sides[-1]["reason"] = cubin
                continue
            try:
                loaded.append((len(sides) - 1, ready(line, cubin[0], device, stack)))
                sides[-1]["wrong"] = 0
            except SubbyteError as error:
                sides[-1]["reason"] = str(error)
        order, rng, clocks = list(loaded), random.Random(0), []
        for run in range(RUNS):
            for _ in range(ROUNDS):
                rng.shuffle(order)
                for place, kernel in order:
                    timing = kernel.time(BRIEF, telemetry=telemetry)
                    sides[place]["samples"][run].append(timing.microseconds)
                clocks.append(timing.clocks() if order else {})
    for one in sides:
        medians = [sorted(samples)[len(samples) // 2] for samples in one["samples"] if samples]
        one["us"] = max(medians) if medians else None  # the slower of both runs
        one["runs_us"] = medians
    return {"sides": sides, "clocks": clocks[:: max(1, len(clocks) // 4)]}


def right_kernel(line: dict[str, Any], cubin: bytes, device: CudaDevice, stack: ExitStack) -> GpuKernel:
    """A kernel, loaded, with every element compared. Raises WrongResult."""
    layer = workload(line["layer"])
    plan = make_plan(layer, config_from_key(line["config"]), "sm_90a", line["output"], None, line["requant"])
    kernel = Kernel(plan)
    x, w, requant = random_operands(kernel, 1)
    residual = random_residual(kernel, 3)
    gpu = stack.enter_context(GpuKernel(cubin, kernel.launch, device))
    outputs = gpu.run(kernel.pack(x, w, requant, residual))
    compared(kernel, outputs, expected_layer(kernel, x, w, requant, residual)).require()
    return gpu

"""Time the cycle model: single layers of ResNet-50 at batch 8, the whole network, surfaces of 20 x 20.

Each part runs three times in this process, ``--repeats``. Printed are the fastest time of the clock and of the
processor, and the goal where there is one: the second does not count what other programs of the machine take.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.shared.command import answering, parser_of
from subbyte.files import prove_writable, write_file
from subbyte.gpu.timing import command_line
from subbyte.sparse import network, network_layers, simulate, surface

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `subbyte sparse` does

GOALS = {"slowest layer of resnet50@8": 0.5, "resnet50@8": 10.0, "surface resnet50.stage2@8": 5.0,
         "surface resnet50.stage3@8": 5.0, "surface gemm1024": 5.0, "surface gemm4096": None,
         "layer vgg16.conv1_2@8": None}  # fmt: skip
"""Seconds asked for; None = none, for the largest that the model takes."""


def parts() -> dict[str, Callable[[], object]]:
    """What is timed, by the names of ``GOALS``; every layer of the network by itself."""
    found: dict[str, Callable[[], object]] = {
        f"layer {one.shape.label}": lambda one=one: simulate(one.shape, activations=0.45, weights=0.2)  # type: ignore[misc]
        for one in network_layers("resnet50@8")
    }
    found["layer vgg16.conv1_2@8"] = lambda: simulate("vgg16.conv1_2@8", activations=0.45, weights=0.2)
    found["resnet50@8"] = lambda: network("resnet50@8")
    for name in ("resnet50.stage2@8", "resnet50.stage3@8", "gemm1024", "gemm4096"):
        found[f"surface {name}"] = lambda name=name: surface(name)  # type: ignore[misc]
    return found


def timed(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """The fastest of several runs: seconds of the clock and of the processor."""
    clock, processor = list[float](), list[float]()
    for _ in range(repeats):
        begun, spent = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - begun)
        processor.append(time.process_time() - spent)
    return {"seconds": min(clock), "processor_seconds": min(processor)}


def table(found: dict[str, dict[str, float]]) -> list[str]:
    """The parts that have a goal, or are the largest; of the network's layers the slowest."""
    layers = {name: one for name, one in found.items() if name.startswith("layer resnet50")}
    slowest = max(layers, key=lambda name: layers[name]["processor_seconds"])
    shown = {"slowest layer of resnet50@8": found[slowest], **found}
    rows = ["| what | seconds | of the processor | goal | met |", "| --- | ---: | ---: | ---: | --- |"]
    for name, goal in GOALS.items():
        one = shown[name]
        met = "-" if goal is None else "yes" if one["processor_seconds"] <= goal else "no"
        label = f"{name} ({slowest.removeprefix('layer ')})" if name.startswith("slowest") else name
        asked = "-" if goal is None else f"{goal:g}"
        rows.append(f"| {label} | {one['seconds']:.2f} | {one['processor_seconds']:.2f} | {asked} | {met} |")
    return rows


@answering
def main(arguments: Sequence[str]) -> int:
    """Time all parts, print them; 1 where a goal is missed."""
    parser = parser_of("sparse seconds", __doc__)
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write every time to this JSON file")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(arguments)
    if asked.out is not None:
        prove_writable(asked.out)
    found = {name: timed(work, max(1, asked.repeats)) for name, work in parts().items()}
    rows = table(found)
    print("\n".join(rows))
    if asked.out is not None:
        record: dict[str, Any] = {"schema": 1, "kind": "seconds", "command": command_line(),
                                  "date": datetime.now(UTC).date().isoformat(), "processors": os.cpu_count(),
                                  "load": os.getloadavg()[0], "seconds": found}  # fmt: skip
        write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return int(any(row.endswith("| no |") for row in rows))

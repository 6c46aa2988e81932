"""Find what sharing in registers saves, loads or unpacking, with a control that has nothing to unpack.

On this GPU int4 values are unpacked to bytes in registers, which the paper's GPU never did. Full sharing does that
once for each datum and the other two ways once for each tap, so its gain mixes loads with unpacking. In the control
the activations lie in memory as the bytes that are multiplied (``Plan.stored``): twice the bytes to move, nothing to
unpack.

    python benchmarks/paper unpacking build FOLDER        bundles of both ways to store x none, shared, full
    python benchmarks/paper measure RESULTS FOLDER/*     on the GPU
    python benchmarks/paper unpacking collect RESULTS benchmarks/results/unpacking

Packing and layout are on. The schedules are those of the ablation that fit all six kernels, at most ``--schedules`` of
each stage.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.shared.command import RESULTS, answering, parser_of
from subbyte.analysis.unpacking import FORMAT
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.rules import why_not
from subbyte.kernel import Kernel
from subbyte.measure.bundle import read_measurements
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.tune.bundle import build_bundle
from subbyte.workload import ConvWorkload

STAGES = (2, 3, 4, 5)
SHARINGS = ("none", "shared", "full")
STORED = ("s4", "s8")
ABLATION = RESULTS / "ablation"


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper unpacking", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("build")
    making.add_argument("folder", type=Path)
    making.add_argument("--schedules", type=int, default=60)
    making.add_argument("--workers", type=int, default=2)
    collecting = commands.add_parser("collect")
    collecting.add_argument("results", type=Path)
    collecting.add_argument("out", type=Path)
    args = parser.parse_args(arguments)
    if args.command == "build":
        for stage in STAGES:
            build_stage(stage, args.folder, args.schedules, args.workers)
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        for stage in STAGES:
            collect(stage, args.results, args.out)
    return 0


def build_s8(workload: ConvWorkload, config: MmaConfig, arch: str) -> Kernel:
    """The kernel whose activations are stored as bytes."""
    here = space(workload, arch)
    kernel = Kernel(replace(here.plan(config), stored="s8"))
    _ = kernel.cubin
    return kernel


def schedules(stage: int, most: int) -> list[int]:
    """Indices of the ablation's schedules that can be built in all six ways."""
    recorded = Landscape.load(ABLATION / f"stage{stage}-full-rp-nhwcnc.json.gz")
    spaces = [space(recorded.workload, duplicate_aware=sharing) for sharing in SHARINGS]
    fitting = [
        index
        for index in recorded.results
        if all(why_not(replace(one.plan(index), stored=stored)) is None for one in spaces for stored in STORED)
    ]
    return sorted(random.Random(stage).sample(fitting, min(most, len(fitting))))


def build_stage(stage: int, folder: Path, most: int, workers: int) -> None:
    """Six bundles of one stage."""
    from benchmarks.paper.unpacking import build_s8  # under the name by which the building processes find it

    indices = schedules(stage, most)
    for sharing in SHARINGS:
        here = space(f"resnet50.stage{stage}@8", duplicate_aware=sharing)
        for stored in STORED:
            build = build_s8 if stored == "s8" else None
            report = build_bundle(here, folder / f"stage{stage}-{sharing}-{stored}", workers, indices, build)
            print(f"stage {stage}, {sharing}, {stored}: {report.built} built, {report.failed} failed", flush=True)


def collect(stage: int, results: Path, out: Path) -> None:
    """One file from the six measurements of a stage: the raw samples of every schedule."""
    header: dict[str, Any] = {}
    rows: dict[int, dict[str, Any]] = {}
    for sharing in SHARINGS:
        for stored in STORED:
            header, found = read_measurements(results / f"stage{stage}-{sharing}-{stored}.jsonl")
            for index, result in found.items():
                if isinstance(result, Measured):
                    rows.setdefault(index, {})[f"{sharing}-{stored}"] = list(result.samples)
    data = {
        "format": FORMAT, "schema": 1,
        **{key: header[key] for key in ("workload", "device", "protocol", "command", "versions", "created")},
        "schedules": [{"index": index, "samples": rows[index]} for index in sorted(rows)],
    }  # fmt: skip
    text = json.dumps(data, separators=(",", ":")) + "\n"
    (out / f"stage{stage}.json.gz").write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))

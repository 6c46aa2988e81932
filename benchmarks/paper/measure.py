"""Measure bundles of one workload in turns: all kernels of one schedule, one after the other, in one process.

    python benchmarks/paper measure OUT_FOLDER BUNDLE [BUNDLE ...]

Kernels that are to be compared schedule by schedule, such as one schedule with every combination of the switches, thus
meet the same clocks and temperature; their order is drawn anew for every schedule. Writes ``OUT_FOLDER/NAME.jsonl`` for
each bundle folder, as ``python -m subbyte.measure.bundle`` does, and goes on where an interrupted run stopped. Needs
neither TVM nor a compiler.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shared.command import answering, parser_of
from subbyte.gpu.device import open_device
from subbyte.measure.bundle import measure_bundle
from subbyte.measure.case import Case, Evaluator
from subbyte.records.describe import workload_from_dict
from subbyte.records.manifest import read_manifest
from subbyte.workload import ConvWorkload


@answering
def main(arguments: Sequence[str]) -> int:
    """Exit status as of the command line: 0 done, 2 bad input, 3 no GPU; 75 when the GPU was lost, to start again."""
    parser = parser_of("paper measure", __doc__)
    parser.add_argument("out", type=Path, help="folder of the results")
    parser.add_argument("bundle", nargs="+", type=Path, help="bundles of prebuilt kernels")
    parser.add_argument("--device", type=int, default=0)
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    by_workload: dict[ConvWorkload, dict[Path, set[int]]] = defaultdict(dict)
    for folder in args.bundle:
        manifest, entries = read_manifest(folder)
        by_workload[workload_from_dict(manifest["workload"])][folder] = set(entries)
    gpu = open_device(args.device)
    for workload, bundles in by_workload.items():
        evaluator = Evaluator(gpu, Case(workload))
        failed = in_turns(evaluator, bundles, args.out)
        evaluator.close()
        print(f"{workload}: {len(bundles)} bundles measured, {failed} kernels failed", flush=True)
        if gpu.lost:
            return 75
    return 0


def in_turns(evaluator: Evaluator, bundles: dict[Path, set[int]], out: Path) -> int:
    """Measure all kernels with the same index after each other; how many failed."""
    failed = 0
    for index in sorted(set().union(*bundles.values())):
        order = [folder for folder, indices in bundles.items() if index in indices]
        random.Random(index).shuffle(order)
        for folder in order:
            report = measure_bundle(folder, out / f"{folder.name}.jsonl", evaluator=evaluator, indices=[index])
            failed += report.failed
            if evaluator.device.lost:
                return failed
    return failed

"""Write the CUDA texts of the likeliest configurations of each cell, for a machine without TVM.

A cell is a layer at a batch in a precision. Of each the configurations that are estimated fastest are taken, at most
four of the same rows and channels; or with ``--measured`` those that ``measure`` found fastest before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import subbyte
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.families import config_from_key, family_named
from subbyte.files import write_file
from subbyte.records.describe import to_line
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

STAGES, BATCHES, PRECISIONS = (2, 3, 4, 5), (8, 64, 256), ("w1a1", "w1a2", "w2a2", "w1a4")
ALIKE = 4
"""Configurations of the same rows and channels, at most."""


def cells(precisions: Sequence[str]) -> list[str]:
    """The names of the cells."""
    return [f"resnet50.stage{stage}@{batch}:{bits}" for bits in precisions for stage in STAGES for batch in BATCHES]


def likeliest(workload: ConvWorkload, most: int) -> Iterator[Configuration]:
    """The configurations to try."""
    alike: Counter[tuple[object, object]] = Counter()
    for config in family_named("bits").candidates(workload, arch("sm_90a")):
        values = config.to_dict()
        kind = values["tile_rows"], values["channels"]
        if alike[kind] < ALIKE:
            alike[kind] += 1
            yield config
        if alike.total() >= most:
            return


def fastest(records: Sequence[Path]) -> dict[str, list[Configuration]]:
    """The configurations of each cell in records of ``measure``, the fastest first."""
    times: dict[tuple[str, str], float] = {}
    for path in records:
        for one in json.loads(path.read_text(encoding="utf-8"))["kernels"]:
            key = one["cell"], one["config"]
            times[key] = min(one["microseconds"], times.get(key, one["microseconds"]))
    found: dict[str, list[Configuration]] = {}
    for cell, config in sorted(times, key=lambda key: times[key]):
        found.setdefault(cell, []).append(config_from_key(config))
    return found


@answering
def main(arguments: Sequence[str]) -> int:
    """Write them."""
    parser = parser_of("bits texts", __doc__)
    parser.add_argument("out", type=Path, help="a file of JSON lines")
    parser.add_argument("--most", type=int, default=10, help="configurations of a cell (default 10)")
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), metavar="PRECISION")
    parser.add_argument(
        "--measured", type=Path, nargs="+", default=[], metavar="RECORD", help="what was measured before"
    )
    asked = parser.parse_args(arguments)
    lines, before = [], fastest(asked.measured)
    for cell in cells(asked.precisions):
        workload = subbyte.workload(cell)
        for config in before.get(cell, [])[: asked.most] if before else likeliest(workload, asked.most):
            plan = family_named("bits").plan(workload, config, arch("sm_90a"), workload.precision.output.name)
            kernel = subbyte.Kernel(plan)
            lines.append(to_line({"cell": cell, "config": config.key, "cuda": kernel.cuda}))
        print(f"{cell}: {len(lines)} texts in all", flush=True)
    write_file(asked.out, "".join(f"{line}\n" for line in lines).encode())
    return 0

"""Write the CUDA texts of the likeliest configurations of each cell, for a machine without TVM.

A cell is a layer at a batch in a precision, or with ``--networks`` a layer of a network as its kernel is asked for:
"layer output", with what is fused into it. Of each the configurations that are estimated fastest are taken, at most
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
from subbyte.families import config_from_key, family_named, family_of
from subbyte.files import write_file
from subbyte.kernel.choose import best_known
from subbyte.networks import network
from subbyte.networks.steps import request
from subbyte.numerics.fusion import SEPARATOR
from subbyte.records.describe import to_line
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

STAGES, BATCHES, PRECISIONS = (2, 3, 4, 5), (8, 64, 256), ("w1a1", "w1a2", "w2a2", "w1a4")
ALIKE = 4
"""Configurations of the same first two knobs (rows and channels), at most."""


def cells(precisions: Sequence[str]) -> list[str]:
    """The names of the cells."""
    return [f"resnet50.stage{stage}@{batch}:{bits}" for bits in precisions for stage in STAGES for batch in BATCHES]


def cell_of(name: str) -> tuple[ConvWorkload, str]:
    """The layer of a cell, and its output."""
    layer, _, output = name.partition(" ")
    workload = subbyte.workload(layer)
    return workload, output or workload.precision.output.name


def layer_cells(names: Sequence[str]) -> list[str]:
    """The cells of networks: every layer once, whole."""
    found = [request(one, layer) for one in map(network, names) for layer in one.layers]
    return list(dict.fromkeys(f"{workload.spec} {output}" for workload, output in found))


def likeliest(
    workload: ConvWorkload, output: str, most: int, name: str = "bits", together: int = ALIKE
) -> Iterator[Configuration]:
    """The configurations of a family to try; those that read the words that the best known one reads."""
    family, target = family_named(name), arch("sm_90a")
    fused = SEPARATOR in output
    words = best_known(workload, target, name, output=output)[0].to_dict().get("paired_rows", 0)
    alike: Counter[tuple[object, ...]] = Counter()
    for config in family.candidates(workload, target):
        values = config.to_dict()
        if values.get("paired_rows", 0) != words:
            continue
        if fused and family.check(family.plan(workload, config, target, output)) is not None:
            continue
        kind = tuple(values.values())[:2]
        if alike[kind] < together:
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
    parser.add_argument("--cells", nargs="+", default=[], metavar="CELL", help='"layer" or "layer output"')
    parser.add_argument("--alike", type=int, default=ALIKE, help="of the same rows and channels, at most (default 4)")
    parser.add_argument("--family", default="bits", help="whose kernels (default bits)")
    parser.add_argument("--networks", nargs="+", default=[], metavar="NAME", help="tcbnn.resnet18@8 ...")
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), metavar="PRECISION")
    parser.add_argument(
        "--measured", type=Path, nargs="+", default=[], metavar="RECORD", help="what was measured before"
    )
    asked = parser.parse_args(arguments)
    lines, before = [], fastest(asked.measured)
    for cell in asked.cells or layer_cells(asked.networks) or cells(asked.precisions):
        workload, output = cell_of(cell)
        for config in (
            before.get(cell, [])[: asked.most]
            if before
            else likeliest(workload, output, asked.most, asked.family, asked.alike)
        ):
            plan = family_of(config).plan(workload, config, arch("sm_90a"), output)
            kernel = subbyte.Kernel(plan)
            lines.append(to_line({"cell": cell, "config": config.key, "cuda": kernel.cuda}))
        print(f"{cell}: {len(lines)} texts in all", flush=True)
    write_file(asked.out, "".join(f"{line}\n" for line in lines).encode())
    return 0

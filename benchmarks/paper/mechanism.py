"""Count the memory traffic of a few schedules with every combination of the switches, on the CPU.

    python benchmarks/paper mechanism benchmarks/results/mechanism [--stages 2 3 4 5]

The kernels run in the emulator. Blocks that differ only by where they lie do the same accesses at other addresses, so
one block of each kind is traced (the kinds differ in which of their input and output pixels exist) and counted as often
as the kind occurs: the counts of the launch are exact. The schedules are three of the ablation: the fastest with all
techniques on, and those a third and two thirds down the list. Their times come from the ablation.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.command import RESULTS, answering, parser_of
from subbyte.analysis.mechanism import FORMAT
from subbyte.emulator.trace import of_kind, warp_groups, without_repeated_loads
from subbyte.families import space
from subbyte.families.mma.plan import Plan
from subbyte.kernel import Kernel
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured

ABLATION = RESULTS / "ablation"
TRACED = (
    "one block of each kind of pixel tile and the first of the blocks along the filters were traced; each count is "
    "multiplied by how often the kind occurs: exact"
)
SECTOR, LINE = 32, 128


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper mechanism", __doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 3, 4, 5])
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    for stage in args.stages:
        data = count_stage(stage)
        (args.out / f"stage{stage}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0


def count_stage(stage: int) -> dict[str, Any]:
    """All rows of a stage."""
    times, device = recorded_times(stage)
    everywhere = set.intersection(*(set(one) for one in times.values()))
    ranked = sorted(everywhere, key=lambda index: times["full", True, "nhwcnc"][index])
    chosen = [ranked[0], ranked[len(ranked) // 3], ranked[2 * len(ranked) // 3]]
    rows = []
    for index, switches in itertools.product(chosen, sorted(times)):
        sharing, packing, layout = switches
        here = space(f"resnet50.stage{stage}@8", duplicate_aware=sharing, register_packing=packing, layout=layout)
        row = {
            "schedule": space(here.workload).config(index).key, "index": index,
            "sharing": sharing, "packing": packing, "layout": layout,
            "microseconds": round(times[switches][index], 4), **launch_counts(here.plan(index)),
        }  # fmt: skip
        rows.append(row)
        print(row, flush=True)
    return {
        "format": FORMAT, "schema": 1, "workload": f"resnet50.stage{stage}@8", "device": device, "traced": TRACED,
        "rows": rows,
    }  # fmt: skip


def recorded_times(stage: int) -> tuple[dict[tuple[str, bool, str], dict[int, float]], str]:
    """Microseconds by switches and index from the ablation, and the GPU's name."""
    times: dict[tuple[str, bool, str], dict[int, float]] = defaultdict(dict)
    device = ""
    for path in sorted(ABLATION.glob(f"stage{stage}-*.json.gz")):
        one = Landscape.load(path)
        fixed, device = one.header["space"]["fixed"], str(one.device["name"])
        key = (str(fixed["duplicate_aware"]), bool(fixed["register_packing"]), str(fixed["layout"]))
        times[key].update({i: r.microseconds for i, r in one.results.items() if isinstance(r, Measured)})
    return dict(times), device


def launch_counts(plan: Plan) -> dict[str, int]:
    """The counts of one launch."""
    kinds = block_kinds(plan)
    blocks = tuple(sorted(example for example, _ in kinds.values()))
    rows = Kernel(plan).trace(blocks).trace
    assert rows is not None
    trace = without_repeated_loads(rows)
    total: dict[str, int] = defaultdict(int)
    for example, number in kinds.values():
        for name, count in block_counts(trace[trace["block"] == example]).items():
            total[name] += count * number * plan.column_blocks
    return dict(total)


def block_kinds(plan: Plan) -> dict[Any, tuple[int, int]]:
    """For each kind of pixel tile: its first block, and how many there are."""
    w, (rows, cols) = plan.workload, plan.pixel_tiles
    found: dict[Any, tuple[int, int]] = {}
    for block in range(w.batch_groups * rows * cols):
        down, right = block // cols % rows, block % cols
        kind = (edge(down, plan.tile[0], w.h, w.p, w.r, plan), edge(right, plan.tile[1], w.w, w.q, w.s, plan))
        example, number = found.get(kind, (block, 0))
        found[kind] = (example, number + 1)
    return found


def edge(tile: int, size: int, inputs: int, outputs: int, taps: int, plan: Plan) -> tuple[tuple[bool, ...], ...]:
    """Which input and output positions of a tile exist along one axis."""
    w, first = plan.workload, tile * size
    reach = (size - 1) * w.stride + (taps - 1) * w.dilation + 1
    reads = tuple(0 <= first * w.stride + i - w.pad < inputs for i in range(reach))
    return reads, tuple(first + i < outputs for i in range(size))


def block_counts(trace: Any) -> dict[str, int]:
    """The counts of one block's rows."""
    reads = of_kind(trace, "global_load", "copy")
    shared_loads, shared_stores = of_kind(trace, "shared_load"), of_kind(trace, "shared_store")
    copies = of_kind(trace, "copy")
    stores = warp_groups(trace, "global_store")
    return {
        "sectors_read": touched(trace, "global_load", SECTOR) + touched(trace, "copy", SECTOR),
        "lines_read": touched(trace, "global_load", LINE) + touched(trace, "copy", LINE),
        "bytes_asked": int(reads["valid"].sum()),
        "sectors_written": touched(trace, "global_store", SECTOR),
        "lines_written": touched(trace, "global_store", LINE),
        "stores": len(stores),
        "shared_bytes_read": int(shared_loads["size"].sum()),
        "shared_bytes_written": int(shared_stores["size"].sum() + copies["size"].sum()),
        "shuffles": len(warp_groups(trace, "shuffle")),
        "mma": len(warp_groups(trace, "mma")),
    }


def touched(trace: Any, kind: str, unit: int) -> int:
    """Sectors or lines (``unit`` bytes) that the warps' accesses of a kind touch, each access by itself. What reads
    nothing touches none."""
    groups = warp_groups(trace, kind)
    lanes = groups.ravel()
    access = np.repeat(np.arange(len(groups)), groups.shape[1])[lanes >= 0]
    rows = trace[lanes[lanes >= 0]]
    size = rows["size"] if kind == "global_store" else rows["valid"]
    some = size > 0
    ends = (rows["offset"][some] // unit, (rows["offset"][some] + size[some].astype(np.int64) - 1) // unit)
    found = np.concatenate([np.stack([access[some], rows["buffer"][some], place]) for place in ends], axis=1)
    return int(np.unique(found, axis=1).shape[1])

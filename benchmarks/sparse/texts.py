"""Write the CUDA texts of kernels on 2:4 weights, and of their dense twins, for a machine without TVM.

A cell is a 3x3 stage of ResNet-50 at a batch. Its kernels are a few ways to divide the work, and of what remains open
random choices; or with ``--measured`` those that ``measure`` found fastest before, and what differs from them in one
knob. The dense twin is the fastest recorded kernel of the same layer, on the same pruned weights.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.families import config_from_dict, config_from_key, family_of
from subbyte.files import write_file
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import recorded_best
from subbyte.records.describe import to_line
from subbyte.spaces.configuration import Configuration
from subbyte.workload.precision import SUMS

WEIGHTS = "w4a4:signed-2of4.signed"
BASES = {
    "resnet50.stage2@256": ("wg24-tw28-tr1-cm1-cn2-sg4-st5-res1", "wg24-tw28-tr1-cm1-cr2-sg4-st5-res1"),
    "resnet50.stage3@256": ("wg24-tw28-tr1-cm2-sg4-st5-la1-res1", "wg24-tw28-tr1-cm1-cr2-sg2-st6-la1-res1",
                            "wg24-tw14-tr2-cm2-sg4-st6-la1-res1", "wg24-tw28-tr1-cm2-sg4-st5-la1-res0"),
    "resnet50.stage4@256": ("wg24-tw14-tr1-cm2-sg2-st5-la1-res1", "wg24-tw14-tr2-cm2-sg2-st5-la1-res0",
                            "wg24-tw14-tr1-cm2-sg4-st5-ig2-la1-res0", "wg24-tw14-tr1-cm1-cr2-sg1-st6-la1-res1"),
    "resnet50.stage5@256": ("wg24-tw7-tr2-cm1-cr2-sg1-cg8-st3-rr3-la1-ig2-res0",
                            "wg24-tw7-tr2-cm1-cr2-sg1-cg4-st3-rr3-la1-ig2-res0",
                            "wg24-tw7-tr4-cm1-sg1-cg8-st3-rr3-la1-ig2-res0"),
    "resnet50.stage2@64": ("wg24-tw28-tr1-cm1-cr2-sg8-st4-la1-res1", "wg24-tw28-tr1-cm1-cn2-sg14-st4-la1-res1"),
    "resnet50.stage3@64": ("wg24-tw14-tr2-cm1-cr2-sg4-st9-res1", "wg24-tw28-tr1-cm2-sg14-st4-res1",
                           "wg24-tw28-tr1-cm1-cr2-sg7-st6-la1-res1"),
    "resnet50.stage4@64": ("wg24-tw14-tr2-cm1-cr2-sg4-st6-hr1-res0", "wg24-tw14-tr1-cm2-sg7-st4-la1-res1",
                           "wg24-tw14-tr1-cm1-cr2-sg4-st6-la1-res1"),
    "resnet50.stage5@64": ("wg24-tw7-tr1-cm1-cr2-sg4-cg4-st3-rr3-la1-ig2-hr1-res0",
                           "wg24-tw7-tr2-cm1-cr2-sg2-cg4-st3-rr3-la1-ig2-res0"),
    "resnet50.stage2@8": ("wg24-tw14-tr2-cm1-sg28-st4-if2-sta0-res1",
                          "wg24-tw14-tr1-cm1-cr2-sg28-st4-sta0-preg72-res1",
                          "wg24-tw28-tr1-cm1-sg56-st3-if2-sta0-res1"),
    "resnet50.stage3@8": ("wg24-tw14-tr1-cm1-sg28-st3-if2-sta0-res1",
                          "wg24-tw14-tr1-cm2-sg28-st3-un2-sta0-preg80-res0"),
    "resnet50.stage4@8": ("wg24-tw14-tr1-cm1-sg14-st3-if2-sta0-res1", "wg24-tw14-tr1-cm1-sg14-st3-un4-if3-sta0-res0"),
    "resnet50.stage5@8": ("wg24-tw8-tr1-cm1-sg7-st3-un4-if3-sta0-res0", "wg24-tw8-tr1-cm2-sg7-st3-un4-sta0-res0"),
}  # fmt: skip
"""Ways to divide the work of each cell; the first is the most hopeful."""
OPEN: Mapping[str, tuple[int, ...]] = {
    "stages": (-1, 0, 1), "in_flight": (1, 2, 3), "stagger": (0, 1, 2), "start": (0, 1, 2, 3), "load_ahead": (1, 2),
    "unroll": (1, 2), "resident": (0, 1), "row_reuse": (0, 1, 2, 3),
}  # fmt: skip
"""What the ways leave open; stages are added to theirs."""
DRAWS = 4000


def around(base: Configuration) -> dict[str, tuple[int, ...]]:
    """The values of the open knobs near a configuration; how rows go round is a part of how the work is divided."""
    values = base.to_dict()
    near = {**OPEN, "stages": tuple(values["stages"] + more for more in OPEN["stages"])}
    return {**near, "row_reuse": (0, 3) if values["row_reuse"] in (0, 3) else (1, 2)}


def neighbours(base: Configuration, cell: str, draw: random.Random) -> list[Configuration]:
    """What differs from a configuration in one knob of the space or an open one, in a random order."""
    listed = subbyte.space(f"{cell}:{WEIGHTS}", "sm_90a", "wgmma-2of4").knobs
    values = {name: dict.fromkeys((*listed.get(name, ()), *around(base).get(name, ()))) for name in base.rows}
    found = [base.with_values({name: value}) for name, several in values.items() for value in several]
    return draw.sample(found, len(found))


def tried(cell: str, most: int, before: Sequence[str]) -> Iterator[Configuration]:
    """At most so many configurations of a cell that can be built, as many of each way to divide the work: first that
    way, then random choices around it; or with kernels measured before what differs from them in one knob."""
    workload, target = subbyte.workload(f"{cell}:{WEIGHTS}"), arch("sm_90a")
    draw = random.Random(cell)
    seen: set[Configuration] = set()
    given = [config_from_key(key) for key in (before or BASES[cell])]
    each = -(-most // len(given))
    for base in given:
        near = around(base)
        if before:
            others = neighbours(base, cell, draw)
        else:
            choices = list(product(*near.values()))
            picked = draw.sample(choices, min(DRAWS, len(choices)))
            others = [base.with_values(dict(zip(near, values, strict=True))) for values in picked]
        taken = 0
        for config in (base, *others):
            if taken == each:
                break
            family = family_of(config)
            if config in seen or family.check(family.plan(workload, config, target)) is not None:
                continue
            seen.add(config)
            taken += 1
            yield config


def fastest(records: Sequence[Path], most: int) -> dict[str, list[str]]:
    """The keys of each cell's fastest right kernels in records of ``measure``."""
    times: dict[str, dict[str, float]] = {}
    for path in records:
        for one in json.loads(path.read_text(encoding="utf-8"))["kernels"]:
            if not one["dense"] and one["wrong"] == 0 and not one["refused"] and one["output"] != SUMS:
                of_cell = times.setdefault(one["cell"], {})
                of_cell[one["config"]] = min(one["microseconds"], of_cell.get(one["config"], one["microseconds"]))
    return {cell: sorted(found, key=found.__getitem__)[:most] for cell, found in times.items()}


def line(cell: str, config: Configuration, dense: bool, output: str | None = None) -> str:
    """One kernel, with its text."""
    plan = make_plan(subbyte.workload(f"{cell}:{WEIGHTS}"), config, "sm_90a", output, None, "fixed")
    about: dict[str, Any] = {"cell": cell, "config": config.key, "dense": dense, "output": plan.output}
    return to_line({**about, "cuda": Kernel(plan).cuda})


@answering
def main(arguments: Sequence[str]) -> int:
    """Write them."""
    parser = parser_of("sparse texts", __doc__)
    parser.add_argument("out", type=Path, help="a file of JSON lines, FILE.jsonl or FILE.jsonl.gz")
    parser.add_argument("--most", type=int, default=16, help="configurations of a cell (default 16)")
    parser.add_argument("--cells", nargs="+", default=list(BASES), choices=list(BASES), metavar="CELL")
    parser.add_argument("--measured", type=Path, nargs="+", default=[], metavar="RECORD", help="what was measured")
    parser.add_argument("--kept", type=int, default=3, help="of each cell's measured kernels (default 3)")
    asked = parser.parse_args(arguments)
    before = fastest(asked.measured, asked.kept)
    lines = []
    for cell in asked.cells:
        twin = config_from_dict(recorded_best()[subbyte.workload(cell).spec]["config"])
        lines.append(line(cell, twin, dense=True))
        configs = list(tried(cell, asked.most, before.get(cell, [])))
        lines += [line(cell, config, dense=False) for config in configs]
        lines += [line(cell, config, dense=False, output=SUMS) for config in configs[:1]]
        print(f"{cell}: {len(lines)} texts in all", flush=True)
    text = "".join(f"{one}\n" for one in lines).encode()
    write_file(asked.out, gzip.compress(text, mtime=0) if asked.out.suffix == ".gz" else text)
    return 0

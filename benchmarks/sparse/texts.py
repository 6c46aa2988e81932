"""Write the CUDA texts of kernels on 2:4 weights, with ``--live`` on weights with blocks of zeros, and of their dense
twins, for a machine without TVM.

A cell is a 3x3 stage of ResNet-50 at a batch. Its kernels are a few ways to divide the work, and of what remains open
random choices; or with ``--measured`` those that ``measure`` found fastest before, and what differs from them in one
knob. The dense twin is the fastest recorded kernel of the same layer, on the same pruned weights.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.sparse.built import write_lines
from benchmarks.sparse.ways import BASES, BLOCK_BASES, LATER_BASES
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families import config_from_dict, config_from_key, family_of
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import recorded_best
from subbyte.records.describe import to_line
from subbyte.spaces.configuration import Configuration
from subbyte.workload.precision import SUMS

WEIGHTS = "w4a4:signed-2of4.signed"
BLOCK_WEIGHTS = "w4a4:signed-blocks{}.signed"
"""The types of weights of which so many of 100 blocks are live."""
OPEN: Mapping[str, tuple[int, ...]] = {
    "stages": (-1, 0, 1), "in_flight": (1, 2, 3), "stagger": (0, 1, 2), "start": (0, 1, 2, 3), "load_ahead": (1, 2),
    "unroll": (1, 2), "resident": (0, 1, 2), "row_reuse": (0, 1, 2, 3), "live_pairs": (1, 2, 3, 4),
}  # fmt: skip
"""What the ways leave open; stages are added to theirs."""
DRAWS = 4000


def around(base: Configuration) -> dict[str, tuple[int, ...]]:
    """The values of the open knobs near a configuration; how rows go round is a part of how the work is divided."""
    values = base.to_dict()
    near = {**OPEN, "stages": tuple(values["stages"] + more for more in OPEN["stages"])}
    near |= {"row_reuse": (0, 3) if values["row_reuse"] in (0, 3) else (1, 2)}
    return {name: several for name, several in near.items() if name in values}


def typed(cell: str) -> str:
    """The text of a cell's workload: 2:4 unless the cell says which types it has."""
    return cell if ":" in cell else f"{cell}:{WEIGHTS}"


def neighbours(base: Configuration, cell: str, draw: random.Random) -> list[Configuration]:
    """What differs from a configuration in one knob of the space or an open one, in a random order."""
    kind = "wgmma-blocks" if ":" in cell else "wgmma-2of4"
    listed = subbyte.space(typed(cell), "sm_90a", kind).knobs
    values = {name: dict.fromkeys((*listed.get(name, ()), *around(base).get(name, ()))) for name in base.rows}
    found = [base.with_values({name: value}) for name, several in values.items() for value in several]
    return draw.sample(found, len(found))


def tried(
    cell: str, most: int, before: Sequence[str], known: Sequence[str] = (), later: bool = False
) -> Iterator[Configuration]:
    """At most so many configurations of a cell that can be built, as many of each way to divide the work: first that
    way, then random choices around it; or with kernels measured before what differs from them in one knob, and is not
    ``known``. ``later``: the ways of the second campaign."""
    workload, target = subbyte.workload(typed(cell)), arch("sm_90a")
    bases = (BLOCK_BASES if ":" in cell else LATER_BASES if later else BASES)[cell.partition(":")[0]]
    draw = random.Random(cell)
    seen: set[Configuration] = set()
    given = [config_from_key(key) for key in (before or bases)]
    each = -(-most // len(given))
    for base in given:
        near = around(base)
        if later:
            del near["resident"]
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
            new = config not in seen and (config == base or config.key not in known)
            if not new or family.check(family.plan(workload, config, target)) is not None:
                continue
            seen.add(config)
            taken += 1
            yield config


def measured(records: Sequence[Path]) -> dict[str, list[str]]:
    """The keys of each cell's right kernels in records of ``measure``, the fastest first; of several shares of live
    blocks the fastest of each, then the second of each and so on."""
    times: dict[str, dict[str, dict[str, float]]] = {}
    for path in records:
        for one in json.loads(path.read_text(encoding="utf-8"))["kernels"]:
            if not one["dense"] and one["wrong"] == 0 and not one["refused"] and one["output"] != SUMS:
                of_cell = times.setdefault(one["cell"].partition(":")[0], {}).setdefault(one["cell"], {})
                of_cell[one["config"]] = min(one["microseconds"], of_cell.get(one["config"], one["microseconds"]))
    ranked = {cell: [sorted(found, key=found.__getitem__) for found in several.values()]
              for cell, several in times.items()}  # fmt: skip
    in_turns = {
        cell: (key for keys in zip_longest(*several) for key in keys if key) for cell, several in ranked.items()
    }
    return {cell: list(dict.fromkeys(keys)) for cell, keys in in_turns.items()}


def line(cell: str, config: Configuration, dense: bool, live: Sequence[int] = (), output: str | None = None) -> str:
    """One kernel, with its text; ``live`` are the percentages of live blocks that it is to be measured at: its text is
    the same for all."""
    plan = make_plan(subbyte.workload(typed(cell)), config, "sm_90a", output, None, "fixed")
    about: dict[str, Any] = {"cell": cell.partition(":")[0], "config": config.key, "dense": dense,
                             "output": plan.output, "live": list(live)}  # fmt: skip
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
    parser.add_argument("--live", type=int, nargs="+", default=[], metavar="PERCENT", help="of blocks, not 2:4 weights")
    parser.add_argument("--later", action="store_true", help="the ways of the second campaign of 2:4 weights")
    parser.add_argument("--only-kept", action="store_true", help="the kept measured kernels, nothing near them")
    asked = parser.parse_args(arguments)
    if asked.later and (asked.live or asked.only_kept or not set(asked.cells) <= set(LATER_BASES)):
        raise InvalidInput(
            f"--later is of 2:4 weights, without --live and --only-kept, and of {', '.join(LATER_BASES)}"
        )
    before = measured(asked.measured)
    lines = []
    for name in asked.cells:
        twin = config_from_dict(recorded_best()[subbyte.workload(name).spec]["config"])
        cell = f"{name}:{BLOCK_WEIGHTS.format(max(asked.live))}" if asked.live else name
        lines.append(line(cell, twin, True, asked.live))
        known = before.get(name, [])
        kept = known[: asked.kept]
        if asked.only_kept:
            configs = [config_from_key(key) for key in kept]
        else:
            configs = list(tried(cell, asked.most, () if asked.later else kept, known, asked.later))
        lines += [line(cell, config, False, asked.live) for config in configs]
        lines += [line(cell, config, False, asked.live[:1], SUMS) for config in configs[:1]]
        print(f"{name}: {len(lines)} texts in all", flush=True)
    write_lines(asked.out, lines)
    return 0

"""Print what records of ``measure`` hold of each cell: the dense twin, the fastest 2:4 kernel beside it, the goal and
whether it is met.

The ceiling is what ``wgmma.sp`` reaches alone on a GPU of the same name (``--rates``, a record of ``subbyte bench
atoms``), of the kernel's width; 80 % (``SHARE``) is of the fastest width. The goal is that of the project, or where the
ceiling does not allow it 80 % of what it allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.shared.command import RESULTS, answering, parser_of
from benchmarks.sparse.texts import WEIGHTS
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key, family_of

GOALS = {
    "resnet50.stage2@256": 27.0, "resnet50.stage3@256": 24.0, "resnet50.stage4@256": 24.0,
    "resnet50.stage5@256": 22.0, "resnet50.stage2@64": 9.8, "resnet50.stage3@64": 9.8, "resnet50.stage4@64": 9.8,
    "resnet50.stage5@64": 9.8,
}  # fmt: skip
"""Microseconds."""
RATES = RESULTS / "sparse" / "atoms-h200-2026-11-23.json"
"""What ``subbyte bench atoms`` measured of each instruction alone, on an H200."""
SHARE = 0.8


def best(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each cell the medians of the rounds: ``dense``, and ``sparse`` the fastest right 2:4 kernel."""
    good = {(one["cell"], one["config"]) for one in record["kernels"] if one["wrong"] == 0 and not one["refused"]}
    found: dict[str, dict[str, Any]] = {}
    for one in record["rounds"]:
        if (one["cell"], one["config"]) not in good:
            continue
        of_cell, side = found.setdefault(one["cell"], {}), "dense" if one["dense"] else "sparse"
        if side not in of_cell or one["median"] < of_cell[side]["median"]:
            of_cell[side] = one
    return {cell: sides for cell, sides in found.items() if len(sides) == 2}


def joined(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of several records each cell's fastest 2:4 kernel, with the dense twin of the same process."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        for cell, sides in best(record).items():
            if cell not in found or sides["sparse"]["median"] < found[cell]["sparse"]["median"]:
                found[cell] = sides
    return found


@cache
def rates(ending: str, source: Path = RATES) -> dict[int, float]:
    """10^12 operations per second of ``wgmma.sp`` by its columns; ``ending`` as in the names of the record."""
    record = json.loads(source.read_text(encoding="utf-8"))
    names = {re.fullmatch(rf"s8\.wgmma\.sp\.m64n(\d+)k64{ending}", one["atom"]): one for one in record["atoms"]}
    return {int(match[1]): float(one["tops"]) for match, one in names.items() if match}


def ceilings(cell: str, config: str, source: Path = RATES) -> tuple[float, float]:
    """Microseconds of the multiplications alone, at the measured rate of the instruction with such weights: of the
    kernel's width, between the widths that were measured in proportion, and of the fastest one."""
    workload, chosen = subbyte.workload(f"{cell}:{WEIGHTS}"), config_from_key(config)
    atom = family_of(chosen).plan(workload, chosen, arch("sm_90a")).atom.name
    known = rates("" if chosen.to_dict()["resident"] == 1 else r"\.streamed", source)
    columns = int(atom.partition("m64n")[2].partition("k")[0])
    of_width = float(np.interp(columns, list(known), list(known.values())))
    return workload.operations / of_width / 1e6, workload.operations / max(known.values()) / 1e6


def met(taken: float, goal: float) -> str:
    """Whether a time is within a goal, both in microseconds; otherwise how far above it."""
    return "yes" if taken <= goal else f"no, {taken / goal - 1:.1%} above"


def rows(records: Sequence[dict[str, Any]], source: Path = RATES) -> list[str]:
    """The table's lines. Raises InvalidInput for rates of another GPU."""
    names = {gpu["name"] for record in records for gpu in record["gpus"]}
    measured = json.loads(source.read_text(encoding="utf-8"))["device"]["name"]
    if names != {measured}:
        raise InvalidInput(
            f"records of {', '.join(sorted(names))} beside rates of {measured}: give --rates of that GPU"
        )
    heads = ("cell", "dense, us", "2:4, us", "dense / 2:4", "ceiling, us", "of the ceiling", "80 % of the fastest, us",
             "goal, us", "met", "kernel")  # fmt: skip
    made = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for cell, sides in joined(records).items():
        if ":" in cell:  # not of 2:4 weights
            continue
        dense, sparse = sides["dense"], sides["sparse"]
        least, fastest = ceilings(cell, sparse["config"], source)
        goal, allowed, taken = GOALS.get(cell), fastest / SHARE, sparse["median"]
        said = ("-", "-")
        if goal is not None:
            said = f"{goal:.1f}" if goal >= allowed else f"{allowed:.1f} ({goal:.1f})", met(taken, max(goal, allowed))
        line = (
            cell, f"{dense['median']:.2f}", f"{taken:.2f}", f"{sparse['ratio']:.2f}", f"{least:.1f}",
            f"{least / taken:.0%}", f"{allowed:.1f}", *said, f"`{sparse['config']}`",
        )  # fmt: skip
        made.append(f"| {' | '.join(line)} |")
    return made


@answering
def main(arguments: Sequence[str]) -> int:
    """Print it."""
    parser = parser_of("sparse table", __doc__)
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    parser.add_argument("--rates", type=Path, default=RATES, metavar="RECORD", help="of `bench atoms` on the same GPU")
    asked = parser.parse_args(arguments)
    print("\n".join(rows([json.loads(path.read_text(encoding="utf-8")) for path in asked.records], asked.rates)))
    return 0

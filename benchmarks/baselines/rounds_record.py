"""The record of ``rounds``: which runs of a cell count, whether they agree, and what they say together.

A record holds, for each layer and run, the raw samples of every side in every way of timing, the order of the turns and
the clocks beside every round. ``results`` is computed from these alone (``subbyte/measure/interval.py`` has the
formula) and written beside them, so that a table needs no arithmetic and a test can do it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.baselines.sides import OURS
from subbyte.files import replace_file
from subbyte.measure.interval import OPEN, TOLERANCE, Interval, Pooled, Runs, agree, interval, pooled, ratios, runs_of
from subbyte.measure.rounds import Entry, Rounds

FORMAT = "subbyte-side-by-side"
RUNS = 2
"""Runs of every cell; one more where these disagree."""
KINDS = ("hot", "cold", "chain", "plain_chain")
JUDGED = ("hot", "chain")
"""Runs have to agree in these."""
DIGITS = 4
_NUMBERS = re.compile(r"\[\s+((?:-?[\d.e+-]+|null),?\s+)+\]")

Samples = dict[tuple[str, str], list[list[float]]]
"""Samples of the runs of a cell, by side and way of timing."""


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace the record as a whole; rows of numbers stand on one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = _NUMBERS.sub(lambda found: " ".join(found[0].split()), json.dumps(record, indent=1))
    replace_file(path, (text + "\n").encode())


def run_of(number: int, date: str, found: Rounds, entries: list[Entry], sides: list[dict[str, Any]],
           absent: list[dict[str, Any]]) -> dict[str, Any]:  # fmt: skip
    """A run of a cell as the record keeps it."""
    clocks = [snapshot.to_dict() for snapshot in found.clocks]
    return {
        "run": number, "date": date, "sides": sides, "absent": absent,
        "entries": [
            {"side": entry.side, "what": entry.what, "samples": [round(us, DIGITS) for us in samples]}
            for entry, samples in zip(entries, found.samples, strict=True)
        ],
        "orders": [list(order) for order in found.orders],
        "clocks": {name: [clock[name] for clock in clocks] for name in clocks[0]} if clocks else {},
    }  # fmt: skip


def whole(run: dict[str, Any], asked: list[dict[str, Any]]) -> bool:
    """Whether a run has our kernel and a baseline, where one was asked for that is at hand: else the GPU may have been
    lost meanwhile."""
    names = [side["name"] for side in run["sides"]]
    could = len(
        {line["side"] for line in asked} - {line["side"] for line in run["absent"] if "--cutlass" in line["reason"]}
    )
    return OURS in names and (len(names) > 1 or not could)


def samples_of(cell: dict[str, Any]) -> Samples:
    """What was sampled in all runs of a cell. Sides and ways of timing that a run lacks are left out: a mean over other
    runs is not comparable."""
    found: Samples = {}
    for run in cell["runs"]:
        for entry in run["entries"]:
            found.setdefault((entry["side"], entry["what"]), []).append(entry["samples"])
    return {key: runs for key, runs in found.items()
            if len(runs) == len(cell["runs"]) and all(us > 0 for run in runs for us in run)}  # fmt: skip


def disagreeing(cells: Iterable[dict[str, Any]], tolerance: float = TOLERANCE) -> list[str]:
    """Layers of which no two runs agree on some side, alone or in a chain, within ``tolerance``."""
    return [cell["workload"] for cell in cells if len(cell["runs"]) >= RUNS and not agreed(samples_of(cell), tolerance)]


def agreed(samples: Samples, tolerance: float = TOLERANCE) -> bool:
    """Whether two runs agree on every side, alone and in a chain."""
    return all(agree(runs, tolerance) for (_, what), runs in samples.items() if what in JUDGED)


def results(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the runs say together, cell by cell: times and ratios with intervals, and who is ahead."""
    times, over = [], []
    for cell in cells:
        samples = samples_of(cell)
        times.append({key: runs_of(runs) for key, runs in samples.items()})
        over.append({
            (side, what): runs_of(ratios(runs, samples[OURS, what]))
            for (side, what), runs in samples.items() if side != OURS and (OURS, what) in samples
        })  # fmt: skip
    spread, apart = ({what: together(many, what) for what in KINDS} for many in (times, over))
    return [
        result_of(cell, {key: interval(runs, spread[key[1]]) for key, runs in one.items()},
                  {key: interval(runs, apart[key[1]]) for key, runs in ratio.items()})
        for cell, one, ratio in zip(cells, times, over, strict=True)
    ]  # fmt: skip


def together(many: list[dict[tuple[str, str], Runs]], what: str) -> Pooled:
    """What runs differ by in one way of timing, over all cells and sides."""
    return pooled(runs for one in many for key, runs in one.items() if key[1] == what)


def result_of(
    cell: dict[str, Any], times: dict[tuple[str, str], Interval], over: dict[tuple[str, str], Interval]
) -> dict[str, Any]:
    """The result of a cell; the best baseline is the fastest by the mean of the runs, alone and in a chain. While the
    fastest plan of a side that was asked for is absent, the verdict is open."""
    about = {side["name"]: side for run in cell["runs"] for side in run["sides"]}
    baselines = []
    for name in (name for name in about if (name, "hot") in over):
        line = {"name": name, "side": about[name]["side"], "plan": about[name]["plan"]}
        line |= {what: times[name, what].to_dict() for what in KINDS if (name, what) in times}
        line |= {f"ratio_{what}": over[name, what].to_dict() for what in KINDS if (name, what) in over}
        baselines.append(line)
    baselines.sort(key=lambda line: line["hot"]["value"])
    absent = list({(one["side"], one["plan"]): one for run in cell["runs"] for one in run["absent"]}.values())
    chained = min(
        (line for line in baselines if "ratio_chain" in line), default=None, key=lambda one: one["chain"]["value"]
    )
    firsts = {(line["side"], line["plans"][0]) for line in cell["asked"]}
    unknown = not baselines or any((one["side"], one["plan"]) in firsts for one in absent)
    count = len(cell["runs"])
    return {
        "workload": cell["workload"], "runs": count, "agree": count >= RUNS and agreed(samples_of(cell)),
        "ours": {what: times[OURS, what].to_dict() for what in KINDS if (OURS, what) in times},
        "opponents": baselines, "best": baselines[0]["name"] if baselines else None,
        "verdict": OPEN if unknown else over[baselines[0]["name"], "hot"].verdict(),
        "best_chain": chained["name"] if chained else None,
        "verdict_chain": None if chained is None else OPEN if unknown else over[chained["name"], "chain"].verdict(),
        "absent": absent,
    }  # fmt: skip

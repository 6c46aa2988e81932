"""Writes what the package and the repository keep of ``tune_network.py``.

    python benchmarks/collect_tuning.py LOGS --generator 1a2b3c4 --date 2026-11-20
    python benchmarks/collect_tuning.py --record results/opponents/side-by-side-....json --generator 1a2b3c4

LOGS is the folder that ``tune_network.py`` wrote. Kept are: the fastest configuration of each layer
(``toolkit/subbyte/kernel/warpgroup_best.json``), landscapes of the layers that were sampled
(``toolkit/subbyte/landscapes``), and every trial with the finals (``results/warpgroup/tuning-*.json.gz``). With
``--record`` what ``opponents.py compare`` found fastest is kept, where it is better than what is known.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from collect_searches import one_search
from tune_network import PROTOCOL

from subbyte.measure.result import Measured, Result
from subbyte.tune import read_log
from subbyte.tune.describe import workload_from_dict
from subbyte.tune.landscape import Landscape, make_header

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "toolkit" / "subbyte"
FORMAT = "subbyte-network-tuning"
KIND, SAMPLED = "warpgroup", "sampled"
COMMAND = "tune_network.py"
ALIKE = 1.01
"""Times that differ by less count as equal."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("logs", type=Path, nargs="?")
    parser.add_argument("--record", type=Path, help="a record of the opponents instead of logs")
    parser.add_argument("--generator", required=True, help="commit of the kernel generator")
    parser.add_argument("--date", default="", help="day of the run, as in file names")
    parser.add_argument("--package", type=Path, default=PACKAGE)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "warpgroup")
    args = parser.parse_args(arguments)
    best = args.package / "kernel" / "warpgroup_best.json"
    known = json.loads(best.read_text(encoding="utf-8")) if best.exists() else {}
    if args.record is not None:
        record = json.loads(args.record.read_text(encoding="utf-8"))
        merge(known, record, f"benchmarks/results/opponents/{args.record.name}", args.generator)
        best.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
        return 0
    raw = args.results / f"tuning-h200-{args.date}.json.gz"
    finals = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((args.logs / "finals").glob("*.json"))]
    if not finals:
        print(f"error: {args.logs} holds no finals", file=sys.stderr)
        return 2
    write_raw(raw, args.logs, finals)
    source = f"benchmarks/results/warpgroup/{raw.name}"
    known |= {one["spec"]: entry for one in finals if (entry := best_of(one, source, args.generator)) is not None}
    best.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    for sampled in sorted(args.logs.glob(f"*.{SAMPLED}.jsonl")):
        made = landscape_of(sampled, sampled.with_name(sampled.name.replace(f".{SAMPLED}.", f".{KIND}.")))
        path = made.save(args.package / "landscapes" / f"{made.name}.json.gz")
        best_us = made.best[1].microseconds
        print(f"{path.name}: {len(made)} configurations, {path.stat().st_size:,} bytes, best {best_us:.2f} us")
    print(f"{raw.name}: {raw.stat().st_size:,} bytes; {len(finals)} layers")
    return 0


def best_of(final: Mapping[str, Any], source: str, generator: str) -> dict[str, Any] | None:
    """A layer's entry: the fastest of the warpgroup family (of those alike one that overlaps with others), under
    ``warp`` the fastest of the other family; None without the former."""
    fastest: dict[str, Any] = {}
    for entry in final["entries"]:  # in the order of their times
        fastest.setdefault(entry["family"], entry)
    own, other = fastest.get("warpgroup"), fastest.get("warp")
    if own is None:
        return None
    for entry in final["entries"]:
        close = entry["family"] == "warpgroup" and entry["microseconds"] <= ALIKE * own["microseconds"]
        if close and entry["config"].get("overlap"):
            own = entry
            break
    found = {
        "config": own["config"], "microseconds": round(own["microseconds"], 4), "device": final["device"]["name"],
        "source": source, "generator": generator,
    }  # fmt: skip
    if other is not None:
        found["warp"] = {"config": other["config"], "microseconds": round(other["microseconds"], 4)}
    return found


def merge(known: dict[str, Any], record: Mapping[str, Any], source: str, generator: str) -> None:
    """Put what a record of the opponents found fastest into the known best, where it is better by more than noise."""
    for cell in record["cells"]:
        own, before = cell.get("ours"), known.get(cell["spec"])
        if own is None:
            continue
        found = {"config": own["config"], "microseconds": round(own["microseconds"], 4)}
        if own["family"] == "warp":
            if before is not None:
                before["warp"] = found
        elif before is None or ALIKE * own["microseconds"] < before["microseconds"]:
            other = {"warp": before["warp"]} if before is not None and "warp" in before else {}
            device = {"device": record["gpu"]["name"], "source": source, "generator": generator}
            known[cell["spec"]] = {**found, **device, **other}


def landscape_of(*logs: Path) -> Landscape:
    """What searches of one space measured, the first time of each configuration, as a landscape."""
    records = [read_log(path) for path in logs if path.exists()]
    spaces = {record.header["space"]["hash"] for record in records}
    if len(spaces) != 1:
        raise ValueError(f"{logs[0].name}: logs of {len(spaces)} spaces make no landscape")
    devices = [dict(record.header["device"]) for record in records]
    uuids = list(dict.fromkeys(str(device.get("uuid")) for device in devices))
    common = {key: value for key, value in devices[0].items() if all(d.get(key) == value for d in devices)}
    device = {**common, "gpus": len(uuids), "uuids": uuids} if len(uuids) > 1 else devices[0]
    device["driver_version"] = device.pop("driver", "")
    results: dict[int, Result] = {}
    for record in records:
        for trial in record.trials:
            if trial.result is not None and trial.index not in results:
                results[trial.index] = slim(trial.result)
    protocol = {**PROTOCOL.to_dict(), "seed": records[0].header["seed"]}
    header = make_header(records[0].header["workload"], records[0].header["space"], device, protocol, COMMAND)
    header["created"] = records[0].header["created"]
    made = Landscape.fitted(header, dict(sorted(results.items())))
    assert made.workload == workload_from_dict(header["workload"])
    return made


def slim(result: Result) -> Result:
    """A result without the readings that a landscape does not show."""
    if isinstance(result, Measured):
        return replace(result, device={"uuid": result.device.get("uuid")}, clocks={}, seconds={})
    return replace(result, seconds={})


def write_raw(path: Path, logs: Path, finals: list[dict[str, Any]]) -> None:
    """Every trial of every search, and the finals."""
    searches = {log.stem: one_search(log) for log in sorted(logs.glob("*.jsonl"))}
    data = {"format": FORMAT, "schema": 1, "finals": finals, "searches": searches}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress((json.dumps(data, separators=(",", ":")) + "\n").encode(), 9, mtime=0))


if __name__ == "__main__":
    sys.exit(main())

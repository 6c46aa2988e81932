"""Write what the package and the repository keep of ``tune``.

    python benchmarks/network collect LOGS --generator 1a2b3c4 --date 2026-11-20
    python benchmarks/network collect --record results/baselines/side-by-side-....json --generator 1a2b3c4

LOGS is the folder that ``tune`` wrote. Kept are: the fastest configuration of each layer
(``toolkit/subbyte/kernel/best.json``), landscapes of the small spaces that were measured whole
(``toolkit/subbyte/landscapes``), and every trial with the re-measurements (``results/warpgroup/tuning-*.json.gz``). The
entry of a layer that was not measured again stays only with ``--keep``: it is of another generator. ``--only-trials``
writes the last alone: searches of layers that are held out enter nothing that ships. With ``--record``
what ``baselines compare`` found fastest is kept, where it is better than what is known.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.network.remeasured import overlaps
from benchmarks.network.searches import FORMAT, texts_in
from benchmarks.network.tune import PROTOCOL
from benchmarks.paper.collect import one_search
from benchmarks.shared.command import RESULTS, ROOT, answering, parser_of
from subbyte.errors import InvalidInput
from subbyte.families.registry import family_named
from subbyte.families.wgmma.space import SMALL
from subbyte.records.landscape import Landscape, make_header
from subbyte.records.result import Measured, Result
from subbyte.tune import read_log

PACKAGE = ROOT / "toolkit" / "subbyte"
COMMAND = "python benchmarks/network tune"
ALIKE = 1.01
"""Times that differ by less count as equal."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network collect", __doc__)
    parser.add_argument("logs", type=Path, nargs="?")
    parser.add_argument("--record", type=Path, help="a record of the baselines instead of logs")
    parser.add_argument("--generator", required=True, help="commit of the kernel generator")
    parser.add_argument("--date", default="", help="day of the run, as in file names")
    parser.add_argument("--name", default="tuning", help="how the file of the trials begins (default tuning)")
    parser.add_argument("--only-trials", action="store_true", help="write the trials; the package stays as it is")
    parser.add_argument("--keep", action="store_true", help="keep the entries of layers that were not measured again")
    parser.add_argument("--package", type=Path, default=PACKAGE)
    parser.add_argument("--results", type=Path, default=RESULTS / "warpgroup")
    args = parser.parse_args(arguments)
    best = args.package / "kernel" / "best.json"
    known = json.loads(best.read_text(encoding="utf-8")) if best.exists() else {}
    if args.record is not None:
        record = json.loads(args.record.read_text(encoding="utf-8"))
        merge(known, record, f"benchmarks/results/baselines/{args.record.name}", args.generator)
        best.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
        return 0
    raw = args.results / f"{args.name}-h200-{args.date}.json.gz"
    files = sorted((args.logs / "remeasured").glob("*.json"))
    remeasured = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    if not remeasured and not args.only_trials:
        raise InvalidInput(
            f"{args.logs}/remeasured holds nothing: `python benchmarks/network tune` did not come to its end"
        )
    write_raw(raw, args.logs, remeasured)
    if args.only_trials:
        print(f"{raw.name}: {raw.stat().st_size:,} bytes; {len(list(args.logs.glob('*.jsonl')))} searches")
        return 0
    source = f"benchmarks/results/warpgroup/{raw.name}"
    found = {one["spec"]: entry for one in remeasured if (entry := best_of(one, source, args.generator)) is not None}
    lost = sorted(set(known) - set(found))
    known = {**known, **found} if args.keep else found
    best.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    for log in sorted(args.logs.glob(f"*.{SMALL}.jsonl")):
        print(kept_landscape(log, args.package / "landscapes"))
    print(f"{raw.name}: {raw.stat().st_size:,} bytes; {len(remeasured)} layers")
    if lost:
        what = "kept" if args.keep else "left out"
        print(f"{len(lost)} recorded layers that were not measured again, {what}: {', '.join(lost)}")
    return 0


def kept_landscape(log: Path, folder: Path) -> str:
    """Write the landscape of a small space, and say so; or say that its search did not come to the end."""
    made = landscape_of(log)
    missing = len(made.missing)
    if missing:
        return f"{log.name}: no landscape, {missing} configurations were not measured"
    path = made.save(folder / f"{made.name}.json.gz")
    info = made.info()
    counts = f"{info.measured} measured, {sum(info.failed.values())} failed"
    return f"{path.name}: {counts}, {path.stat().st_size:,} bytes, best {made.best[1].microseconds:.2f} us"


def best_of(layer: Mapping[str, Any], source: str, generator: str) -> dict[str, Any] | None:
    """A layer's entry: the fastest of the wgmma family (of those alike one that overlaps with others), under
    ``warp`` the fastest of the other family; None without the former."""
    fastest: dict[str, Any] = {}
    for entry in layer["entries"]:  # in the order of their times
        fastest.setdefault(family_named(entry["family"]).name, entry)
    own, other = fastest.get("wgmma"), fastest.get("mma")
    if own is None:
        return None
    for entry in layer["entries"]:
        close = entry["family"] == own["family"] and entry["microseconds"] <= ALIKE * own["microseconds"]
        if close and overlaps(entry["config"]):
            own = entry
            break
    found = {
        "config": own["config"], "microseconds": round(own["microseconds"], 4), "device": layer["device"]["name"],
        "source": source, "generator": generator,
    }  # fmt: skip
    if other is not None:
        found["warp"] = {"config": other["config"], "microseconds": round(other["microseconds"], 4)}
    return found


def merge(known: dict[str, Any], record: Mapping[str, Any], source: str, generator: str) -> None:
    """Put what a record of the baselines found fastest into the known best, where it is better by more than noise."""
    for cell in record["cells"]:
        own, before = cell.get("ours"), known.get(cell["spec"])
        if own is None:
            continue
        found = {"config": own["config"], "microseconds": round(own["microseconds"], 4)}
        if family_named(own["family"]).name == "mma":
            if before is not None:
                before["warp"] = found
        elif before is None or ALIKE * own["microseconds"] < before["microseconds"]:
            other = {"warp": before["warp"]} if before is not None and "warp" in before else {}
            device = {"device": record["gpu"]["name"], "source": source, "generator": generator}
            known[cell["spec"]] = {**found, **device, **other}


def landscape_of(log: Path) -> Landscape:
    """What the search of a space measured as a landscape; of several GPUs of a kind each entry names its own."""
    record = read_log(log)
    results = {trial.index: slim(trial.result) for trial in record.trials if trial.result is not None}
    uuids = list(dict.fromkeys(str(result.device["uuid"]) for result in results.values() if result.device.get("uuid")))
    device = dict(record.header["device"])
    if len(uuids) > 1:
        device = {**{key: device[key] for key in device if key not in ("uuid", "ordinal", "host")},
                  "gpus": len(uuids), "uuids": uuids}  # fmt: skip
    device["driver_version"] = device.pop("driver", "")
    protocol = {**PROTOCOL.to_dict(), "seed": record.header["seed"]}
    header = make_header(record.header["workload"], record.header["space"], device, protocol, COMMAND)
    header["created"] = record.header["created"]
    return Landscape.fitted(header, dict(sorted(results.items())))


def slim(result: Result) -> Result:
    """A result without the readings that a landscape does not show."""
    if isinstance(result, Measured):
        return replace(result, device={"uuid": result.device.get("uuid")}, clocks={}, seconds={})
    return replace(result, seconds={})


def write_raw(path: Path, logs: Path, remeasured: list[dict[str, Any]]) -> None:
    """Every trial of every search, with what gives an index its configuration, the digests of some kernels' texts, and
    the re-measurements."""
    searches = {}
    for log in sorted(logs.glob("*.jsonl")):
        if not log.name.endswith(f".{SMALL}.jsonl"):  # those are landscapes
            searches[log.stem] = {**one_search(log), "space": read_log(log).header["space"]}
    data = {"format": FORMAT, "schema": 1, "texts": texts_in(logs), "finals": remeasured, "searches": searches}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress((json.dumps(data, separators=(",", ":")) + "\n").encode(), 9, mtime=0))

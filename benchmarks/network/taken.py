"""Put the fastest kernels of records of ``times`` into the package, where they are faster than the known ones.

    python benchmarks/network taken RECORD.json SECOND.json ... --generator 1a2b3c4

Only kernels that at least two of the records have count, with the slowest of their times. Records of another GPU than
what is known: it was measured beside them, in two of the records, or stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.network.collect import ALIKE, PACKAGE
from benchmarks.network.times import FORMAT
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key, family_of
from subbyte.files import write_file

Entry = dict[str, Any]
Times = dict[tuple[str, str], tuple[float, str]]
"""Layer and key of a kernel -> its time, and the record that has it."""


@answering
def main(arguments: Sequence[str]) -> int:
    """Take them."""
    parser = parser_of("network taken", __doc__)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--generator", required=True, metavar="COMMIT", help="commit whose generator made the kernels")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="where kernel/best.json stands")
    asked = parser.parse_args(arguments)
    path = asked.package / "kernel" / "best.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    times = twice({one.name: json.loads(one.read_text(encoding="utf-8")) for one in asked.records})
    device = json.loads(asked.records[0].read_text(encoding="utf-8"))["gpu"]["name"]
    for cell, entry in fastest(times, device, asked.generator).items():
        before = known.get(cell, {})
        time = known_time(before, cell, times, device)
        if ALIKE * entry["microseconds"] >= time:
            print(f"{cell}: {before['microseconds']} us stays, beside {entry['microseconds']} on {device}")
            continue
        print(f"{cell}: {entry['microseconds']} us, before {time if before else 'nothing'}")
        known[cell] = {**entry, **({"warp": before["warp"]} if "warp" in before else {})}
    write_file(path, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())
    return 0


def known_time(before: Entry, cell: str, times: Times, device: str) -> float:
    """What a new kernel has to beat: the known one's time on this GPU. One of another GPU that was not measured here
    is beaten by nothing, a layer that is not known by everything."""
    if not before:
        return float("inf")
    if before.get("device", device) == device:
        return float(before["microseconds"])
    beside = [one[0] for (spec, key), one in times.items() if spec == cell and _is(key, before["config"])]
    return min(beside, default=0.0)


def _is(key: str, known: Mapping[str, Any]) -> bool:
    """A key names a known configuration, whose fields may be those of an earlier version."""
    config = config_from_key(key)
    return family_of(config).decode(dict(known)) == config


def twice(records: Mapping[str, Mapping[str, Any]]) -> Times:
    """The slowest time of every kernel that two of the records have, and that record's name. Raises InvalidInput for a
    record of another form, and where no kernel was measured twice."""
    times: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for name, record in records.items():
        if record.get("format") != FORMAT:
            raise InvalidInput(f"{name}: no record of `python benchmarks/network times`")
        for one in record["kernels"]:
            if "microseconds" in one:
                times.setdefault((one["cell"], one["config"]), []).append((one["microseconds"], name))
    found = {key: max(one) for key, one in times.items() if len(one) > 1}
    if not found:
        raise InvalidInput("no kernel stands in two of the records: measure the fastest again")
    return found


def fastest(times: Times, device: str, generator: str) -> dict[str, Entry]:
    """Of each layer the kernel that is fastest by the slowest of its times."""
    best: dict[str, Entry] = {}
    for (cell, key), (time, name) in sorted(times.items(), key=lambda item: item[1]):
        best.setdefault(cell, {
            "config": config_from_key(key).to_dict(), "microseconds": round(time, 4), "device": device,
            "source": f"benchmarks/results/warpgroup/{name}", "generator": generator,
        })  # fmt: skip
    return best

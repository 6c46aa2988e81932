"""Takes the fastest kernels of records of ``times`` into the package, where they are better than what is known.

    python benchmarks/network taken RECORD.json SECOND.json ... --generator 1a2b3c4

Only kernels that at least two of the records have count, with the slowest of their times.
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
from subbyte.families import config_from_key
from subbyte.files import write_file

Entry = dict[str, Any]


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
    found = fastest({one.name: json.loads(one.read_text(encoding="utf-8")) for one in asked.records}, asked.generator)
    for cell, entry in found.items():
        before = known.get(cell, {})
        if ALIKE * entry["microseconds"] >= before.get("microseconds", float("inf")):
            print(f"{cell}: {before['microseconds']} us stays, beside {entry['microseconds']}")
            continue
        print(f"{cell}: {entry['microseconds']} us, before {before.get('microseconds', 'nothing')}")
        known[cell] = {**entry, **({"warp": before["warp"]} if "warp" in before else {})}
    write_file(path, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())
    return 0


def fastest(records: Mapping[str, Mapping[str, Any]], generator: str) -> dict[str, Entry]:
    """Of each layer the kernel that is fastest by the slowest of its times. Raises InvalidInput for a record of another
    form, and where no kernel was measured twice."""
    times: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for name, record in records.items():
        if record.get("format") != FORMAT:
            raise InvalidInput(f"{name}: no record of `python benchmarks/network times`")
        for one in record["kernels"]:
            if "microseconds" in one:
                times.setdefault((one["cell"], one["config"]), []).append((one["microseconds"], name))
    twice = {key: max(found) for key, found in times.items() if len(found) > 1}
    if not twice:
        raise InvalidInput("no kernel stands in two of the records: measure the fastest again")
    device = next(iter(records.values()))["gpu"]["name"]
    best: dict[str, Entry] = {}
    for (cell, key), (time, name) in sorted(twice.items(), key=lambda item: item[1]):
        best.setdefault(cell, {
            "config": config_from_key(key).to_dict(), "microseconds": round(time, 4), "device": device,
            "source": f"benchmarks/results/warpgroup/{name}", "generator": generator,
        })  # fmt: skip
    return best

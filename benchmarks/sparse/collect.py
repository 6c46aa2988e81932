"""Take the fastest kernels of records of ``measure`` into the package, with their dense twins: ``compile`` begins with
the faster one of the two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import subbyte
from benchmarks.shared.command import ROOT, answering, parser_of
from benchmarks.sparse.table import joined
from benchmarks.sparse.texts import typed
from subbyte.families import config_from_key
from subbyte.files import write_file

PACKAGE = ROOT / "toolkit" / "subbyte"


@answering
def main(arguments: Sequence[str]) -> int:
    """Write them."""
    parser = parser_of("sparse collect", __doc__)
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    parser.add_argument("--generator", required=True, metavar="COMMIT", help="commit whose generator made the kernels")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="where kernel/best.json stands")
    asked = parser.parse_args(arguments)
    records = {path: json.loads(path.read_text(encoding="utf-8")) for path in asked.records}
    path = asked.package / "kernel" / "best.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    found = joined(list(records.values()))
    for cell, sides in found.items():
        source, record = next((p, r) for p, r in records.items() if sides["sparse"] in r["rounds"])
        first, other = sorted(sides, key=lambda side: float(sides[side]["median"]))
        times = {side: {"config": config_from_key(one["config"]).to_dict(), "microseconds": round(one["median"], 4)}
                 for side, one in sides.items()}  # fmt: skip
        known[subbyte.workload(typed(cell)).spec] = {
            **times[first], "device": record["gpus"][0]["name"], "source": f"benchmarks/results/sparse/{source.name}",
            "generator": f"{asked.generator}, {record['date']}", other: times[other],
        }  # fmt: skip
    write_file(path, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())
    print(f"{len(found)} kernels in {path.name}")
    return 0

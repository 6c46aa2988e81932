"""Take the fastest kernels of a record of ``measure`` into the package: ``compile`` and ``build`` begin with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bits.table import best
from benchmarks.bits.texts import cell_of
from benchmarks.shared.command import ROOT, answering, parser_of
from subbyte.families import config_from_key
from subbyte.files import write_file
from subbyte.numerics.fusion import SEPARATOR

PACKAGE = ROOT / "toolkit" / "subbyte"


@answering
def main(arguments: Sequence[str]) -> int:
    """Write them."""
    parser = parser_of("bits collect", __doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("--generator", required=True, metavar="COMMIT", help="commit whose generator made the kernels")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="where kernel/best.json and fused.json stand")
    asked = parser.parse_args(arguments)
    record = json.loads(asked.record.read_text(encoding="utf-8"))
    found = best(record)
    for name, fused in (("best.json", False), ("fused.json", True)):
        path = asked.package / "kernel" / name
        known = json.loads(path.read_text(encoding="utf-8"))
        for cell, one in found.items():
            workload, output = cell_of(cell)
            if (SEPARATOR in output) == fused:
                known[f"{workload.spec} {output}" if fused else workload.spec] = {
                    "config": config_from_key(one["config"]).to_dict(), "microseconds": round(one["time"], 4),
                    "device": record["gpus"][0]["name"], "source": f"benchmarks/results/bits/{asked.record.name}",
                    "generator": f"{asked.generator}, {record['date']}",
                }  # fmt: skip
        write_file(path, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())
    print(f"{len(found)} kernels in {asked.package / 'kernel'}")
    return 0

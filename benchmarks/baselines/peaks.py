"""Write the measured peaks that the toolkit uses, from the records of ``subbyte bench atoms``.

    python benchmarks/baselines peaks            # toolkit/subbyte/device/peaks.json from results/atoms-*.json
    python benchmarks/baselines peaks --check    # exit status 1 when that file is out of date

One record for each GPU: the newest of its name. Instructions of int4 convolutions go into ``tops``, one-bit ones into
``binary_tops``; variants of where an operand lies stay in the record. Instructions on 2:4 weights are in records of
their own, ``results/sparse/atoms-*.json``, and go into ``sparse_tops``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.command import RESULTS, ROOT, answering, parser_of

RECORDS = RESULTS
TARGET = ROOT / "toolkit" / "subbyte" / "device" / "peaks.json"
_VARIANTS = (".shared", ".unpacked", ".streamed")
_SPARSE = ".wgmma.sp."


def peaks_of(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The entry of one GPU: its plain numbers, and where they come from."""
    device = record["device"]
    rows = {row["atom"]: row for row in record["atoms"] if not row["atom"].endswith(_VARIANTS)}
    clocks = sorted({row["clocks"]["after"]["sm_mhz"] for row in rows.values()} - {None})
    shown = f"{clocks[0]} MHz" if clocks[:1] == clocks[-1:] else " to ".join(map(str, (clocks[0], clocks[-1]))) + " MHz"
    tops = {atom: round(row["tops"], 1) for atom, row in rows.items()}
    return {
        "arch": device["arch"],
        "date": record["date"][:10],
        "provenance": (
            f"one {device['name']}, {device['sms']} multiprocessors, driver {device['driver_version']}, CUDA "
            f"{device['cuda_version']}, SM clock {shown}; one matrix instruction repeated on registers (wgmma: B in "
            "shared memory) without global loads, random data; copy: device to device, bytes read plus bytes written; "
            f"launch: an empty kernel; benchmarks/results/{name}"
        ),
        "launch_microseconds": round(record["launch"]["graph_microseconds"], 2),
        "stream_launch_microseconds": round(record["launch"]["stream_microseconds"], 2),
        "copy_terabytes_per_second": round(record["copy"]["terabytes_per_second"], 2),
        "tops": {atom: value for atom, value in tops.items() if not atom.startswith("b1")},
        "binary_tops": {atom: value for atom, value in tops.items() if atom.startswith("b1")},
    }


def document(folder: Path = RECORDS) -> str:
    """The text of the file, from all records of a folder."""
    devices: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("atoms-*.json"), key=lambda path: json.loads(path.read_text())["date"]):
        record = json.loads(path.read_text(encoding="utf-8"))
        devices[record["device"]["name"]] = peaks_of(record, path.name)
    for path in sorted(folder.glob("sparse/atoms-*.json"), key=lambda path: json.loads(path.read_text())["date"]):
        record = json.loads(path.read_text(encoding="utf-8"))
        known = devices.get(record["device"]["name"])
        if known is not None:
            rows = [row for row in record["atoms"] if _SPARSE in row["atom"] and not row["atom"].endswith(_VARIANTS)]
            known["sparse_tops"] = {row["atom"]: round(row["tops"], 1) for row in rows}
            known["provenance"] += f"; 2:4 weights: benchmarks/results/sparse/{path.name}"
    return json.dumps({"schema": 1, "devices": dict(sorted(devices.items()))}, indent=2) + "\n"


@answering
def main(arguments: Sequence[str]) -> int:
    """Write the file, or say that it is out of date."""
    parser = parser_of("baselines peaks", __doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(arguments)
    text = document()
    if not args.check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} is out of date; run: python benchmarks/baselines peaks", file=sys.stderr)
    return 1

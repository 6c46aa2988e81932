"""The record of a GPU's measured peaks as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from subbyte.records.shapes import Count, Name, Sample, Time, Tree


class DeviceShape(msgspec.Struct, frozen=True):
    """The GPU of a record."""

    name: Name
    arch: Name
    sms: Count


class AtomShape(msgspec.Struct, frozen=True):
    """One matrix instruction in a record."""

    atom: Name
    title: Name
    native: bool
    tops: float
    microseconds: Time
    samples: tuple[Sample, ...]
    clocks: dict[Name, Tree]


class PeaksShape(msgspec.Struct, frozen=True):
    """The printed parts of a record of measured peaks."""

    device: DeviceShape
    date: Name
    atoms: tuple[AtomShape, ...]
    copy: dict[Name, Tree]
    launch: dict[Name, Tree]
    command: str = ""
    schema: Count = 1


def text_of(record: Mapping[str, Any]) -> str:
    """A table of the instructions with their TOPS, then copy and launch, as lines for a terminal."""
    device = record["device"]
    lines = [f"{device['name']} ({device['arch']}, {device['sms']} multiprocessors), {record['date']}", ""]
    rows = [("instruction", "", "runs", "TOPS", "spread", "MHz")]
    for row in record["atoms"]:
        spread = (max(row["samples"]) - min(row["samples"])) / row["microseconds"]
        clock = row["clocks"]["after"]["sm_mhz"]
        status = "native" if row["native"] else "emulated"
        rows.append((row["atom"], row["title"], status, f"{row['tops']:,.0f}", f"{spread:.1%}", str(clock or "?")))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for row in rows:
        cells = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    copy, launch = record["copy"], record["launch"]
    lines += [
        "",
        f"copy, bytes read plus written      {copy['terabytes_per_second']:.2f} TB/s",
        f"empty kernel in a CUDA graph       {launch['graph_microseconds']:.2f} us",
        f"empty kernel launched from Python  {launch['stream_microseconds']:.2f} us",
    ]
    return "\n".join(lines)

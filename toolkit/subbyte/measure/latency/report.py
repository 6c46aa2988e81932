"""The record of loads, stores and chains as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from subbyte.info_record import Table, columns_text
from subbyte.records.shapes import Count, Name, Sample, Tree

MODEL = ("wavefronts", "sectors", "lines")


class DeviceShape(msgspec.Struct, frozen=True):
    """The GPU of a record."""

    name: Name
    arch: Name
    sms: Count


class AccessShape(msgspec.Struct, frozen=True):
    """A load or a store."""

    space: Name
    ldm: Count
    cycles: Sample
    wavefronts: Count | None = None
    sectors: Count | None = None
    lines: Count | None = None


class ChainShape(msgspec.Struct, frozen=True):
    """A group of products."""

    instruction: Name
    dependent: bool
    count: Count
    cycles: Sample


class StridesShape(msgspec.Struct, frozen=True):
    """The printed parts of a record."""

    device: DeviceShape
    date: Name
    loads: tuple[AccessShape, ...]
    stores: tuple[AccessShape, ...]
    chains: tuple[ChainShape, ...]
    protocol: dict[Name, Tree]
    command: str = ""
    schema: Count = 1


def text_of(record: Mapping[str, Any]) -> str:
    """Cycles of a load and of a store by row distance, each with the model's count, then groups of products."""
    device = record["device"]
    parts = [f"{device['name']} ({device['arch']}, {device['sms']} multiprocessors), {record['date']}"]
    parts += ["", "cycles of a load of 8 rows x 128 bits, each after the one before; ldm in bits", ""]
    parts.append(columns_text(_accesses(record["loads"])))
    parts += ["", "cycles of a store of 8 rows x 8 sums, one behind the other; ldm in sums", ""]
    parts.append(columns_text(_accesses(_summed(record["stores"]))))
    parts += [
        "",
        "cycles of a group of one-bit products and the wait for it",
        "",
        columns_text(_chains(record["chains"])),
    ]
    return "\n".join(parts)


def _accesses(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = ("space", "ldm", "cycles", *MODEL)
    return Table(names, tuple((row["space"], row["ldm"], row["cycles"], *(row.get(one, "") for one in MODEL))
                              for row in rows))  # fmt: skip


def _summed(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Stores grouped by the model's counts: each group has the median cycles over all its distances."""
    groups: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["space"], *(row.get(one) for one in MODEL)), []).append(row)
    found = []
    for group in groups.values():
        cycles = sorted(float(row["cycles"]) for row in group)
        first, last = group[0]["ldm"], group[-1]["ldm"]
        said = str(first) if len(group) == 1 else f"{first}..{last} ({len(group)})"
        found.append({**group[0], "ldm": said, "cycles": cycles[len(cycles) // 2]})
    return found


def _chains(rows: Sequence[Mapping[str, Any]]) -> Table:
    counts = sorted({int(row["count"]) for row in rows})
    lines: dict[tuple[str, bool], dict[int, float]] = {}
    for row in rows:
        lines.setdefault((row["instruction"], row["dependent"]), {})[row["count"]] = row["cycles"]
    return Table(
        ("instruction", "accumulators", *(f"x{count}" for count in counts)),
        tuple((name, "the same" if dependent else "own", *(found.get(count, "") for count in counts))
              for (name, dependent), found in lines.items()),
    )  # fmt: skip

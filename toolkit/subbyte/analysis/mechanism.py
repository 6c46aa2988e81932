"""What the techniques do to the memory traffic, beside what they do to the time.

Counted by running the generated kernels on the CPU (``benchmarks/paper mechanism``), per launch of the whole layer, for
a few schedules with every combination of the switches; the times are those of the ablation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from subbyte.errors import BrokenRecord
from subbyte.records.reading import json_file, typed
from subbyte.technique.record import InfoRecord, Table

FORMAT = "subbyte-mechanism"


@dataclass(frozen=True)
class MechanismRow:
    """One schedule with one combination of the switches. Everything except ``microseconds`` counts one launch.

    ``sectors_read`` and ``sectors_written``: 32-byte sectors of global memory that the warps' accesses touch, each
    access counted separately; ``lines_read`` and ``lines_written``: the same with 128-byte lines; ``bytes_asked``:
    bytes of global memory read, repeats included. ``shared_bytes_read`` and ``shared_bytes_written``: the same for
    shared memory, including the copies into it. ``stores``, ``shuffles`` and ``mma``: warp instructions.
    """

    schedule: str
    index: int
    sharing: str
    packing: bool
    layout: str
    microseconds: float | None
    sectors_read: int
    lines_read: int
    bytes_asked: int
    sectors_written: int
    lines_written: int
    stores: int
    shared_bytes_read: int
    shared_bytes_written: int
    shuffles: int
    mma: int


@dataclass(frozen=True)
class Mechanism(InfoRecord):
    """Counts and times of one workload. ``traced`` says how the launch's counts are derived from the traced blocks."""

    workload: str
    device: str
    traced: str
    rows: tuple[MechanismRow, ...]

    def title(self) -> str:
        """One line that names what the record shows."""
        return f"{self.workload}: memory traffic per launch with every combination of switches, times on {self.device}"

    def table(self) -> Table:
        """One row for each schedule and combination."""
        names = tuple(field.name for field in fields(MechanismRow))
        return Table(names, tuple(tuple(getattr(row, name) for name in names) for row in self.rows))


def mechanism(data: Mapping[str, Any]) -> Mechanism:
    """The record in the parsed contents of a ``benchmarks/paper mechanism`` file. Raises BrokenRecord."""
    try:
        if data["format"] != FORMAT or data["schema"] != 1:
            raise BrokenRecord(f"not counts of memory traffic (format {data['format']!r})")
    except (KeyError, TypeError) as error:
        raise BrokenRecord(f"the counts of memory traffic are damaged: {error!r} is missing or invalid") from None
    made: Mechanism = typed(data, Mechanism, "the counts of memory traffic are damaged")
    return made


def read_mechanism(path: str | os.PathLike[str]) -> Mechanism:
    """The record in a file. Raises InvalidInput (no such file), BrokenRecord."""
    return mechanism(json_file(path, "counts"))

"""Searches that ran elsewhere: the configurations that a tool visited on a landscape, added to a race.

A trace file is JSON: ``{"format", "schema", "participant", "landscape": {"spec", "space_hash"}, "tool", "runs":
[{"seed", "indices"}]}``. It holds indices, not times: times are looked up in the landscape, so that all tools are
measured by the same table, and a configuration visited again costs nothing.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from subbyte.analysis.runs import WINDOW, Run
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.files import write_file
from subbyte.records.describe import to_line
from subbyte.records.landscape import Landscape
from subbyte.records.reading import json_file, typed
from subbyte.records.shapes import Count, Name, Tree

FORMAT = "subbyte-traces"
SCHEMA = 1


class TracedLandscape(msgspec.Struct, frozen=True):
    """The landscape of the traces."""

    spec: Name
    space_hash: Name
    name: Name = ""


class TracedRun(msgspec.Struct, frozen=True):
    """The configurations visited with one seed."""

    seed: Count
    indices: tuple[Count, ...]


class TracesShape(msgspec.Struct, frozen=True):
    """A trace file."""

    schema: Count
    participant: Name
    landscape: TracedLandscape
    runs: tuple[TracedRun, ...]
    tool: dict[Name, Tree]


@dataclass(frozen=True)
class Traces:
    """Visited indices by seed, on the landscape of ``spec`` and ``space_hash``. ``tool`` says what ran, and how."""

    participant: str
    spec: str
    space_hash: str
    visits: Mapping[int, tuple[int, ...]]
    tool: Mapping[str, Any]

    def runs(self, landscape: Landscape, trials: int, window: int = WINDOW) -> list[Run]:
        """The runs on ``landscape``. Raises InvalidInput when the traces are of another one."""
        if (self.spec, self.space_hash) != (landscape.workload.spec, landscape.space_hash):
            raise InvalidInput(
                f"traces of {self.participant} are of {self.spec} (space {self.space_hash}), not of landscape "
                f"{landscape.name} ({landscape.workload.spec}, space {landscape.space_hash})"
            )
        return [
            Run.of_indices(landscape, self.participant, seed, indices, trials, window)
            for seed, indices in sorted(self.visits.items())
        ]


def write_traces(
    path: str | os.PathLike[str],
    participant: str,
    landscape: Landscape,
    visits: Mapping[int, Sequence[int]],
    tool: Mapping[str, Any] | None = None,
) -> Path:
    """Write a trace file, compressed when its name ends in ``.gz``: visited indices by seed, in order."""
    target = Path(path)
    data = {
        "format": FORMAT, "schema": SCHEMA, "participant": participant, "tool": dict(tool or {}),
        "landscape": {
            "name": landscape.name, "spec": landscape.workload.spec, "space_hash": landscape.space_hash,
        },
        "runs": [{"seed": seed, "indices": list(indices)} for seed, indices in sorted(visits.items())],
    }  # fmt: skip
    content = (to_line(data) + "\n").encode()
    write_file(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content, "trace file")
    return target


def read_traces(path: str | os.PathLike[str]) -> Traces:
    """The traces in a file. Raises InvalidInput (no such file), BrokenRecord (damaged, or not traces)."""
    data: Any = json_file(path, "trace file")
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("schema") != SCHEMA:
        raise BrokenRecord(f"{path}: no trace file, or damaged (not of format {FORMAT}, schema {SCHEMA})")
    shape: TracesShape = typed(data, TracesShape, f"{path}: no trace file, or damaged")
    visits = {run.seed: run.indices for run in shape.runs}
    if len(visits) != len(shape.runs):
        raise BrokenRecord(f"{path}: no trace file, or damaged (a seed occurs twice)")
    return Traces(shape.participant, shape.landscape.spec, shape.landscape.space_hash, visits, shape.tool)

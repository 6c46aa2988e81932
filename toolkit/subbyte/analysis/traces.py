"""Searches that ran elsewhere: the configurations a tool visited on a landscape, brought into a race.

A trace file is JSON: ``{"format", "schema", "participant", "landscape": {"spec", "space_hash"}, "tool", "runs":
[{"seed", "indices"}]}``. It holds indices, no times: those are looked up in the landscape, so that everybody is
measured by the same table, and a configuration visited again costs nothing.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subbyte.analysis.runs import WINDOW, Run
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.files import write_file
from subbyte.tune.describe import to_line
from subbyte.tune.landscape import Landscape

FORMAT = "subbyte-traces"
SCHEMA = 1


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
    """The traces in a file. Raises InvalidInput (no such file), BrokenRecord (damaged, or no traces)."""
    try:
        content = Path(path).read_bytes()
        data = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        if data["format"] != FORMAT or data["schema"] != SCHEMA:
            raise ValueError(f"not of format {FORMAT}, schema {SCHEMA}")
        visits = {int(run["seed"]): tuple(int(index) for index in run["indices"]) for run in data["runs"]}
        if len(visits) != len(data["runs"]):
            raise ValueError("a seed occurs twice")
        where = data["landscape"]
        return Traces(str(data["participant"]), str(where["spec"]), str(where["space_hash"]), visits, data["tool"])
    except (EOFError, ValueError, KeyError, TypeError, zlib.error, gzip.BadGzipFile) as error:
        raise BrokenRecord(f"{path}: no trace file, or damaged ({error})") from None
    except OSError as error:
        raise InvalidInput(f"trace file {path}: {error.strerror or error}") from None

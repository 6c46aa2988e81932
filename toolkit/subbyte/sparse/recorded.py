"""Experiments as files: writes what ``subbyte sparse figures --out`` saves, with the command and the date, and reads
it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.files import write_file
from subbyte.sparse.figures import Experiment, Figures

FORMAT = "subbyte sparse figures"
SCHEMA = 1


def write_figures(found: Figures, path: str | os.PathLike[str], command: str) -> None:
    """Write experiments as JSON; ``command`` is the command that reproduces them. Raises like
    :func:`subbyte.files.write_file`."""
    head = {"format": FORMAT, "schema": SCHEMA, "date": datetime.now(UTC).date().isoformat(), "command": command,
            "about": "a model in cycles of a unit that no GPU has; nothing was measured"}  # fmt: skip
    write_file(path, (json.dumps({**head, **found.to_dict()}, indent=1) + "\n").encode())


def read_figures(path: str | os.PathLike[str]) -> Figures:
    """The experiments in a file. Raises InvalidInput if there is no file, BrokenRecord if it is damaged or something
    else."""
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}; `subbyte sparse figures --out FILE` makes one") from None
    except ValueError:
        stored = None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or stored.get("schema") != SCHEMA:
        raise BrokenRecord(f"{path}: no record of `subbyte sparse figures`, or a damaged one; make it again with --out")
    try:
        return Figures(tuple(map(_experiment, stored["experiments"].values())), dict(stored["quoted"]))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise BrokenRecord(f"{path}: a part of the record is missing; make it again with --out") from None


def _experiment(stored: dict[str, Any]) -> Experiment:
    rows = tuple(tuple(row) for row in stored["rows"])
    if any(len(row) != len(stored["columns"]) for row in rows):
        raise ValueError("rows")
    return Experiment(
        str(stored["name"]), str(stored["about"]), str(stored["source"]), tuple(stored["columns"]), rows,
        dict(stored["values"]), dict(stored["published"]),
    )  # fmt: skip

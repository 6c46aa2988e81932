"""The manifest of a bundle: a header line, then one line for each configuration that was built.

A line is ``{"index", "config", "cubin", "program", "launch", "resources", "seconds"}`` or, when the build failed,
``{"index", "config", "failed": {"ok": false, "kind", "reason"}}`` (:mod:`subbyte.tune.bundle` writes them).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import UNSET

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.files import inside, prove_writable
from subbyte.records.checked import file_path, new_folder
from subbyte.records.describe import (
    SpaceLike,
    describe_space,
    describe_workload,
    described,
    now,
    to_line,
    versions,
)
from subbyte.records.reading import document, is_a_file, read_bytes, typed
from subbyte.records.result import result_of
from subbyte.records.shapes import ManifestHeader, ManifestLine

FORMAT = "subbyte-bundle"
SCHEMA = 1
_AGAIN = "delete the folder and build it again"
MANIFEST = "manifest.jsonl"


def open_bundle(space: SpaceLike, folder: str | os.PathLike[str]) -> None:
    """Create the bundle's folder and the header of its manifest if needed. Raises as :func:`build_bundle`."""
    prove_writable(new_folder(folder, "bundle") / MANIFEST, "bundle")
    entries_of(Path(folder) / MANIFEST, space)


def read_manifest(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """A bundle's header and entries by index, without an incomplete last line. Raises InvalidInput, BrokenRecord."""
    header, entries = _read_manifest(folder)
    if not header:
        raise BrokenRecord(f"{Path(folder) / MANIFEST}, line 1: no header; {_AGAIN}")
    return header, entries


def _read_manifest(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Like :func:`read_manifest`; returns no header if building ended before the first line was complete."""
    path = file_path(folder, "bundle") / MANIFEST
    if not is_a_file(path):
        raise InvalidInput(f"{folder} holds no bundle ({MANIFEST} is missing); build one with "
                           "`subbyte landscape record WORKLOAD --build-only DIR`")  # fmt: skip
    lines = read_bytes(path, "manifest").split(b"\n")[:-1]
    header: dict[str, Any] = {}
    entries: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if number == 1:
            header = _header(line, path)
        else:
            entry = manifest_entry(line, f"{path}, line {number}: damaged", header["space"]["size"])
            entries[entry["index"]] = entry
    return header, entries


def _header(line: bytes, path: Path) -> dict[str, Any]:
    source = f"{path}, line 1"
    header: Any = document(line, Any, source, _AGAIN)
    if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("schema") != SCHEMA:
        raise BrokenRecord(f"{source}: not a header of format {FORMAT}, schema {SCHEMA}; {_AGAIN}")
    shape: ManifestHeader = typed(header, ManifestHeader, source, _AGAIN)
    try:
        described(shape.workload, shape.space, header["space"])
    except InvalidInput as error:
        raise BrokenRecord(f"{source}: {error!s:.300}; {_AGAIN}") from None
    return header


def manifest_entry(line: bytes, source: str, size: int) -> dict[str, Any]:
    """The fields of a manifest's line in a space of ``size``. Raises BrokenRecord."""
    entry: dict[str, Any] = document(line, dict[str, Any], source, _AGAIN)
    shape: ManifestLine = typed(entry, ManifestLine, source, _AGAIN)
    try:
        if shape.index >= size:
            raise InvalidInput(f"index {shape.index} lies outside the space of {size} configurations")
        if shape.failed is not UNSET:
            result_of(shape.failed, shape.failed.ok)
        elif shape.cubin is UNSET or shape.launch is UNSET:
            raise InvalidInput("neither a kernel with its launch nor a failure")
        else:
            inside(".", shape.cubin)
    except InvalidInput as error:
        raise BrokenRecord(f"{source}: {error!s:.300}; {_AGAIN}") from None
    return entry


def entries_of(path: Path, space: SpaceLike) -> dict[int, dict[str, Any]]:
    """Entries built earlier; writes the header of a new manifest and truncates a partial last line."""
    header, entries = _read_manifest(path.parent) if path.exists() else ({}, {})
    if not header:
        fields = {"format": FORMAT, "schema": SCHEMA, "workload": describe_workload(space.workload),
                  "space": describe_space(space), "versions": versions(), "created": now()}  # fmt: skip
        path.write_text(to_line(fields) + "\n", encoding="utf-8")
        return {}
    if header["space"]["hash"] != space.hash:
        raise InvalidInput(f"{path.parent} holds a bundle of {header['workload']['spec']} ({header['space']['kind']}, "
                           f"{header['space']['arch']}) built from another space; choose an empty folder")  # fmt: skip
    content = path.read_bytes()
    if not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    return entries

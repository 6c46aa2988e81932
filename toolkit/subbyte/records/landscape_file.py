"""The files of landscapes: header, lines, and the folder of the shipped ones."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from subbyte import files
from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.families.registry import family_of_kind
from subbyte.files import slug
from subbyte.records import reading
from subbyte.records.checked import file_path
from subbyte.records.describe import described, now, to_line, versions
from subbyte.records.result import Result, result_of
from subbyte.records.shapes import EntryShape, HeaderShape

FORMAT = "subbyte-landscape"
SCHEMA = 2
READABLE = (1, 2)
"""Schemas that this version reads; files of the first have no checksum."""
SUFFIX = ".json.gz"
SHIPPED = Path(__file__).resolve().parent.parent / "landscapes"
"""The folder of the landscapes shipped with the package."""


def make_header(
    workload: Mapping[str, Any],
    space: Mapping[str, Any],
    device: Mapping[str, Any],
    protocol: Mapping[str, Any] | None = None,
    command: str = "",
) -> dict[str, Any]:
    """The first line of a landscape file."""
    return {
        "format": FORMAT, "schema": SCHEMA, "workload": dict(workload), "space": dict(space), "device": dict(device),
        "protocol": dict(protocol or {}), "command": command, "versions": versions(), "created": now(),
    }  # fmt: skip


def default_name(header: Mapping[str, Any]) -> str:
    """A landscape's default name: ``<workload>.<kind>.<arch>``, then the switches that are not at their defaults.

    It is always a valid file name, whatever the header contains."""
    workload, space = header["workload"], header["space"]
    family = family_of_kind(space["kind"])
    usual = {} if family is None else family.held({})
    other = "".join(f".{key}={value}" for key, value in space["fixed"].items() if value != usual.get(key)).lower()
    return slug(f"{workload['name'] or workload['spec']}.{space['kind']}.{space['arch']}{other}")


def shipped() -> dict[str, Path]:
    """Shipped landscapes by name; those of the paper's space first, so that a workload's name
    alone refers to that one."""
    found = {path.name.removesuffix(SUFFIX): path for path in sorted(SHIPPED.glob(f"*{SUFFIX}"))}
    return dict(sorted(found.items(), key=lambda item: (".paper." not in item[0], item[0])))


def read_header(path: Path) -> dict[str, Any]:
    """First line of a landscape file; cheap. Raises InvalidInput, BrokenRecord."""
    return parse_header(next(reading.packed_lines(path, "landscape file"), b""), path)


def locate(name_or_path: str | os.PathLike[str]) -> Path:
    """The file for a path, a shipped name, or the label or spec of a shipped workload. Raises InvalidInput."""
    path = file_path(name_or_path, "landscape")
    if reading.is_a_file(path):
        return path
    known = shipped()
    text = str(name_or_path)
    if text in known:
        return known[text]
    by_label = [name for name, file in known.items() if text in _names(read_header(file))]
    if by_label:
        return known[by_label[0]]
    raise InvalidInput(f"no landscape {text!r}: neither a file nor a shipped landscape; {offer(text)}")


def _names(header: Mapping[str, Any]) -> tuple[str, str]:
    return header["workload"]["name"], header["workload"]["spec"]


def offer(text: str) -> str:
    """A clause for messages: the closest shipped names, or how to record one."""
    names = shipped()
    return did_you_mean(text, names) if names else "record one with `subbyte landscape record`"


def parse_header(line: bytes, path: Path) -> dict[str, Any]:
    """The header in a first line; ``path`` is used in messages. Raises BrokenRecord."""
    try:
        header: Any = reading.decoder(Any).decode(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT or "schema" not in header:
        raise BrokenRecord(f"{path}, line 1: not the header of a {FORMAT} file")
    if header["schema"] not in READABLE:
        allowed = ", ".join(map(str, READABLE))
        raise BrokenRecord(f"{path}, line 1: schema {header['schema']!s:.40}; this version of subbyte reads {allowed}")
    return checked_header(header, f"{path}, line 1")


def checked_header(header: Any, source: str) -> dict[str, Any]:
    """A landscape's header whose fields have the right types and are consistent. Raises BrokenRecord."""
    shape: HeaderShape = reading.typed(header, HeaderShape, source)
    uuids = shape.device.get("uuids", [])
    if not isinstance(uuids, list) or not all(isinstance(one, str) for one in uuids):
        raise BrokenRecord(f"{source}: device.uuids: expected a list of text; fetch it again")
    try:
        described(shape.workload, shape.space, header["space"])
    except InvalidInput as error:
        raise BrokenRecord(f"{source}: {error!s:.300}; fetch it again") from None
    return dict(header)


def entry_fields(index: int, result: Result) -> dict[str, Any]:
    """One line. It omits the device, which is in the header; samples are rounded to a tenth of a nanosecond."""
    data = {key: value for key, value in result.to_dict().items() if key not in ("ok", "device")}
    if "samples" in data:
        data["samples"] = [round(sample, 4) for sample in data["samples"]]
    return {"index": index, **data}


def write_file(path: Path, header: Mapping[str, Any], results: Mapping[int, Result], same: Mapping[int, int]) -> None:
    """Write header, one line per configuration and the checksum of all of them. ``same`` is as in a Landscape.

    Raises InvalidInput when the file cannot be written, NotWritten when the disk is full.
    """
    gpus = header["device"].get("uuids", ())
    lines = [to_line({**header, "schema": SCHEMA, "entries": len(results)})]
    for index, result in results.items():
        if index in same:
            lines.append(to_line({"index": index, "same_as": same[index]}))
            continue
        fields = entry_fields(index, result)
        if result.device.get("uuid") in gpus:
            fields["gpu"] = gpus.index(result.device["uuid"])
        lines.append(to_line(fields))
    try:
        content = "".join(f"{line}\n" for line in lines).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"landscape file {path}: {error.object[error.start]!r} is not a complete character"
        ) from None
    content += (to_line({"sha256": hashlib.sha256(content).hexdigest()}) + "\n").encode()
    files.write_file(path, gzip.compress(content, compresslevel=9, mtime=0), "landscape file")


def read_file(path: Path) -> tuple[dict[str, Any], dict[int, Result], dict[int, int]]:
    """Header, results, and which configurations share another's result. Raises InvalidInput, BrokenRecord."""
    lines = reading.packed_lines(path, "landscape file")
    first = next(lines, b"")
    header = parse_header(first, path)
    digest, summed = hashlib.sha256(first), header["schema"] == 1
    results: dict[int, Result] = {}
    same: dict[int, int] = {}
    decode, size, ended = reading.decoder(EntryShape).decode, header["space"]["size"], False
    gpus = header["device"].get("uuids", ())
    for number, line in enumerate(lines, start=2):
        try:
            entry = decode(line)
            if ended:
                raise InvalidInput("something follows the checksum")
            if entry.sha256 is not UNSET:
                summed, ended = entry.sha256 == digest.hexdigest(), True
                continue
            digest.update(line)
            _add(entry, results, same, gpus, size)
        except (ValueError, RecursionError) as error:
            raise BrokenRecord(
                f"{path}, line {number}: {reading.why(error)}; the file is damaged, fetch it again"
            ) from None
    _share(results, same, path)
    if len(results) != header.get("entries", len(results)):
        raise BrokenRecord(f"{path}: {len(results)} of {header['entries']} configurations; the file was cut short")
    if not summed:
        raise BrokenRecord(f"{path}: the content does not match its checksum; the file is damaged, fetch it again")
    return header, results, same


def _share(results: dict[int, Result], same: Mapping[int, int], path: Path) -> None:
    """Give the configurations in ``same`` the results they share, and sort all by index."""
    lost = [owner for owner in same.values() if owner not in results]
    if lost:
        raise BrokenRecord(f"{path}: configuration {lost[0]} has no result of its own; the file is damaged")
    results |= {index: results[owner] for index, owner in same.items()}
    ordered = sorted(results.items())
    results.clear()
    results.update(ordered)


def _add(entry: EntryShape, results: dict[int, Result], same: dict[int, int], gpus: Sequence[str], size: int) -> None:
    index = entry.index
    if index is UNSET or index >= size or index in results or index in same:
        raise InvalidInput(f"an index is missing, repeats, or is not below {size}")
    if entry.same_as is not UNSET:
        same[index] = entry.same_as
        return
    if entry.gpu is not UNSET:
        if entry.gpu >= len(gpus):
            raise InvalidInput(f"GPU {entry.gpu} is not one of the {len(gpus)} of the header")
        entry = replace(entry, device={"uuid": gpus[entry.gpu]})
    results[index] = result_of(entry, entry.kind is UNSET)

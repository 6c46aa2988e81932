"""The files behind landscapes: header, lines, the folder of those that come with the package."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from subbyte import files
from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.measure.result import Result, result_from_dict
from subbyte.schedule import ConvConfig
from subbyte.tune.checked import file_path
from subbyte.tune.describe import now, to_line, versions

FORMAT = "subbyte-landscape"
SCHEMA = 2
READABLE = (1, 2)
"""Schemas this version reads; files of the first have no checksum."""
SUFFIX = ".json.gz"
SHIPPED = Path(__file__).resolve().parent.parent / "landscapes"
"""The folder of the landscapes that come with the package."""


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
    """A landscape's usual name: ``<workload>.<kind>.<arch>``, then the switches that are not at their default."""
    workload, space = header["workload"], header["space"]
    usual = ConvConfig().to_dict()
    other = "".join(f".{key}={value}" for key, value in space["fixed"].items() if value != usual.get(key)).lower()
    return f"{workload['name'] or workload['spec']}.{space['kind']}.{space['arch']}{other}"


def shipped() -> dict[str, Path]:
    """Landscapes that come with the package, by name; those of the paper's space first, so that a workload's name
    alone means that one."""
    found = {path.name.removesuffix(SUFFIX): path for path in sorted(SHIPPED.glob(f"*{SUFFIX}"))}
    return dict(sorted(found.items(), key=lambda item: (".paper." not in item[0], item[0])))


def read_header(path: Path) -> dict[str, Any]:
    """First line of a landscape file; cheap. Raises InvalidInput, BrokenRecord."""
    return parse_header(next(read_lines(path), ""), path)


def locate(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a path, a shipped name, or the label or spec of a shipped workload. Raises InvalidInput."""
    path = file_path(name_or_path, "landscape")
    if path.is_file():
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
    """A sentence part: the closest shipped names, or how to record one."""
    names = shipped()
    return did_you_mean(text, names) if names else "record one with `subbyte landscape record`"


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a landscape file. Raises InvalidInput (no such file), BrokenRecord (not gzip, cut short)."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from file
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise InvalidInput(f"no landscape file {path}") from None
        raise BrokenRecord(f"{path}: not a landscape file ({error})") from None
    except (EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BrokenRecord(f"{path}: damaged or cut short ({error}); fetch it again") from None


def parse_header(line: str, path: Path) -> dict[str, Any]:
    """The header in a first line; ``path`` is for messages. Raises BrokenRecord."""
    try:
        header = json.loads(line)
        missing = {"schema", "workload", "space", "device", "protocol", "created"} - set(header)
        if header.get("format") != FORMAT or missing:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise BrokenRecord(f"{path}, line 1: not the header of a {FORMAT} file") from None
    if header["schema"] not in READABLE:
        allowed = ", ".join(map(str, READABLE))
        raise BrokenRecord(f"{path}, line 1: schema {header['schema']}; this version of subbyte reads {allowed}")
    return dict(header)


def entry_fields(index: int, result: Result) -> dict[str, Any]:
    """One line. The device stands in the header, so the lines leave it out; samples keep a tenth of a nanosecond."""
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
    content = "".join(f"{line}\n" for line in lines).encode()
    content += (to_line({"sha256": hashlib.sha256(content).hexdigest()}) + "\n").encode()
    files.write_file(path, gzip.compress(content, compresslevel=9, mtime=0), "landscape file")


def read_file(path: Path) -> tuple[dict[str, Any], dict[int, Result], dict[int, int]]:
    """Header, results and which configuration shares whose result. Raises InvalidInput, BrokenRecord."""
    lines = read_lines(path)
    first = next(lines, "")
    header = parse_header(first, path)
    digest, summed = hashlib.sha256(first.encode()), header["schema"] == 1
    results: dict[int, Result] = {}
    same: dict[int, int] = {}
    gpus = header["device"].get("uuids", ())
    for number, line in enumerate(lines, start=2):
        try:
            data = json.loads(line)
            if "sha256" in data:
                summed = data["sha256"] == digest.hexdigest()
                continue
            digest.update(line.encode())
            _add(data, results, same, gpus)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise BrokenRecord(f"{path}, line {number}: {error}; the file is damaged, fetch it again") from None
    _share(results, same, path)
    if len(results) != header.get("entries", len(results)):
        raise BrokenRecord(f"{path}: {len(results)} of {header['entries']} configurations; the file was cut short")
    if not summed:
        raise BrokenRecord(f"{path}: the content does not match its checksum; the file is damaged, fetch it again")
    return header, results, same


def _share(results: dict[int, Result], same: Mapping[int, int], path: Path) -> None:
    """Give the configurations of ``same`` the results they share, and put all in the order of their indices."""
    lost = [owner for owner in same.values() if owner not in results]
    if lost:
        raise BrokenRecord(f"{path}: configuration {lost[0]} has no result of its own; the file is damaged")
    results |= {index: results[owner] for index, owner in same.items()}
    ordered = sorted(results.items())
    results.clear()
    results.update(ordered)


def _add(data: dict[str, Any], results: dict[int, Result], same: dict[int, int], gpus: Sequence[str]) -> None:
    index = data.pop("index")
    if index in results or index in same or not isinstance(index, int):
        raise InvalidInput("an index repeats, or is no integer")
    if "same_as" in data:
        same[index] = int(data["same_as"])
        return
    if "gpu" in data:
        data["device"] = {"uuid": gpus[data.pop("gpu")]}
    results[index] = result_from_dict({"ok": "kind" not in data, **data})

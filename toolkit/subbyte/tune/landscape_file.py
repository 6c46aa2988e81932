"""The files behind landscapes: header, lines, the folder of those that come with the package."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.measure.result import Result
from subbyte.schedule import ConvConfig
from subbyte.tune.describe import now, versions

FORMAT = "subbyte-landscape"
SCHEMA = 1
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
    """Landscapes that come with the package, by name."""
    return {path.name.removesuffix(SUFFIX): path for path in sorted(SHIPPED.glob(f"*{SUFFIX}"))}


def read_header(path: Path) -> dict[str, Any]:
    """First line of a landscape file; cheap. Raises InvalidInput, BrokenRecord."""
    return parse_header(next(read_lines(path), ""), path)


def locate(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a path, a shipped name, or the label or spec of a shipped workload. Raises InvalidInput."""
    path = Path(name_or_path)
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
        missing = {"workload", "space", "device", "protocol", "created"} - set(header)
        if header.get("format") != FORMAT or missing:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise BrokenRecord(f"{path}, line 1: not the header of a {FORMAT} file") from None
    if header["schema"] != SCHEMA:
        raise BrokenRecord(f"{path}, line 1: schema {header['schema']}; this version of subbyte reads schema {SCHEMA}")
    return dict(header)


def entry_fields(index: int, result: Result) -> dict[str, Any]:
    """One line. The device stands in the header, so the lines leave it out; samples keep a tenth of a nanosecond."""
    data = {key: value for key, value in result.to_dict().items() if key not in ("ok", "device")}
    if "samples" in data:
        data["samples"] = [round(sample, 4) for sample in data["samples"]]
    return {"index": index, **data}

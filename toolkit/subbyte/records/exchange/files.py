"""Files: detecting a format, reading and writing it, compressed or not."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.files import write_file
from subbyte.records.checked import file_path
from subbyte.records.exchange.kernel_tuner import from_kernel_tuner, to_kernel_tuner
from subbyte.records.exchange.rows import UNKNOWN_DEVICE, a_landscape
from subbyte.records.exchange.t4 import from_t4, to_t4
from subbyte.records.exchange.tables import from_csv, to_csv
from subbyte.records.landscape import FORMAT, Landscape
from subbyte.records.reading import loose_document, read_bytes, unpacked
from subbyte.records.reading import to_text as to_text_of

FORMATS = ("kernel-tuner", "t4", "csv")


def import_landscape(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002
    *,
    kernel: str | None = None,
    device: str | None = None,
    statistic: str = "time",
    like: Landscape | None = None,
) -> Landscape:
    """Import the landscape in a file of another format, ``.gz`` or not; ``auto`` detects the format from its content.

    ``kernel`` (default: the file's name) and ``device`` are for formats that do not name them. ``statistic`` is what
    counts as a row's time: ``time``, the value that the file calls so, or ``median`` of its samples without the first.
    ``like`` (CSV): the landscape whose kernel, device and space the table shares. Raises InvalidInput for a missing
    file or an unknown format, BrokenRecord for a damaged one.
    """
    if format not in ("auto", *FORMATS):
        raise InvalidInput(f"format {format!r}: {did_you_mean(format, ('auto', *FORMATS))}")
    file = file_path(path, "file")
    source = file.name
    text = to_text_of(unpacked(read_bytes(file, "file"), str(file)), source)
    found = _recognized(text, source) if format == "auto" else format
    name = kernel or source.removesuffix(".gz").rsplit(".", 1)[0]
    if like is not None and found != "csv":
        raise InvalidInput(f"{source}: a {found} file describes itself; `like` is only for CSV")
    if found == "csv":
        return from_csv(text, name, device or UNKNOWN_DEVICE, source, like)
    data = _json(text, source)
    if found == "t4":
        return from_t4(data, name, device or UNKNOWN_DEVICE, source, statistic)
    return from_kernel_tuner(data, source, statistic)


def to_text(landscape: Landscape, format: str) -> str:  # noqa: A002
    """A landscape as the text of a file in one of FORMATS. Raises InvalidInput."""
    a_landscape(landscape)
    if format not in FORMATS:
        raise InvalidInput(f"format {format!r}: {did_you_mean(format, FORMATS)}")
    if format == "csv":
        return to_csv(landscape)
    data = to_kernel_tuner(landscape) if format == "kernel-tuner" else to_t4(landscape)
    return json.dumps(data, allow_nan=False) + "\n"


def export_landscape(landscape: Landscape, path: str | os.PathLike[str], format: str) -> Path:  # noqa: A002
    """Write a file in one of FORMATS, compressed if its name ends in ``.gz``; returns its path. Raises InvalidInput."""
    target = file_path(path, "file")
    content = to_text(landscape, format).encode()
    write_file(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    return target


def _recognized(text: str, source: str) -> str:
    start = text[:1000].lstrip()[:1]
    if text.startswith(f'{{"format":"{FORMAT}"'):
        raise InvalidInput(f"{source} is already a landscape of subbyte; use it as it is")
    if start != "{":
        first = text.split("\n", 1)[0]
        if "," in first and start not in "[<":
            return "csv"
        raise InvalidInput(f"{source}: not one of the formats {', '.join(FORMATS)}; name it with `format` if it is")
    data = _json(text, source)
    if not isinstance(data, dict):
        raise BrokenRecord(f"{source}: not one of the formats {', '.join(FORMATS)}")
    if "cache" in data:
        return "kernel-tuner"
    if "results" in data:
        return "t4"
    raise InvalidInput(
        f'{source}: neither a Kernel Tuner cache (key "cache") nor T4 (key "results"): {list(data)[:8]!s:.200}'
    )


def _json(text: str, source: str) -> Any:
    """The parsed text. The last two brackets of a cache may be missing: Kernel Tuner only adds them when it ends."""
    try:
        return loose_document(text, source)
    except json.JSONDecodeError as error:
        try:
            return loose_document(text.rstrip().rstrip(",") + "}}", source)
        except json.JSONDecodeError:
            raise BrokenRecord(f"{source}, line {error.lineno}, column {error.colno}: {error.msg}") from None

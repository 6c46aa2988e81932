"""Records of a store as one file of JSON lines, to move or back up: a header, then one record per line.

Lines are sealed like those of a log (:mod:`subbyte.records.log`): each ends with the CRC-32 of itself and all before
it, and the header says how many follow, so that a changed, missing, repeated or truncated line is detected and named.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from subbyte.errors import BrokenRecord, shortened
from subbyte.files import write_file
from subbyte.records import reading
from subbyte.records.checked import file_path
from subbyte.records.describe import now, versions
from subbyte.records.log import open_line, seal_line
from subbyte.records.own import OwnRecord, own_record
from subbyte.records.store import Store, Stored

FORMAT, SCHEMA = "subbyte-records", 1


@dataclass(frozen=True)
class Imported:
    """What happened to the records of a file, by outcome, with a sentence for each that was not added unchanged."""

    added: int
    replaced: int
    kept: int
    notices: tuple[str, ...]


def export_records(records: Sequence[OwnRecord], path: str | os.PathLike[str]) -> int:
    """Write records to a file, atomically; returns how many. Raises InvalidInput, NotWritten."""
    header = {"format": FORMAT, "schema": SCHEMA, "records": len(records), "created": now(), "versions": versions()}
    line, checksum = seal_line(header, 0)
    lines = [line]
    for record in records:
        line, checksum = seal_line(record.to_dict(), checksum)
        lines.append(line)
    write_file(file_path(path, "records file"), b"".join(lines), "records file")
    return len(records)


def read_records(path: str | os.PathLike[str]) -> list[OwnRecord]:
    """The records of a file. Raises InvalidInput (no such file), BrokenRecord with the number of the line."""
    data = reading.read_bytes(file_path(path, "records file"), "records file")
    lines = data.split(b"\n")
    cut = lines.pop()
    found: list[OwnRecord] = []
    checksum = wanted = 0
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            fields, checksum = open_line(line, checksum, Any)
            fields.pop("crc")
            if number == 1:
                wanted = _counted(fields)
            else:
                found.append(own_record(fields))
        number += 1
        if cut:
            raise ValueError(f"cut short ({len(cut)} bytes without a line break)")
        if len(found) != wanted or not lines:
            raise ValueError(f"the file ends here; its header says {wanted} records" if lines else "no header")
    except (ValueError, RecursionError) as error:
        raise BrokenRecord(
            f"{path}, line {number}: {shortened(_said(error), 400)}; nothing was imported, export the records again"
        ) from None
    return found


def import_records(store: Store, path: str | os.PathLike[str]) -> Imported:
    """Import the records of a file: all of them or, with an error, none. Of two for the same kernel, the better one
    stays. Raises as :func:`read_records` and :meth:`Store.add_all`."""
    records = read_records(path)
    done: list[Stored] = store.add_all(records)
    count = Counter(one.outcome for one in done)
    said = (one.said(record).replace(" now;", ";") for one, record in zip(done, records, strict=True)
            if one.other != record)  # fmt: skip
    return Imported(count["added"], count["replaced"], count["kept"], tuple(text for text in said if text))


def _counted(header: dict[str, Any]) -> int:
    if header.get("format") != FORMAT:
        raise ValueError(f"not the header of a {FORMAT} file")
    if header.get("schema") != SCHEMA:
        raise ValueError(f"schema {header.get('schema')!s:.40}; this version of subbyte reads schema {SCHEMA}")
    if type(header.get("records")) is not int:
        raise ValueError("records: expected the number of records")
    return int(header["records"])


def _said(error: Exception) -> str:
    text = str(error)
    return "not a whole JSON line" if "JSON" in text and "object" not in text else text

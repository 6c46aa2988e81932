"""The files that :mod:`subbyte.measure.bundle` writes: a header, then one JSON line for each measured kernel.

A line is ``{"index", "ok", "microseconds", ...}`` or ``{"index", "ok": false, "kind", "reason"}``, both with
``"program"``, the digest of what was executed; or ``{"index", "same_as"}`` for a configuration that compiled to the
same program as one measured before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records import reading
from subbyte.records.result import Result, result_of
from subbyte.records.shapes import MeasuredLine

if TYPE_CHECKING:
    from subbyte.records.landscape import Landscape

FORMAT = "subbyte-measurements"


@dataclass
class Results:
    """Contents of results files: results by index, whose result an index shares, which program was measured where."""

    header: dict[str, Any] = field(default_factory=dict)
    results: dict[int, Result] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)

    def add(self, other: Results) -> None:
        """Add the contents of another file, except for what is known already."""
        mine = set(self.results)
        self.results = {**other.results, **self.results}
        self.programs = {**other.programs, **self.programs}
        self.same |= {index: owner for index, owner in other.same.items() if index not in mine}


def read_measurements(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[int, Result]]:
    """Header and results by index of a file that :func:`measure_bundle` wrote. A partial last line is ignored.

    Raises InvalidInput (no such file), BrokenRecord (damaged, with the line number).
    """
    read = read_results(path)
    return read.header, read.results


def read_results(path: str | os.PathLike[str]) -> Results:
    """All contents of such a file. Raises as :func:`read_measurements`."""
    read, awaited = Results(), dict[int, int]()
    decode = reading.decoder(MeasuredLine).decode
    for number, line in enumerate(reading.read_bytes(path, "measurements").split(b"\n")[:-1], start=1):
        try:
            if number == 1:
                read.header = _header(line, f"{path}, line 1")
                continue
            data = decode(line)
            if data.index >= read.header["space"]["size"]:
                raise InvalidInput(f"index {data.index} lies outside the space of {read.header['space']['size']}")
            if data.same_as is not UNSET:
                awaited[data.index] = data.same_as
                continue
            if data.ok is UNSET:
                raise InvalidInput("neither a result (ok) nor one that is shared (same_as)")
            read.results[data.index] = result_of(data, data.ok)
            if data.program is not UNSET:
                read.programs.setdefault(data.program, data.index)
        except BrokenRecord:
            raise
        except (ValueError, RecursionError) as error:
            raise BrokenRecord(
                f"{path}, line {number}: {reading.why(error)}; delete that line and measure again"
            ) from None
    for index, owner in awaited.items():
        read.same[index] = owner
        if owner in read.results:  # else the owner is in another file, which to_landscape gets too
            read.results[index] = read.results[owner]
    return read


def _header(line: bytes, source: str) -> dict[str, Any]:
    from subbyte.records.landscape_file import checked_header

    header: Any = reading.document(line, Any, source, "delete the file and measure again")
    if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("schema") != 1:
        raise BrokenRecord(f"{source}: not the header of a {FORMAT} file; delete the file and measure again")
    return checked_header(header, source)


def to_landscape(*paths: str | os.PathLike[str]) -> Landscape:
    """The measurements of one recording as a landscape, ready to :meth:`~subbyte.records.landscape.Landscape.save`.

    Several files come from several GPUs; every result then says which of them measured it. Raises InvalidInput
    when they are not of the same space or the GPUs are not of the same kind, BrokenRecord for a damaged file.
    """
    from subbyte.records.landscape import FORMAT as LANDSCAPE
    from subbyte.records.landscape import Landscape

    found = [read_results(path) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if not one.header:
            raise BrokenRecord(f"{path}, line 1: no header; nothing was measured, delete the file and start again")
        for part in ("space", "workload"):
            if one.header[part] != found[0].header[part]:
                raise InvalidInput(f"{path} and {paths[0]} are not of the same {part}")
    results: dict[int, Result] = {}
    for one in found:
        on = {"uuid": one.header["device"].get("uuid")}
        own = {index: result for index, result in one.results.items() if index not in {**one.same, **results}}
        results |= {index: replace(result, device=on) if found[1:] else result for index, result in own.items()}
    same = {index: owner for one in found for index, owner in one.same.items() if index not in results}
    same = {index: owner for index, owner in same.items() if owner in results}
    results |= {index: results[owner] for index, owner in same.items()}
    header = {**found[0].header, "format": LANDSCAPE, "device": _common([one.header["device"] for one in found])}
    return Landscape.fitted(header, dict(sorted(results.items())), same=same)


def _common(devices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the devices have in common, and the ids of all. Raises InvalidInput for GPUs of different kinds."""
    uuids = list(dict.fromkeys(str(device.get("uuid")) for device in devices))
    if len(uuids) < 2:
        return dict(devices[0])
    for name in ("name", "arch", "sms", "driver_version"):
        values = {str(device.get(name)) for device in devices}
        if len(values) > 1:
            raise InvalidInput(
                f"measurements of different GPUs ({name}: {', '.join(sorted(values))}) cannot make one landscape"
            )
    first = {key: value for key, value in devices[0].items() if all(d.get(key) == value for d in devices)}
    return {**first, "gpus": len(uuids), "uuids": uuids}


def merged(paths: Sequence[str | os.PathLike[str]]) -> Results:
    """The combined contents of several results files; shared results are found across them."""
    whole = Results()
    for path in paths:
        whole.add(read_results(path))
    for index, owner in whole.same.items():
        if owner in whole.results:
            whole.results.setdefault(index, whole.results[owner])
    return whole

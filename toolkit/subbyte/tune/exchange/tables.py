"""Landscapes as flat tables: CSV and pandas, one row per configuration, times in microseconds.

A table holds no samples and does not say where it came from. Reading one back needs to be told: by the landscape whose
kernel, device and space it shares (``like``), or as a kernel of its own (``kernel``, ``device``).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.measure.result import FAILURE_KINDS, Failed, Measured, Result
from subbyte.tune.exchange.rows import UNKNOWN_DEVICE, Row, a_landscape, foreign_landscape, own_landscape
from subbyte.tune.foreign import Value
from subbyte.tune.landscape import Landscape

if TYPE_CHECKING:
    import pandas

TIME = "microseconds"
_OTHERS = ("index", TIME, "cold_microseconds", "verified", "failure", "reason")


def to_csv(landscape: Landscape) -> str:
    """A header line and one line per configuration, the columns of ``Landscape.rows()``: medians, without samples.

    The formats of Kernel Tuner and T4 keep the samples. Raises InvalidInput for what is no landscape.
    """
    rows = a_landscape(landscape).rows()
    table = io.StringIO()
    writer = csv.DictWriter(table, fieldnames=list(rows[0]) if rows else list(_OTHERS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue()


def from_csv(
    text: str, kernel: str, device: str = UNKNOWN_DEVICE, source: str = "table", like: Landscape | None = None
) -> Landscape:
    """The landscape of a CSV table: see :func:`from_rows`. Text that means a number becomes one."""
    lines = csv.DictReader(io.StringIO(text), restkey="")
    rows = []
    for number, line in enumerate(lines, start=2):
        if "" in line or None in line.values():
            raise BrokenRecord(f"{source}, line {number}: its number of columns is not that of the first line")
        rows.append({name.strip(): _parsed(value) for name, value in line.items()})
    return from_rows(rows, kernel, device, source, like)


def from_frame(
    frame: pandas.DataFrame, kernel: str, device: str = UNKNOWN_DEVICE, like: Landscape | None = None
) -> Landscape:
    """The landscape of a pandas table with one row per configuration: see :func:`from_rows`."""
    if not hasattr(frame, "reset_index"):
        raise InvalidInput(f"frame {frame!r}: expected a pandas.DataFrame with one row per configuration")
    table = frame.reset_index() if frame.index.name == "index" else frame
    rows = [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
    return from_rows(rows, kernel, device, "table", like)


def from_rows(
    rows: Iterable[Mapping[str, Any]],
    kernel: str,
    device: str = UNKNOWN_DEVICE,
    source: str = "table",
    like: Landscape | None = None,
) -> Landscape:
    """The landscape of flat rows.

    A row needs ``microseconds``, empty for a failure; it may have ``cold_microseconds``, ``verified``, ``failure`` (a
    kind of :data:`subbyte.measure.result.FAILURE_KINDS`) and ``reason``; ``index`` is ignored, every other column is
    a knob. With ``like`` the table is taken for results of the same kernel, device and space as that landscape.
    Raises InvalidInput when there is no ``microseconds`` or no knob, BrokenRecord naming a damaged row.
    """
    table = list(rows)
    if not table:
        raise BrokenRecord(f"{source}: holds no configuration")
    names = list(table[0])
    knobs = [name for name in names if name not in _OTHERS]
    if TIME not in names or not knobs:
        raise InvalidInput(f"{source}: a table of results has a column {TIME} and knobs; {did_you_mean(TIME, names)}")
    made = [_row(row, knobs, f"row {number}", source) for number, row in enumerate(table, start=1)]
    if like is None:
        return foreign_landscape(made, kernel, [], device, source)
    held = like.header["space"]["knobs"]
    if set(knobs) != set(held):
        raise InvalidInput(f"{source}: its knobs are {', '.join(knobs)}; those of {like.name} are {', '.join(held)}")
    header = {**like.header, "protocol": {**like.header["protocol"], "imported_from": source}}
    header.pop("entries", None)
    return own_landscape(header, made, source)


def _row(row: Mapping[str, Any], knobs: Iterable[str], place: str, source: str) -> Row:
    try:
        values = {name: row[name] for name in knobs}
        empty = [name for name, value in values.items() if value is None]
        if empty:
            raise InvalidInput(f"knob {empty[0]} is empty")
        return Row(values, _result(row), place)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"{source}, {place}: {error}") from None


def _result(row: Mapping[str, Any]) -> Result:
    time = row[TIME]
    if time is not None:
        if isinstance(time, bool) or not isinstance(time, int | float):
            raise InvalidInput(f"{TIME}={time!r} is no number")
        cold = row.get("cold_microseconds")
        return Measured(float(time), cold_microseconds=cold, verified=bool(row.get("verified")))
    kind = str(row.get("failure") or "crash")
    if kind not in FAILURE_KINDS:
        raise InvalidInput(f"failure {kind!r}: {did_you_mean(kind, FAILURE_KINDS)}")
    return Failed(kind, str(row.get("reason") or "no time in the table it was imported from"))


def _parsed(text: str) -> Value | None:
    """A cell: empty, a whole number, a number, a truth value, or text."""
    text = text.strip()
    if text == "":
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _plain(value: Any) -> Any:
    """A cell of pandas as a Python scalar; what it calls missing becomes None."""
    value = value.item() if hasattr(value, "item") else value
    return None if value is None or value == "" or (isinstance(value, float) and math.isnan(value)) else value

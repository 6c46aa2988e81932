"""Landscapes as flat tables: CSV and pandas, one row per configuration, times in microseconds.

A table holds no samples and no origin. To read one back, pass the landscape whose
kernel, device and space it shares (``like``), or treat it as a kernel of its own (``kernel``, ``device``).
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.records.exchange.rows import UNKNOWN_DEVICE, Row, a_landscape, foreign_landscape, own_landscape
from subbyte.records.foreign import Value
from subbyte.records.landscape import Landscape
from subbyte.records.result import FAILURE_KINDS, Failed, Measured, Result, is_time

if TYPE_CHECKING:
    import pandas

TIME = "microseconds"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_DIGITS = 300
_OTHERS = ("index", TIME, "cold_microseconds", "verified", "failure", "reason")


def to_csv(landscape: Landscape) -> str:
    """A header line and one line per configuration, with the columns of ``Landscape.rows()``: medians, without samples.

    The formats of Kernel Tuner and T4 keep the samples. Raises InvalidInput for anything but a landscape.
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
    """A landscape from a CSV table, see :func:`from_rows`. Text that looks like a number becomes a number."""
    lines = csv.reader(io.StringIO(text))
    names: list[str] = []
    rows = []
    try:
        for line in lines:
            if not names:
                names = _columns([name.strip() for name in line], source)
            elif len(line) == len(names):
                rows.append(dict(zip(names, map(_parsed, line), strict=True)))
            elif line:
                raise InvalidInput("its number of columns is not that of the first line")
    except (csv.Error, InvalidInput) as error:
        raise BrokenRecord(f"{source}, line {lines.line_num}: {error}") from None
    return from_rows(rows, kernel, device, source, like)


def from_frame(
    frame: pandas.DataFrame, kernel: str, device: str = UNKNOWN_DEVICE, like: Landscape | None = None
) -> Landscape:
    """The landscape in a pandas table with one row per configuration, see :func:`from_rows`."""
    if not hasattr(frame, "reset_index"):
        raise InvalidInput(f"frame {frame!r}: expected a pandas.DataFrame with one row per configuration")
    table = frame.reset_index() if frame.index.name == "index" else frame
    _columns([str(name) for name in table.columns], "table")
    rows = [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
    return from_rows(rows, kernel, device, "table", like)


def from_rows(
    rows: Iterable[Mapping[str, Any]],
    kernel: str,
    device: str = UNKNOWN_DEVICE,
    source: str = "table",
    like: Landscape | None = None,
) -> Landscape:
    """The landscape in flat rows.

    A row needs ``microseconds``, empty for a failure; it may have ``cold_microseconds``, ``verified``, ``failure`` (a
    kind of :data:`subbyte.records.result.FAILURE_KINDS`) and ``reason``; ``index`` is ignored, every other column is
    a knob. With ``like`` the rows are treated as results for the same kernel, device and space as that landscape.
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
        raise InvalidInput(
            f"{source}: its knobs are {', '.join(knobs):.300}; those of {like.name} are {', '.join(held)}"
        )
    header = {**like.header, "protocol": {**like.header["protocol"], "imported_from": source}}
    header.pop("entries", None)
    return own_landscape(header, made, source)


def _columns(names: list[str], source: str) -> list[str]:
    """The names of the columns. Raises BrokenRecord when one occurs twice."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BrokenRecord(f"{source}: two columns are called {twice[0]!r:.80}; each needs a name of its own")
    return names


def _row(row: Mapping[str, Any], knobs: Iterable[str], place: str, source: str) -> Row:
    try:
        values = {name: row[name] for name in knobs}
        empty = [name for name, value in values.items() if value is None]
        if empty:
            raise InvalidInput(f"knob {empty[0]:.80} is empty")
        return Row(values, _result(row), place)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"{source}, {place}: {error}") from None


def _result(row: Mapping[str, Any]) -> Result:
    time, verified = row[TIME], row.get("verified")
    if verified is not None and not isinstance(verified, bool):
        raise InvalidInput(f"verified={verified!r:.80}: expected true, false or nothing")
    if time is not None:
        if isinstance(time, bool) or not isinstance(time, int | float):
            raise InvalidInput(f"{TIME}={time!r:.80} is not a number")
        cold = row.get("cold_microseconds")
        if not is_time(time):
            raise InvalidInput(f"{TIME}={time!r:.80}: a measured time is a positive number")
        return Measured(float(time), cold_microseconds=cold, verified=bool(verified))
    kind = str(row.get("failure") or "crash")
    if kind not in FAILURE_KINDS:
        raise InvalidInput(f"failure {kind!r}: {did_you_mean(kind, FAILURE_KINDS)}")
    return Failed(kind, str(row.get("reason") or "no time in the table it was imported from"))


def _parsed(text: str) -> Value | None:
    """A cell: empty, an integer, a number, a boolean, or text."""
    text = text.strip()
    if text == "":
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        if len(text) > _DIGITS:
            raise InvalidInput(f"{text[:20]}...: a number of {len(text)} digits; at most {_DIGITS} are read")
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _plain(value: Any) -> Any:
    """A pandas cell as a Python scalar; missing values become None."""
    value = value.item() if hasattr(value, "item") else value
    return None if value is None or value == "" or (isinstance(value, float) and math.isnan(value)) else value

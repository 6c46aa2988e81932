"""What every importer turns its file into: rows of knob values with a result each, and the landscape made from them.

A file exported by this package carries the landscape's own header and is restored unchanged; any other becomes
a landscape of a foreign kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.describe import describe_space, describe_workload
from subbyte.records.foreign import ForeignSpace, Value, check_value, foreign_workload, index_of
from subbyte.records.landscape import Landscape, default_name
from subbyte.records.landscape_file import checked_header, entry_fields, make_header
from subbyte.records.result import Failed, Measured, Result, is_time, result_from_dict

OWN = "subbyte"
"""Key under which exported files keep what only we have: the landscape's header, and parts of each result."""
UNKNOWN_DEVICE = "unknown"
STATISTICS = ("time", "median")
"""What counts as the time of an imported row: the value that the file calls so, or the median of its samples without
the first, which in Kernel Tuner's files is a warm-up launch."""
_SENTINEL = 1e20
_HUGE = 1e300


@dataclass(frozen=True)
class Row:
    """Knob values by name, and the result. ``where`` names the row in messages."""

    values: Mapping[str, Value]
    result: Result
    where: str


def foreign_landscape(
    rows: Sequence[Row],
    kernel: str,
    problem_size: Sequence[Any],
    device: str,
    source: str,
    knobs: Mapping[str, Sequence[Value]] | None = None,
) -> Landscape:
    """A landscape of somebody else's kernel. Without ``knobs`` the values are those that occur.

    If a configuration occurs again, its first result counts. Raises BrokenRecord when a row does not fit the knobs.
    """
    if not rows:
        raise BrokenRecord(f"{source}: holds no configuration")
    lists = knobs if knobs is not None else _occurring(rows, source)
    results: dict[int, Result] = {}
    for row in rows:
        try:
            if set(row.values) != set(lists):
                odd = ", ".join(sorted(set(row.values) ^ set(lists)))
                raise InvalidInput(f"its knobs are not those of the file (differ in {odd})")
            results.setdefault(index_of(row.values, lists), row.result)
        except InvalidInput as error:
            raise BrokenRecord(f"{source}, {row.where}: {error}") from None
    workload: Any = foreign_workload({"name": kernel, "problem_size": problem_size})
    try:
        space: Any = ForeignSpace(workload, slug(device), lists, results)
    except (InvalidInput, TypeError) as error:
        raise BrokenRecord(f"{source}: {error}") from None
    header = make_header(
        describe_workload(workload), describe_space(space), {"runner": "import", "name": device},
        {"imported_from": source, "rows": len(rows), "repeated": len(rows) - len(results)},
    )  # fmt: skip
    checked_header(header, source)
    return Landscape(header, dict(sorted(results.items())), default_name(header))


def own_landscape(header: Any, rows: Sequence[Row], source: str) -> Landscape:
    """The landscape whose ``header`` an exported file carries. Raises BrokenRecord when rows and header disagree."""
    checked_header(header, f"{source}: the header it carries under {OWN!r} is damaged")
    results: dict[int, Result] = {}
    for row in rows:
        try:
            index = index_of(row.values, header["space"]["knobs"])
            if index in results:
                raise InvalidInput("its configuration occurs twice")
        except (InvalidInput, KeyError) as error:
            raise BrokenRecord(f"{source}, {row.where}: {error}") from None
        results[index] = row.result
    made = Landscape(header, dict(sorted(results.items())), default_name(header))
    if len(results) != header.get("entries", len(rows)):
        known = made.workload.label
        raise BrokenRecord(
            f"{source}: {len(results)} of {header['entries']} configurations of {known}; the file was cut short"
        )
    return made


def a_landscape(value: Any) -> Landscape:
    """``value`` unchanged. Raises InvalidInput unless it is a landscape."""
    if not isinstance(value, Landscape):
        raise InvalidInput(f"landscape {value!r}: expected a Landscape; subbyte.landscape(NAME) reads one")
    return value


def exported_header(landscape: Landscape) -> dict[str, Any]:
    """The header an exported file carries."""
    return {**landscape.header, "entries": len(landscape)}


def extras(index: int, result: Result) -> dict[str, Any]:
    """Everything in a result except its samples, exactly, to be kept next to the fields of another format."""
    return {key: value for key, value in entry_fields(index, result).items() if key not in ("index", "samples")}


def with_extras(data: Mapping[str, Any], samples: Sequence[float]) -> Result:
    """The result that gave ``data`` by :func:`extras`. Raises InvalidInput."""
    if "kind" in data:
        return result_from_dict({"ok": False, **data})
    return result_from_dict({"ok": True, **data, **({"samples": [round(x, 4) for x in samples]} if samples else {})})


def number(value: Any, what: str) -> float:
    """``value`` as a finite number >= 0. Raises InvalidInput, also for booleans and text."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _HUGE:
        raise InvalidInput(f"{what} {value!r:.80} is not a positive number")
    return float(value)


def samples_of(values: Any, scale: float) -> list[float]:
    """Samples in microseconds. Raises InvalidInput for anything but a list of positive numbers."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InvalidInput(f"samples {values!r:.80}: expected a list of times")
    found = [number(value, "sample") * scale for value in values]
    if not all(map(is_time, found)):
        raise InvalidInput(f"sample {values[[*map(is_time, found)].index(False)]!r:.80} is no positive number")
    return found


def seconds_of(times: Mapping[str, Any], steps: Mapping[str, str], scale: float) -> dict[str, float]:
    """Wall-clock seconds under our names for the ``steps``; ``scale`` is their unit in seconds. Raises InvalidInput."""
    there = {name: step for step, name in steps.items() if times.get(step) is not None}
    found = {name: number(times[step], step) * scale for name, step in there.items()}
    return {name: seconds for name, seconds in found.items() if seconds}


def measured(time: Any, samples: Sequence[float], statistic: str, seconds: Mapping[str, float], where: str) -> Result:
    """A result from a time and samples in microseconds. Raises BrokenRecord for an impossible time."""
    if statistic not in STATISTICS:
        raise InvalidInput(f"statistic {statistic!r}: allowed: {', '.join(STATISTICS)}")
    if statistic == "median" and len(samples) > 1:
        kept = sorted(samples[1:])
        time = (kept[(len(kept) - 1) // 2] + kept[len(kept) // 2]) / 2
    if not isinstance(time, int | float) or isinstance(time, bool) or not 0 < time < _HUGE:
        raise BrokenRecord(f"{where}: time {time!r:.80} is not a positive number")
    if time >= _SENTINEL:
        return Failed("crash", "failed in the tuner that wrote the file (time 1e20)", dict(seconds))
    try:
        return Measured(float(time), tuple(samples), seconds=dict(seconds))
    except InvalidInput as error:
        raise BrokenRecord(f"{where}: {error}") from None


def slug(text: str) -> str:
    """A device's name as part of a file name: lower case, dashes for everything else."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:80].strip("-") or UNKNOWN_DEVICE


def _occurring(rows: Sequence[Row], source: str) -> dict[str, list[Value]]:
    """Values by knob: numbers ascending, anything else in the order of first occurrence."""
    lists: dict[str, dict[Value, None]] = {name: {} for name in rows[0].values}
    for row in rows:
        for name, value in row.values.items():
            try:
                check_value(name, value)
            except InvalidInput as error:
                raise BrokenRecord(f"{source}, {row.where}: {error}") from None
    for row in rows:
        for name, values in lists.items():
            if name in row.values:
                values.setdefault(row.values[name])
    return {name: _in_order(values) for name, values in lists.items()}


def _in_order(values: Iterable[Any]) -> list[Value]:
    found = list(values)
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found

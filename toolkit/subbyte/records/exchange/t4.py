"""T4, the auto-tuning community's results format (schema 1.0.0), read and written.

T4 names neither the kernel nor the GPU nor the values a knob may take; the first two are arguments of the importer,
which takes the values that occur. Our files carry all of it in their ``metadata``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.describe import knob_values
from subbyte.records.exchange.rows import (
    OWN,
    UNKNOWN_DEVICE,
    Row,
    a_landscape,
    exported_header,
    extras,
    foreign_landscape,
    measured,
    number,
    own_landscape,
    samples_of,
    seconds_of,
    with_extras,
)
from subbyte.records.landscape import Landscape
from subbyte.records.reading import typed
from subbyte.records.result import Failed, Result
from subbyte.records.shapes import Name, Value

SCHEMA_VERSION = "1.0.0"
INVALIDITY = {
    "constraints": "refused",
    "compile": "build",
    "runtime": "crash",
    "timeout": "timeout",
    "correctness": "wrong",
}
"""T4's reasons for a missing time, and ours."""
_OURS = {"refused": "constraints", "build": "compile", "timeout": "timeout", "wrong": "correctness"}
_UNITS = {
    "milliseconds": 1000.0, "miliseconds": 1000.0, "ms": 1000.0, "seconds": 1e6, "s": 1e6, "microseconds": 1.0,
    "us": 1.0, "nanoseconds": 1e-3, "ns": 1e-3,
}  # fmt: skip
_STEPS = {"compilation": "build", "compilation_time": "build", "validation": "verify", "benchmark": "measure"}


def from_t4(
    data: Any, kernel: str, device: str = UNKNOWN_DEVICE, source: str = "results", statistic: str = "time"
) -> Landscape:
    """The landscape in a parsed T4 file of ``kernel`` on ``device``. Raises BrokenRecord naming the damaged result."""
    shape: ResultsShape = typed(data, ResultsShape, f"{source}: not a T4 file")
    results, metadata, version = shape.results, shape.metadata or {}, shape.schema_version
    if version.split(".", maxsplit=1)[0] != SCHEMA_VERSION.split(".", maxsplit=1)[0]:
        raise BrokenRecord(f"{source}: T4 schema {version:.40}; this version of subbyte reads {SCHEMA_VERSION}")
    unit = metadata.get("timeunit", "milliseconds")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise BrokenRecord(f"{source}: time unit {unit!r:.80}; known: {', '.join(_UNITS)}")
    own = metadata.get(OWN)
    rows = [_row(entry, unit, statistic, source, f"result {n}", own is not None) for n, entry in enumerate(results)]
    if own is not None:
        return own_landscape(own, rows, source)
    return foreign_landscape(rows, kernel, [], device, source)


class ResultsShape(msgspec.Struct, frozen=True):
    """A T4 file, without the contents of its results."""

    results: list[dict[str, Any]]
    metadata: dict[str, Any] | None = None
    schema_version: Name = SCHEMA_VERSION


class MeasurementShape(msgspec.Struct, frozen=True):
    """One value of a result."""

    name: Name
    value: Any = None
    unit: Name | None = None


class ResultShape(msgspec.Struct, frozen=True):
    """One result. ``subbyte`` is what our files add."""

    configuration: dict[Name, Value]
    times: dict[Name, Any]
    invalidity: Name
    measurements: list[MeasurementShape] | None = None
    objectives: list[Name] | None = None
    subbyte: Any = None


def _row(entry: Any, unit: str, statistic: str, source: str, place: str, own: bool) -> Row:
    where = f"{source}, {place}"
    shape: ResultShape = typed(entry, ResultShape, where)
    values, invalidity = shape.configuration, shape.invalidity
    try:
        samples = samples_of(shape.times.get("runtimes"), _UNITS[unit])
        seconds = seconds_of(shape.times, _STEPS, _UNITS[unit] / 1e6)
        found = {item.name: item for item in shape.measurements or ()}
        if invalidity != "correct" and invalidity not in INVALIDITY:
            raise BrokenRecord(
                f"{where}: unknown invalidity {invalidity!r:.80}; known: correct, {', '.join(INVALIDITY)}"
            )
        if own:
            return Row(values, with_extras(shape.subbyte, samples), place)
        if invalidity != "correct":
            reason = f"{invalidity}, says the file it was imported from"
            return Row(values, Failed(INVALIDITY[invalidity], reason, seconds), place)
        objective = (shape.objectives or ["time"])[0]
        if objective not in found:
            raise InvalidInput(f"there is no measurement of {objective:.80}")
        item = found[objective]
        time = number(item.value, objective) * _UNITS[item.unit or unit]
    except BrokenRecord:
        raise
    except KeyError as error:
        raise BrokenRecord(f"{where}: unknown unit {error!s:.80}; known: {', '.join(_UNITS)}") from None
    except (TypeError, ValueError) as error:
        raise BrokenRecord(f"{where}: {error}") from None
    return Row(values, measured(time, samples, statistic, seconds, where), place)


def to_t4(landscape: Landscape) -> dict[str, Any]:
    """The T4 file for a landscape, ready for JSON, times in milliseconds. Importing it returns the same landscape."""
    knobs = a_landscape(landscape).header["space"]["knobs"]
    results = []
    for index, result in landscape.results.items():
        results.append({
            "timestamp": str(landscape.header["created"]), "configuration": knob_values(knobs, index),
            **_fields(index, result),
        })  # fmt: skip
    metadata = {"timeunit": "milliseconds", OWN: exported_header(landscape)}
    return {"schema_version": SCHEMA_VERSION, "metadata": metadata, "results": results}


def _fields(index: int, result: Result) -> dict[str, Any]:
    seconds = {name: 1000.0 * result.seconds.get(name, 0.0) for name in ("build", "verify", "measure")}
    times: dict[str, Any] = {
        "compilation_time": seconds["build"], "validation": seconds["verify"], "benchmark": seconds["measure"],
        "framework": 0.0, "search_algorithm": 0.0,
    }  # fmt: skip
    invalidity, measurements = "correct", []
    if isinstance(result, Failed):
        invalidity = _OURS.get(result.kind, "runtime")
        times["runtimes"] = []
    else:
        times["runtimes"] = [sample / 1000.0 for sample in result.samples]
        measurements.append({"name": "time", "value": result.microseconds / 1000.0, "unit": "ms"})
        if result.cold_microseconds is not None:
            measurements.append({"name": "cold_time", "value": result.cold_microseconds / 1000.0, "unit": "ms"})
    return {
        "times": times, "invalidity": invalidity, "correctness": float(invalidity != "correctness"),
        "measurements": measurements, "objectives": ["time"], OWN: extras(index, result),
    }  # fmt: skip

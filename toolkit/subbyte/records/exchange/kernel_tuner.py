"""Kernel Tuner's cache file, read and written. Times there are milliseconds, failures are names of error classes.

Kernel Tuner's simulation mode runs on an exported file: pass ``tune_kernel`` the ``kernel_name``, ``problem_size`` and
``tune_params`` from the file, and :func:`restriction` to exclude what the landscape does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from subbyte.arguments import checked
from subbyte.errors import BrokenRecord
from subbyte.records.describe import knob_values
from subbyte.records.exchange.rows import (
    OWN,
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
from subbyte.records.foreign import ForeignWorkload
from subbyte.records.landscape import Landscape
from subbyte.records.reading import typed
from subbyte.records.result import Failed, Result
from subbyte.records.shapes import Leaf, Name, Text, Values

if TYPE_CHECKING:
    from subbyte.workload import ConvWorkload

ERRORS = {
    "InvalidConfig": "refused",
    "CompilationFailedConfig": "build",
    "RuntimeFailedConfig": "crash",
    "ErrorConfig": "crash",
}
"""Kernel Tuner's names for failures, and ours."""
_OURS = {"refused": "InvalidConfig", "build": "CompilationFailedConfig"}
_STEPS = {"compile_time": "build", "verification_time": "verify", "benchmark_time": "measure"}
_REASONS = {
    "refused": "refused by the tuner that wrote the file",
    "build": "did not compile, says the file it was imported from",
    "crash": "failed when it ran, says the file it was imported from",
}


def from_kernel_tuner(data: Any, source: str = "cache", statistic: str = "time") -> Landscape:
    """The landscape in a parsed cache file. ``statistic``: ``time`` is the value by which Kernel Tuner itself searches.

    Raises BrokenRecord naming the damaged entry.
    """
    shape: CacheShape = typed(data, CacheShape, f"{source}: not a Kernel Tuner cache")
    names = shape.tune_params_keys
    lost = [name for name in names if name not in shape.tune_params]
    if lost or len(set(names)) < len(names):
        odd = f"tune_params lacks {lost[0]:.80}" if lost else "a name stands twice in tune_params_keys"
        raise BrokenRecord(f"{source}: not a Kernel Tuner cache ({odd})")
    own = data.get(OWN)
    rows = [
        _row(key, entry, names, statistic, f"{source}, entry {key:.200}", own is not None)
        for key, entry in shape.cache.items()
    ]
    if own is not None:
        return own_landscape(own, rows, source)
    problem = shape.problem_size if isinstance(shape.problem_size, list) else [shape.problem_size]
    knobs = {name: shape.tune_params[name] for name in names}
    return foreign_landscape(rows, shape.kernel_name, problem, shape.device_name, source, knobs)


class CacheShape(msgspec.Struct, frozen=True):
    """A cache file, without the contents of its entries."""

    tune_params_keys: list[Name]
    tune_params: dict[Name, Values]
    cache: dict[Text, dict[str, Any]]
    kernel_name: Name
    device_name: Name
    problem_size: Leaf | list[Leaf]


def _row(key: str, entry: Any, names: Sequence[str], statistic: str, where: str, own: bool) -> Row:
    try:
        values = {name: entry[name] for name in names}
        time = entry["time"]
    except KeyError as error:
        raise BrokenRecord(f"{where}: {error} is missing") from None
    if key != ",".join(map(str, values.values())):
        raise BrokenRecord(f"{where}: its knobs are {values!s:.200}")
    failure = entry.get("__error__", time if isinstance(time, str) else "")
    if failure and (not isinstance(failure, str) or failure not in ERRORS):
        raise BrokenRecord(f"{where}: unknown failure {failure!r:.80}; known: {', '.join(ERRORS)}")
    try:
        samples = samples_of(entry.get("times"), 1000.0)
        if own:
            return Row(values, with_extras(entry[OWN], samples), f"entry {key}")
        seconds = seconds_of(entry, _STEPS, 1e-3)
        time = time if failure else number(time, "time") * 1000.0
    except (KeyError, TypeError, ValueError) as problem:
        raise BrokenRecord(f"{where}: {problem}") from None
    if failure:
        kind = ERRORS[failure]
        return Row(values, Failed(kind, _REASONS[kind], seconds), f"entry {key}")
    return Row(values, measured(time, samples, statistic, seconds, where), f"entry {key}")


def to_kernel_tuner(landscape: Landscape) -> dict[str, Any]:
    """The cache file for a landscape, ready for JSON.

    Under ``subbyte`` it also holds the landscape's header and those parts of each result that have no counterpart
    (Kernel Tuner passes them through), so that importing it returns the same landscape.
    """
    knobs = a_landscape(landscape).header["space"]["knobs"]
    device = str(landscape.device.get("name", "unknown"))
    cache = {}
    for index, result in landscape.results.items():
        values = knob_values(knobs, index)
        entry = {**values, **_entry(index, result), "timestamp": _timestamp(landscape)}
        cache[",".join(map(str, values.values()))] = entry
    return {
        "device_name": device,
        "kernel_name": landscape.workload.label,
        "problem_size": problem_size(landscape.workload),
        "tune_params_keys": list(knobs),
        "tune_params": {name: list(values) for name, values in knobs.items()},
        "objective": "time",
        OWN: exported_header(landscape),
        "cache": cache,
    }


def _entry(index: int, result: Result) -> dict[str, Any]:
    steps = {step: 1000.0 * result.seconds.get(name, 0.0) for step, name in _STEPS.items()}
    fields: dict[str, Any] = {**steps, "strategy_time": 0.0, "framework_time": 0.0, OWN: extras(index, result)}
    if isinstance(result, Failed):
        return {"time": _OURS.get(result.kind, "RuntimeFailedConfig"), **fields}
    samples = [sample / 1000.0 for sample in result.samples]
    return {"time": result.microseconds / 1000.0, "times": samples, **fields}


def problem_size(workload: ConvWorkload | ForeignWorkload) -> list[Any]:
    """What Kernel Tuner compares as the problem size: for a convolution [N, H, W, C, K, R, S, pad, stride,
    dilation]."""
    if isinstance(workload, ForeignWorkload):
        return list(workload.problem_size)
    names = ("n", "h", "w", "c", "k", "r", "s", "pad", "stride", "dilation")
    return [getattr(workload, name) for name in names]


@checked
def restriction(landscape: Landscape) -> Callable[[Mapping[str, Any]], bool]:
    """A function for ``tune_kernel(restrictions=...)``: true for the configurations that the landscape holds."""
    known = frozenset(landscape.results)
    knobs = a_landscape(landscape).header["space"]["knobs"]
    weights, weight = [], 1
    for name, choices in knobs.items():
        weights.append((name, {(isinstance(value, bool), value): weight * k for k, value in enumerate(choices)}))
        weight *= len(choices)

    def recorded(values: Mapping[str, Any]) -> bool:
        try:  # by table: Kernel Tuner asks about every combination, a million in some spaces
            return sum(table[type(values[name]) is bool, values[name]] for name, table in weights) in known
        except KeyError:
            return False

    return recorded


def _timestamp(landscape: Landscape) -> str:
    """The landscape's date in Kernel Tuner's format."""
    try:
        return str(datetime.fromisoformat(str(landscape.header["created"])))
    except ValueError:
        return str(landscape.header["created"])

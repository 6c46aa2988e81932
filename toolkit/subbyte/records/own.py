"""One row of a user's own store: the fastest kernel found for a workload, on which GPU, how and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from subbyte.errors import InvalidInput
from subbyte.families.registry import config_from_dict
from subbyte.records.launches import LAUNCHES, SplitLaunches
from subbyte.records.reading import why
from subbyte.records.result import Measured
from subbyte.records.shapes import Count, Leaf, Name, Text, Time
from subbyte.spaces.configuration import Configuration

SOURCES = ("tune", "tries")
"""What measured it: a search (:func:`subbyte.tune`, ``Study``), or ``compile(tries=)``."""
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Given = Annotated[str, Meta(min_length=1, max_length=1_000)]


@dataclass(frozen=True)
class OwnRecord:
    """A measured kernel. ``microseconds`` is the median of ``samples`` samples from ``low`` to ``high`` (L2 hot).

    ``workload`` is a spec with its operand types, ``output`` the output type with everything fused into it. ``gpu`` is
    the GPU's name; ``driver``, ``uuid`` and ``clocks`` (as text: the readings around the samples) add to it.
    ``generator`` identifies the sources and the TVM version that made the CUDA text, ``text`` is its SHA-256.
    ``fields`` are the configuration's fields as JSON, ``config`` is its key. ``trials`` configurations had a result
    when it was stored; ``search`` distinguishes searches. ``source`` is one of :data:`SOURCES`, ``log`` the file with
    all results, if any. ``verified``: every output element was compared with the reference. ``measured`` is a date and
    time, UTC.
    """

    workload: str
    output: str
    arch: str
    gpu: str
    family: str
    config: str
    fields: str
    generator: str
    text: str
    microseconds: float
    low: float
    high: float
    samples: int
    trials: int
    verified: bool
    source: str
    measured: str
    driver: str = ""
    uuid: str = ""
    clocks: str = ""
    log: str = ""
    search: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """The unique key in a store: workload, output, architecture, GPU and kernel text."""
        return self.workload, self.output, self.arch, self.gpu, self.text

    @property
    def configuration(self) -> Configuration:
        """The configuration; for a batch in two launches, those of both. Raises InvalidInput (Unsupported) if this
        version has no such kernel."""
        values = json.loads(self.fields)
        return SplitLaunches.of_key(values[LAUNCHES]) if self.launches else config_from_dict(values)

    @property
    def launches(self) -> bool:
        """Whether it computes a batch in more than one launch; ``family`` then names those of all kernels."""
        return set(json.loads(self.fields)) == {LAUNCHES}

    @property
    def day(self) -> str:
        """Date and time to the minute, for messages."""
        return self.measured[:16].replace("T", " ")

    def beats(self, other: OwnRecord) -> bool:
        """Whether it is preferred to another record with the same key: verified first, then faster."""
        return (self.verified, -self.microseconds) > (other.verified, -other.microseconds)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: ``fields`` and ``clocks`` as objects."""
        clocks = json.loads(self.clocks) if self.clocks else {}
        return {**asdict(self), "fields": json.loads(self.fields), "clocks": clocks}


COLUMNS = tuple(one.name for one in fields(OwnRecord))


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    workload: _Given
    output: _Given
    arch: _Given
    gpu: _Given
    family: _Given
    config: _Given
    fields: dict[Name, Leaf]
    generator: _Given
    text: _Digest
    microseconds: Time
    low: Time
    high: Time
    samples: Count
    trials: Count
    verified: bool
    source: _Given
    measured: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}", max_length=40)]
    driver: Name = ""
    uuid: Name = ""
    clocks: dict[Name, Any] = {}
    log: Text = ""
    search: Name = ""


def own_record(data: Mapping[str, Any]) -> OwnRecord:
    """The record that gave ``data`` by ``to_dict()``. Raises InvalidInput naming a field that is missing, unknown or
    invalid, such as a time that is not a positive number."""
    try:
        line = msgspec.convert(dict(data), _Line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(why(error)) from None
    if line.source not in SOURCES:
        raise InvalidInput(f"source: expected {' or '.join(SOURCES)}, got {line.source:.80}")
    if not line.low <= line.microseconds <= line.high:
        raise InvalidInput(
            f"microseconds {line.microseconds:g} lies outside its samples, {line.low:g} to {line.high:g}"
        )
    if not line.fields:
        raise InvalidInput("fields: a configuration has some")
    values = {name: getattr(line, name) for name in COLUMNS}
    values |= {"fields": _packed(line.fields), "clocks": _packed(line.clocks) if line.clocks else ""}
    values |= {name: float(values[name]) for name in ("microseconds", "low", "high")}
    return OwnRecord(**values)


def of_result(
    workload: str, output: str, arch: str, config: Configuration, result: Measured, device: Mapping[str, Any],
    **more: Any,
) -> OwnRecord:  # fmt: skip
    """The record of a measured configuration on a device; ``more`` provides the other fields. Raises
    InvalidInput for a device without a name, and for impossible times."""
    samples = result.samples or (result.microseconds,)
    return own_record(
        {
            "workload": workload, "output": output, "arch": arch, "gpu": str(device.get("name") or ""),
            "config": config.key, "fields": config.to_dict(), "microseconds": result.microseconds,
            "low": min(*samples, result.microseconds), "high": max(*samples, result.microseconds),
            "samples": len(samples), "verified": result.verified,
            "driver": str(device.get("driver") or ""), "uuid": str(device.get("uuid") or ""),
            "clocks": json.loads(json.dumps(dict(result.clocks), default=str)), **more,
        }
    )  # fmt: skip


def _packed(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

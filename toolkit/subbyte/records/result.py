"""The result of one candidate: a measured time, or a failure with its kind and reason. Never a sentinel number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import UNSET

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.records.reading import decoder, why
from subbyte.records.shapes import LONGEST, Outcome, ResultShape

FAILURE_KINDS = ("refused", "build", "launch", "timeout", "wrong", "crash", "memory")
"""Why a candidate has no time: rejected by a constraint, not built, not launched, too slow, a wrong result, the
process died, not enough device memory."""


@dataclass(frozen=True)
class Measured:
    """A candidate that ran. Times are microseconds of one kernel launch.

    ``microseconds`` is the median of ``samples`` (L2 cache hot); ``cold_microseconds`` the median with L2 flushed
    before every launch. ``verified`` says that the output was compared with the reference. ``device`` identifies the
    GPU, ``clocks`` holds its telemetry during the measurement (MHz, watts, degrees), ``seconds`` the wall-clock cost of
    each step (``build``, ``measure``), ``notes`` anything that disturbed the measurement (a dropped clock, outliers).
    Raises InvalidInput when ``microseconds``, a sample or the cold time is not a positive number.
    """

    microseconds: float
    samples: tuple[float, ...] = ()
    cold_microseconds: float | None = None
    verified: bool = False
    device: Mapping[str, Any] = field(default_factory=dict, hash=False)
    clocks: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_time(self.microseconds):
            raise InvalidInput(f"microseconds={self.microseconds!r:.100}: a measured time is a positive number")
        if self.cold_microseconds is not None and not is_time(self.cold_microseconds):
            raise InvalidInput(
                f"cold_microseconds={self.cold_microseconds!r:.100}: a measured time is a positive number"
            )
        if self.samples and not all(map(is_time, self.samples)):
            odd = next(sample for sample in self.samples if not is_time(sample))
            raise InvalidInput(f"sample {odd!r:.100}: a measured time is a positive number")

    @property
    def ok(self) -> bool:
        """True: there is a time."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; empty parts are left out."""
        data: dict[str, Any] = {"ok": True, "microseconds": self.microseconds, "verified": self.verified}
        if self.cold_microseconds is not None:
            data["cold_microseconds"] = self.cold_microseconds
        if self.samples:
            data["samples"] = list(self.samples)
        if self.notes:
            data["notes"] = list(self.notes)
        for name in ("device", "clocks", "seconds"):
            if getattr(self, name):
                data[name] = dict(getattr(self, name))
        return data


def is_time(value: Any) -> bool:
    """Whether ``value`` can be a time: a positive number, less than 30 years in microseconds."""
    if type(value) is float:  # nearly all are floats, and there are hundreds of thousands
        return 0.0 < value <= LONGEST
    try:
        return not isinstance(value, bool) and math.isfinite(value) and bool(0 < value <= LONGEST)
    except (TypeError, OverflowError):
        return False


@dataclass(frozen=True)
class Failed:
    """A candidate without a time. ``kind`` is one of FAILURE_KINDS, ``reason`` a sentence a person can act on.

    ``device`` identifies the GPU it was tried on, ``seconds`` is as in :class:`Measured`. Raises
    InvalidInput for an unknown kind.
    """

    kind: str
    reason: str
    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)
    device: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.kind not in FAILURE_KINDS:
            raise InvalidInput(f"failure kind {self.kind!r}: {did_you_mean(str(self.kind), FAILURE_KINDS)}")

    @property
    def ok(self) -> bool:
        """False: there is no time."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data: dict[str, Any] = {"ok": False, "kind": self.kind, "reason": self.reason}
        for name in ("seconds", "device"):
            if getattr(self, name):
                data[name] = dict(getattr(self, name))
        return data


Result: TypeAlias = Measured | Failed
"""What a runner returns for each candidate, and what a strategy is told."""


def result_from_dict(data: Any) -> Result:
    """The result that gave ``data`` by ``to_dict()``. Raises InvalidInput when fields are missing, unknown or
    invalid."""
    if not isinstance(data, Mapping) or not isinstance(data.get("ok"), bool):
        raise InvalidInput('a result is an object with "ok": true or false')
    try:
        shape: ResultShape = decoder(ResultShape).decode(json.dumps(dict(data), default=_scalar))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"result {str(dict(data))[:120]}: {why(error)}") from None
    return result_of(shape, shape.ok)


def _scalar(value: Any) -> Any:
    """NumPy numbers as Python's. Raises TypeError for anything else."""
    if not hasattr(value, "item"):
        raise TypeError(f"{type(value).__name__} has no place in a result")
    return value.item()


def result_of(shape: Outcome, ok: bool) -> Result:
    """The result in a record that was read. Raises InvalidInput when fields are missing or belong to the other kind."""
    if not ok:
        if shape.kind is UNSET or shape.reason is UNSET:
            raise InvalidInput("a failure has a kind and a reason")
        if any(getattr(shape, name) is not UNSET for name in _OF_MEASURED):
            raise InvalidInput("a failure has neither a time nor samples")
        return Failed(shape.kind, shape.reason, shape.seconds or {}, shape.device or {})
    if shape.microseconds is UNSET or shape.kind is not UNSET or shape.reason is not UNSET:
        raise InvalidInput("what was measured has microseconds, and neither a kind of failure nor a reason")
    return Measured(
        shape.microseconds, shape.samples or (), shape.cold_microseconds or None, shape.verified or False,
        shape.device or {}, shape.clocks or {}, shape.seconds or {}, shape.notes or (),
    )  # fmt: skip


_OF_MEASURED = ("microseconds", "samples", "cold_microseconds", "verified", "clocks", "notes")

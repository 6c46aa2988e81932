"""The contents of the files as frozen records: the types of all fields, but not their meaning."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

Int: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
LONGEST = 10**15
Time: TypeAlias = Annotated[int, Meta(gt=0, le=LONGEST)] | Annotated[float, Meta(gt=0, le=LONGEST)]
"""A measured time: positive, and less than 30 years in microseconds."""
Sample: TypeAlias = Annotated[float, Meta(gt=0, le=LONGEST)]
Seconds: TypeAlias = Annotated[int, Meta(ge=0, le=LONGEST)] | Annotated[float, Meta(ge=0, le=LONGEST)]
Text: TypeAlias = Annotated[str, Meta(max_length=10_000)]
Name: TypeAlias = Annotated[str, Meta(max_length=1_000)]
Finite: TypeAlias = Annotated[float, Meta(ge=-1.7e308, le=1.7e308)]
Leaf: TypeAlias = bool | Int | Finite | Text | None
Twig: TypeAlias = Leaf | list[Leaf] | dict[Name, Leaf]
Branch: TypeAlias = Leaf | list[Twig] | dict[Name, Twig]
Tree: TypeAlias = Leaf | list[Branch] | dict[Name, Branch]
"""Plain data without a shape of its own (a device, a protocol), a few levels deep."""
Value: TypeAlias = bool | Int | Finite | Text
Values: TypeAlias = list[Value]


class Outcome(Struct, frozen=True):
    """The fields of a measured or failed result that every kind of file holds."""

    microseconds: Time | UnsetType = UNSET
    verified: bool | UnsetType = UNSET
    cold_microseconds: Time | UnsetType | None = UNSET
    samples: tuple[Sample, ...] | UnsetType = UNSET
    notes: tuple[Text, ...] | UnsetType = UNSET
    kind: Name | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    device: dict[Name, Tree] | UnsetType = UNSET
    clocks: dict[Name, Branch] | UnsetType = UNSET
    seconds: dict[Name, Seconds] | UnsetType = UNSET


class ResultShape(Outcome, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A result in a log or a results file: measured when ``ok``, else failed."""

    ok: bool


class EntryShape(Outcome, frozen=True, forbid_unknown_fields=True):
    """A line of a landscape after its header: a result, an index that shares one, or the checksum."""

    index: Count | UnsetType = UNSET
    gpu: Count | UnsetType = UNSET
    same_as: Count | UnsetType = UNSET
    sha256: Name | UnsetType = UNSET


class MeasuredLine(Outcome, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A line of a results file after its header."""

    index: Count
    ok: bool | UnsetType = UNSET
    program: Name | UnsetType = UNSET
    same_as: Count | UnsetType = UNSET


class SpaceShape(Struct, frozen=True):
    """The space of a header. ``base`` holds the fields that no knob sets."""

    kind: Name
    arch: Name
    hash: Name
    size: Count
    knobs: dict[Name, Values]
    fixed: dict[Name, Leaf]
    base: dict[Name, Leaf] | UnsetType = UNSET
    index_hash: Name | UnsetType = UNSET


class HeaderShape(Struct, frozen=True):
    """The first line of a landscape or results file."""

    format: Name
    schema: Count
    workload: dict[Name, Twig]
    space: SpaceShape
    device: dict[Name, Tree]
    protocol: dict[Name, Tree]
    created: Name
    command: str | UnsetType = UNSET
    versions: dict[Name, Name] | UnsetType = UNSET
    entries: Count | UnsetType = UNSET


class StrategyShape(Struct, frozen=True):
    """The strategy of a log."""

    name: Name
    options: dict[Name, Tree]


class LogHeader(Struct, frozen=True):
    """The first line of a log."""

    format: Name
    schema: Count
    space: SpaceShape
    workload: dict[Name, Twig]
    seed: Int
    strategy: StrategyShape
    device: dict[Name, Tree] | None
    created: Name
    versions: dict[Name, Name] | UnsetType = UNSET


class LogLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A trial of a log."""

    trial: Count
    index: Count
    config: dict[Name, Leaf]
    result: ResultShape
    ask: tuple[Count, Count, Count] | None
    started: Name
    finished: Name
    crc: Name


class ManifestHeader(Struct, frozen=True):
    """The first line of a bundle's manifest."""

    format: Name
    schema: Count
    workload: dict[Name, Twig]
    space: SpaceShape
    versions: dict[Name, Name] | UnsetType = UNSET
    created: Name | UnsetType = UNSET


class ManifestLine(Struct, frozen=True):
    """A kernel of a bundle, or why it is missing."""

    index: Count
    config: dict[Name, Leaf]
    cubin: Name | UnsetType = UNSET
    program: Name | UnsetType = UNSET
    launch: dict[Name, Any] | UnsetType = UNSET
    resources: dict[Name, Tree] | UnsetType = UNSET
    seconds: Seconds | UnsetType = UNSET
    failed: ResultShape | UnsetType = UNSET

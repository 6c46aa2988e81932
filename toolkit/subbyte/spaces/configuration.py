"""What every configuration can do, from the rows of its knobs: keys, dictionaries, parsing, validation, a docstring."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.spaces.knob import ROW, Knob, knob, switch

Made = TypeVar("Made", bound="Configuration")


@dataclass(frozen=True)
class Configuration:
    """A value for every knob and switch of one kind of kernel; plain frozen data.

    Whether it can be built for a workload and an architecture is decided by the rules of its family, never here.
    """

    rows: ClassVar[Mapping[str, Knob]] = {}
    """The knobs by name, in the order of the fields."""
    prefix: ClassVar[str] = ""
    """How the keys of this kind begin."""
    skips_zeros: ClassVar[bool] = False
    """Kernels of this kind leave out weights that are 0 by the workload's pattern."""
    _fine: ClassVar[set[tuple[str, Any]]] = set()
    """Fields with values that were looked at: searches make millions of configurations of the same values."""

    def __post_init__(self) -> None:
        given = vars(self)
        types = [type(value) for value in given.values()]
        if types == self._types and self._fine.issuperset(given.items()):  # True is no 1
            return
        for name, row in self.rows.items():
            row.check(given[name])
        self._fine.update(given.items())

    _types: ClassVar[list[type]] = []

    @property
    def key(self) -> str:
        """Short, stable text that names this configuration: what every key names and what is not at its default."""
        given = vars(self)
        parts = [row.part(given[name]) for name, row in self.rows.items() if row.always or given[name] != row.default]
        return self.prefix + "-".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dict(vars(self))  # not asdict(), which copies deeply: thousands of configurations are written at a time

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The configuration with these fields (case-insensitive; the rest default). Raises InvalidInput."""
        return cls().with_values(data)

    @classmethod
    def from_key(cls, key: str) -> Self:
        """The configuration that :attr:`key` names. Raises InvalidInput for a part that means nothing, or two of one
        knob."""
        if not isinstance(key, str):
            raise InvalidInput(f"configuration {shown(key)}: expected the text of a key, such as {cls().key}")
        values: dict[str, Any] = {}
        for part in key.lower().strip().removeprefix(cls.prefix).split("-"):
            meant = cls._meaning(part)
            if meant is None:
                raise InvalidInput(
                    f"configuration {shown(key)}: {shown(part)} is no part of one; expected a key such as {cls().key}"
                )
            if meant[0] in values:
                raise InvalidInput(f"configuration {shown(key)}: {shown(part)} gives {meant[0]} a second time")
            values[meant[0]] = meant[1]
        return cls().with_values(values)

    @classmethod
    def _meaning(cls, part: str) -> tuple[str, str] | None:
        """The knob and the text of its value that a part of a key names."""
        found = re.fullmatch(r"([a-z]+)([0-9]+)", part)
        for name, row in cls.rows.items():
            listed = [str(value).lower() for value in row.values.listed]
            if row.key in ("", part[: len(row.key)]) and part[len(row.key) :] in listed:
                return name, part[len(row.key) :]
            if found and found[1] == row.key:
                return name, found[2]
        return None

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """A copy with some fields replaced. Names and text values are case-insensitive; text that means a number
        or a truth value ("4", "off", "true") is accepted, as the command line and log files give it."""
        changed = named_once(values, self.rows)
        parsed = {name: self.rows[name].parse(value) for name, value in changed.items()}
        return type(self)(**{**vars(self), **parsed})  # replace() asks for the fields anew each time


@dataclass_transform(frozen_default=True, field_specifiers=(knob, switch))
def configuration(cls: type[Made]) -> type[Made]:
    """Decorator: a frozen dataclass whose rows are known, and documented behind its own text."""
    made = dataclass(frozen=True)(cls)
    rows = {}
    for one in fields(made):
        rows[one.name] = replace(one.metadata[ROW], name=one.name, default=one.default)
    made.rows, made._fine, made._types = rows, set(), [type(row.default) for row in rows.values()]
    lines = [f"* {row.document}" for row in rows.values()]
    made.__doc__ = "\n    ".join([f"{(made.__doc__ or '').rstrip()}\n", *lines, ""])
    return made


def named_once(values: Any, known: Collection[str] | None = None) -> dict[str, Any]:
    """Values by the names of fields, whose case is of no account. Raises InvalidInput for what holds no values, for a
    name that is not ``known`` (None: any may be) and for one that stands twice."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"configuration {shown(values)}: expected names with values, such as {{'unroll': 2}}")
    found: dict[str, Any] = {}
    for given, value in values.items():
        name = str(given).lower().replace("-", "_")
        if known is not None and name not in known:
            raise InvalidInput(f"unknown knob {shown(given)}: {did_you_mean(name, known)}")
        if name in found:
            raise InvalidInput(f"knob {shown(given)}: {shown(name)[1:-1]} stands there twice")
        found[name] = value
    return found

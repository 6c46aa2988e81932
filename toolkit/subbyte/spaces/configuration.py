"""What every configuration can do, derived from its knob rows: keys, dictionaries, parsing, validation, a docstring."""

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

    The rules of its family decide whether it can be built for a workload and an architecture, not this class.
    """

    rows: ClassVar[Mapping[str, Knob]] = {}
    """The knobs by name, in the order of the fields."""
    prefix: ClassVar[str] = ""
    """How the keys of this kind begin."""
    skips_zeros: ClassVar[bool] = False
    """Whether kernels of this kind skip weights that are 0 by the workload's sparsity pattern."""
    _fine: ClassVar[set[tuple[str, Any]]] = set()
    """Fields with values that were validated before: searches make millions of configurations with the same values."""

    def __post_init__(self) -> None:
        given = vars(self)
        types = [type(value) for value in given.values()]
        if types == self._types and self._fine.issuperset(given.items()):  # True is not 1
            return
        for name, row in self.rows.items():
            row.check(given[name])
        self._fine.update(given.items())

    _types: ClassVar[list[type]] = []

    @property
    def key(self) -> str:
        """Short, stable text that names this configuration: knobs that are always in the key, and those not at their
        defaults."""
        given = vars(self)
        parts = [row.part(given[name]) for name, row in self.rows.items() if row.always or given[name] != row.default]
        return self.prefix + "-".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dict(vars(self))  # not asdict(), which copies deeply: thousands of configurations are written at a time

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The configuration with these fields (names are case-insensitive; missing ones take their defaults). Raises
        InvalidInput."""
        return cls().with_values(data)

    @classmethod
    def from_key(cls, key: str) -> Self:
        """The configuration that :attr:`key` names. Raises InvalidInput for an unknown part, or for two parts with the
        same knob."""
        if not isinstance(key, str):
            raise InvalidInput(f"configuration {shown(key)}: expected the text of a key, such as {cls().key}")
        values: dict[str, Any] = {}
        for part in key.lower().strip().removeprefix(cls.prefix).split("-"):
            meant = cls._meaning(part)
            if meant is None:
                raise InvalidInput(
                    f"configuration {shown(key)}: {shown(part)} is not part of a key; expected a key such as "
                    f"{cls().key}"
                )
            if meant[0] in values:
                raise InvalidInput(f"configuration {shown(key)}: {shown(part)} gives {meant[0]} a second time")
            values[meant[0]] = meant[1]
        return cls().with_values(values)

    @classmethod
    def _meaning(cls, part: str) -> tuple[str, str] | None:
        """The knob that a part of a key names, and the text of its value."""
        found = re.fullmatch(r"([a-z]+)([0-9]+)", part)
        for name, row in cls.rows.items():
            listed = [str(value).lower() for value in row.values.listed]
            if row.key in ("", part[: len(row.key)]) and part[len(row.key) :] in listed:
                return name, part[len(row.key) :]
            if found and found[1] == row.key:
                return name, found[2]
        return None

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """A copy with some fields replaced. Names and text values are case-insensitive; text for a number
        or a truth value ("4", "off", "true") is accepted, as it appears on the command line and in log files."""
        changed = named_once(values, self.rows)
        parsed = {name: self.rows[name].parse(value) for name, value in changed.items()}
        return type(self)(**{**vars(self), **parsed})  # replace() would look up the fields every time


@dataclass_transform(frozen_default=True, field_specifiers=(knob, switch))
def configuration(cls: type[Made]) -> type[Made]:
    """Decorator: a frozen dataclass with knob rows, whose docstring lists them after its own text."""
    made = dataclass(frozen=True)(cls)
    rows = {}
    for one in fields(made):
        rows[one.name] = replace(one.metadata[ROW], name=one.name, default=one.default)
    made.rows, made._fine, made._types = rows, set(), [type(row.default) for row in rows.values()]
    lines = [f"* {row.document}" for row in rows.values()]
    made.__doc__ = "\n    ".join([f"{(made.__doc__ or '').rstrip()}\n", *lines, ""])
    return made


def named_once(values: Any, known: Collection[str] | None = None) -> dict[str, Any]:
    """Values by field name, ignoring case. Raises InvalidInput for anything that holds no values, for a
    name that is not ``known`` (None: any is allowed) and for one given twice."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"configuration {shown(values)}: expected names with values, such as {{'unroll': 2}}")
    found: dict[str, Any] = {}
    for given, value in values.items():
        name = str(given).lower().replace("-", "_")
        if known is not None and name not in known:
            raise InvalidInput(f"unknown knob {shown(given)}: {did_you_mean(name, known)}")
        if name in found:
            raise InvalidInput(f"knob {shown(given)}: {shown(name)[1:-1]} occurs twice")
        found[name] = value
    return found

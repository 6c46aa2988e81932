"""A knob is one row: its name, its key, its default, its allowed values and its meaning.

Parsing, validation, keys and documentation of a configuration all come from these rows
(:mod:`subbyte.spaces.configuration`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from subbyte.errors import InvalidInput, did_you_mean, shown

Value = bool | int | str
"""The value of a knob or switch."""
ROW = "knob"
"""The key of a dataclass field's metadata that holds its row."""
MOST = 1 << 12
"""Upper bound on any integer knob: more than can be built."""
TRUTH = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
"""Truth values as written on the command line and in log files."""


@dataclass(frozen=True)
class Values:
    """The allowed values of a knob: integers from ``least`` to ``most`` (None: no limit), or one of ``listed``. Numbers
    from 0 to ``most`` may have ``names``."""

    least: int = 0
    most: int | None = None
    listed: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The values in words."""
        if self.listed:
            return ", ".join(str(value).lower() for value in self.listed)
        if self.names:
            return ", ".join(f"{number} = {name}" for number, name in enumerate(self.names))
        if self.most is None:
            return f"an integer >= {self.least}"
        if self.most - self.least < 8:
            return ", ".join(map(str, range(self.least, self.most + 1)))
        return f"an integer from {self.least} to {self.most}"

    def holds(self, value: Any) -> bool:
        """Whether a value is allowed; its type must match, so True is not 1."""
        if self.listed:
            return type(value) is type(self.listed[0]) and value in self.listed
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and self.least <= value <= (MOST if self.most is None else self.most)


def whole(least: int = 1, most: int | None = None) -> Values:
    """Integers from ``least`` to ``most``."""
    return Values(least, most)


def named(*names: str) -> Values:
    """Integers from 0 on with these names; a value may be given by name."""
    return Values(0, len(names) - 1, names=names)


def flag() -> Values:
    """0 or 1."""
    return Values(0, 1)


def choice(*listed: Any) -> Values:
    """One of these: lower-case texts, or truth values; the first one turns the technique on."""
    return Values(listed=listed)


@dataclass(frozen=True)
class Knob:
    """One row. ``key`` is the prefix of the knob's part of a configuration's key; ``always`` puts it into every key."""

    key: str
    values: Values
    meaning: str
    always: bool = False
    switch: bool = False
    name: str = ""
    default: Any = None

    def check(self, value: Any) -> None:
        """Raise InvalidInput for a value that is not allowed."""
        if self.values.holds(value):
            return
        what = "switch" if self.switch else "knob"
        if self.values.listed:
            known = [str(one).lower() for one in self.values.listed]
            if isinstance(self.values.listed[0], bool):
                raise InvalidInput(f"{what} {self.name}={shown(value)}: allowed: true, false")
            raise InvalidInput(f"{what} {self.name}={shown(value)}: {did_you_mean(value, known)}")
        kind = "must be" if self.values.most is None else "allowed:"
        most = f" and at most {MOST:,}" if isinstance(value, int) and value > MOST else ""
        raise InvalidInput(f"{what} {self.name}={shown(value)}: {kind} {self.values.text}{most}")

    def parse(self, given: Any) -> Any:
        """The value of a text, as given on the command line and in files; anything else is returned unchanged.

        Raises InvalidInput for a text that cannot be a value; :meth:`check` checks the value itself.
        """
        if not isinstance(given, str):
            return given
        listed = self.values.listed
        if listed and isinstance(listed[0], bool):
            if given.lower() not in TRUTH:
                raise InvalidInput(f"{self.name}={shown(given)}: allowed: true, false")
            return TRUTH[given.lower()]
        if listed:
            return given.lower()
        if given.lower() in self.values.names:
            return self.values.names.index(given.lower())
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", given):
            if self.values.names:
                raise InvalidInput(f"knob {self.name}={shown(given)}: {did_you_mean(given.lower(), self.values.names)}")
            raise InvalidInput(f"knob {self.name}={shown(given)}: must be an integer")
        return int(given)

    def part(self, value: Any) -> str:
        """The knob's part of a key."""
        return f"{self.key}{int(value) if isinstance(value, bool) else value}"

    @property
    def document(self) -> str:
        """The knob's line in a docstring."""
        return f"``{self.name}`` ({self.values.text}; default {str(self.default).lower()}): {self.meaning}"


def knob(key: str, values: Values, meaning: str, *, default: Any, always: bool = False) -> Any:
    """A field of a configuration that is a knob."""
    return field(default=default, metadata={ROW: Knob(key, values, meaning, always)})


def switch(key: str, values: Values, meaning: str, *, default: Any) -> Any:
    """A field that turns a technique on or off, or chooses one."""
    return field(default=default, metadata={ROW: Knob(key, values, meaning, switch=True)})

"""What every space of knobs shares: an index is a mixed-radix number over value lists, and each index is valid or
refused."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

from subbyte.arguments import is_whole
from subbyte.errors import InvalidInput, shown
from subbyte.html import table
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.former_names import FormerNames
from subbyte.spaces.knob import Value

Enumerated = tuple[tuple[int, ...], dict[str, int]]
"""Valid indices, ascending, and the number of refused ones by kind of reason."""


class Listed(FormerNames):
    """Base class of the spaces. A space defines its ``knobs`` (the first varies fastest) and how ``_enumerated`` is
    computed."""

    knobs: Mapping[str, tuple[int, ...]]

    def __len__(self) -> int:
        return prod(len(values) for values in self.knobs.values())

    def values_at(self, index: int) -> dict[str, Any]:
        """The knobs' values at an index. Raises InvalidInput when it is not an integer or out of range."""
        if not is_whole(index) or not 0 <= index < len(self):
            raise InvalidInput(f"configuration index {shown(index)}: allowed: integers from 0 to {len(self) - 1}")
        index = int(index)
        values: dict[str, Any] = {}
        for name, choices in self.knobs.items():
            index, digit = divmod(index, len(choices))
            values[name] = choices[digit]
        return values

    @cached_property
    def _enumerated(self) -> Enumerated:
        raise NotImplementedError

    @property
    def valid(self) -> tuple[int, ...]:
        """Indices of the configurations that can be built, each program once, ascending."""
        return self._enumerated[0]

    @property
    def refused(self) -> dict[str, int]:
        """Number of refused configurations by kind of reason; with ``valid`` they add up to the product."""
        return self._enumerated[1]


class ListedTable(Listed):
    """A space for a workload on an architecture that is displayed as a table of its value lists."""

    workload: Any
    arch: Any
    kind: str

    def _repr_html_(self) -> str:
        caption = f"{self.kind} space of {self.workload} on {self.arch.name}: {len(self):,} configurations"
        return table(((name, listed(values)) for name, values in self.knobs.items()), caption=caption)


class ListedOneByOne(ListedTable):
    """A space in which each configuration is checked for its reason one by one, and identified by its knobs and held
    fields.

    A space defines ``config``, ``check`` and ``usual``: a configuration of its kind, for messages.
    """

    usual: Configuration
    fixed: Mapping[str, Value]

    def check(self, which: Any, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        raise NotImplementedError

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that does not belong to this space."""
        index, weight = 0, 1
        if type(config) is not type(self.usual):
            name = type(self.usual).__name__
            raise InvalidInput(f"configuration {shown(config)}: expected a {name}, such as {name}()")
        for name, choices in self.knobs.items():
            value = getattr(config, name)
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
            index += choices.index(value) * weight
            weight *= len(choices)
        for name, held in self.fixed.items():
            if getattr(config, name) != held:
                raise InvalidInput(f"{name}={getattr(config, name)}: fixed at {held} in this space")
        return index

    @cached_property
    def _enumerated(self) -> Enumerated:
        reasons = {index: self.check(index) for index in range(len(self))}
        refused = Counter(reason.split(":")[0] for reason in reasons.values() if reason)
        return tuple(index for index, reason in reasons.items() if reason is None), dict(refused)

    @cached_property
    def index_hash(self) -> str:
        """Changes when the meaning of an index changes."""
        knobs = {name: list(values) for name, values in self.knobs.items()}
        data = [self.workload.spec, self.arch.name, self.kind, knobs, dict(self.fixed)]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]

    @cached_property
    def hash(self) -> str:
        """Changes when the meaning of an index or the constraints change."""
        return hashlib.sha256(f"{self.index_hash} {self.valid}".encode()).hexdigest()[:16]


def listed(values: tuple[int, ...]) -> str:
    """Values as text, separated by commas."""
    return ", ".join(map(str, values))

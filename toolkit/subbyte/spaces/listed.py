"""What every space of knobs shares: an index is a mixed radix over value lists, and each index is valid or refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

from subbyte.arguments import is_whole
from subbyte.errors import InvalidInput, shown
from subbyte.html import table
from subbyte.spaces.former_names import FormerNames

Enumerated = tuple[tuple[int, ...], dict[str, int]]
"""Valid indices, ascending, and the number of refused ones by kind of reason."""


class Listed(FormerNames):
    """Base of the spaces. A space says its ``knobs`` (the first varies fastest) and how ``_enumerated`` is found."""

    knobs: Mapping[str, tuple[int, ...]]

    def __len__(self) -> int:
        return prod(len(values) for values in self.knobs.values())

    def values_at(self, index: int) -> dict[str, Any]:
        """The knobs' values at an index. Raises InvalidInput when it is no integer or out of range."""
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
    """A space of a workload on an architecture that prints as a table of its value lists."""

    workload: Any
    arch: Any
    kind: str

    def _repr_html_(self) -> str:
        caption = f"{self.kind} space of {self.workload} on {self.arch.name}: {len(self):,} configurations"
        return table(((name, listed(values)) for name, values in self.knobs.items()), caption=caption)


def listed(values: tuple[int, ...]) -> str:
    """Values as text, separated by commas."""
    return ", ".join(map(str, values))

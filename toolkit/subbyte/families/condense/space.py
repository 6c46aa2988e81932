"""All configurations of a product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.condense.config import CondenseConfig
from subbyte.families.condense.plan import CondensePlan
from subbyte.families.condense.rules import other_layers, why_not
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import ListedOneByOne
from subbyte.workload.conv import ConvWorkload

KIND = "condense"
VALUES: dict[str, tuple[int, ...]] = {
    "row_warps": (1, 2, 4), "col_warps": (1, 2, 4), "panels": (1, 2), "chunk": (2, 4, 8, 16, 24),
    "column_tiles": (1, 2, 4), "ahead": (0, 1), "sharing": (1, 2),
}  # fmt: skip
"""What the space varies."""


@dataclass(frozen=True)
class CondenseSpace(ListedOneByOne):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str = KIND

    def config(self, index: int) -> CondenseConfig:
        """The configuration with this index. Raises InvalidInput."""
        return CondenseConfig().with_values({**self.values_at(index), **self.fixed})

    @property
    def usual(self) -> CondenseConfig:
        """A configuration of its kind."""
        return CondenseConfig()

    def plan(self, which: int | Configuration, /) -> CondensePlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, CondenseConfig) else self.config(cast(int, which))
        return CondensePlan(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return why_not(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may."""
        return other_layers(self.workload, self.arch)


def held_fields(fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    held = tuple(name for name in CondenseConfig.rows if name not in VALUES)
    for name in fixed:
        if name not in held:
            raise InvalidInput(f"{name!r} cannot be fixed in such a space: {did_you_mean(name, held)}")
    base = CondenseConfig().with_values(fixed)
    return {name: getattr(base, name) for name in held}

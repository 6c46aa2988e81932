"""All configurations of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.stem.config import StemConfig
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import hopeless, why_not
from subbyte.families.stem.strips import strips
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import ListedOneByOne
from subbyte.workload.conv import ConvWorkload, ceil_div

KIND = "stem"
HELD = ("min_blocks", "dependent_launch")
"""Fields that do not vary."""
MOST_SEGMENTS = 8


@dataclass(frozen=True)
class StemSpace(ListedOneByOne):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str = KIND

    def config(self, index: int) -> StemConfig:
        """The configuration with this index. Raises InvalidInput."""
        return StemConfig().with_values({**self.values_at(index), **self.fixed})

    @property
    def usual(self) -> StemConfig:
        """A configuration of its kind."""
        return StemConfig()

    def plan(self, which: int | Configuration, /) -> StemPlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, StemConfig) else self.config(cast(int, which))
        return StemPlan(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return why_not(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may."""
        return hopeless(self.workload, self.arch)


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """What the space offers for a layer: of segments those that are shared out evenly."""
    units = strips(workload).units
    parts = range(1, min(units, MOST_SEGMENTS) + 1)
    segments = [count for count in parts if ceil_div(units, ceil_div(units, count)) == count]
    return {
        "tile_rows": (1, 2, 4),
        "filters": (32, 64, 96, 128),
        "consumers": (1, 2, 3, 4, 6, 7, 8),
        "segments": tuple(segments),
        "turns": (1, 2, 3, 4, 7, 8, 14),
    }


def held_fields(fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    for name in fixed:
        if name not in HELD:
            raise InvalidInput(f"{name!r} cannot be fixed in a stem space: {did_you_mean(name, HELD)}")
    base = StemConfig().with_values(fixed)
    return {name: getattr(base, name) for name in HELD}

"""All configurations of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.bits.rules import hopeless, multiplies_whole, why_not
from subbyte.families.bits.tiles import PAIR_CHANNELS
from subbyte.families.shared.flat_view import flat_view
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import ListedOneByOne
from subbyte.workload.conv import ConvWorkload, ceil_div

KIND = "bits"
HELD = ("dependent_launch", "stagger", "counted")
"""Fields that do not vary."""


@dataclass(frozen=True)
class BitsSpace(ListedOneByOne):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str = KIND

    def config(self, index: int) -> BitsConfig:
        """The configuration with this index. Raises InvalidInput."""
        return BitsConfig(**{**self.values_at(index), **self._held})

    @cached_property
    def _held(self) -> Mapping[str, int]:
        """The fields that do not vary, once looked at with the names of the others."""
        first = BitsConfig().with_values({**{name: choices[0] for name, choices in self.knobs.items()}, **self.fixed})
        return {name: getattr(first, name) for name in self.fixed}

    @property
    def usual(self) -> BitsConfig:
        """A configuration of its kind."""
        return BitsConfig()

    def plan(self, which: int | Configuration, /) -> BitsPlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, BitsConfig) else self.config(cast(int, which))
        return plan_of(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return why_not(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may."""
        return hopeless(self.workload, self.arch)


def plan_of(
    workload: ConvWorkload,
    config: BitsConfig | RingConfig,
    arch: Arch,
    output: str | None = None,
    requant: str = "fixed",
) -> BitsPlan:
    """The plan that gives the output type, or ``output``."""
    given = workload.precision.output.name if output is None else output
    if isinstance(config, RingConfig):
        return RingPlan(workload, config, arch, given, requant=requant)
    return BitsPlan(workload, config, arch, given, requant=requant)


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """What the space offers for a layer."""
    heights = {workload.p, flat_view(workload).p}
    rows = sorted({ceil_div(height, parts) for height in heights for parts in range(1, height + 1)})
    return {
        "tile_rows": tuple(row for row in rows if row <= 32),
        "channels": (32, 64, 128, 256),
        "consumers": (1, 2, 3, 4, 6),
        "turn_rows": (1, 2),
        "run_on": (0, 1) if workload.stride == 1 else (0,),
        "doubled": (0, 1) if workload.precision.activations.bits > 1 else (0,),
        "paired_rows": (0, 1) if workload.c <= PAIR_CHANNELS and workload.dilation == 1 else (0,),
        "whole_values": (0, 1) if multiplies_whole(workload) else (0,),
    }


def held_fields(fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    for name in fixed:
        if name not in HELD:
            raise InvalidInput(f"{name!r} cannot be fixed in a bits space: {did_you_mean(name, HELD)}")
    base = BitsConfig().with_values(fixed)
    return {name: getattr(base, name) for name in HELD}

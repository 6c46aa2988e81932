"""All configurations of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.base import Plan
from subbyte.families.shared.planes.config import KNOBS, PlaneConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import ListedOneByOne
from subbyte.workload.conv import ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS

CHUNKS = (1, 2, 4, 8)


class PlaneKind(Protocol):
    """What a space asks of its family."""

    @property
    def usual(self) -> PlaneConfig:
        """Every knob at its default."""
        ...

    def planned(self, workload: ConvWorkload, config: PlaneConfig, arch: Arch, output: str) -> PlanePlan:
        """The plan of a configuration."""
        ...

    def check(self, plan: Plan) -> str | None:
        """Why a plan is refused, None when it can be built."""
        ...

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, None when some may."""
        ...


@dataclass(frozen=True)
class PlaneSpace(ListedOneByOne):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    family: PlaneKind
    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str

    def config(self, index: int) -> PlaneConfig:
        """The configuration with this index. Raises InvalidInput."""
        return self.family.usual.with_values({**self.values_at(index), **self.fixed})

    @property
    def usual(self) -> PlaneConfig:
        """A configuration of its kind."""
        return self.family.usual

    def plan(self, which: int | Configuration, /) -> PlanePlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, PlaneConfig) else self.config(cast(int, which))
        return self.family.planned(self.workload, config, self.arch, self.workload.precision.output.name)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return self.family.check(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may."""
        return self.family.hopeless(self.workload, self.arch)


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """What the space offers for a layer."""
    blocks = ceil_div(workload.c, BLOCK_BITS)
    chunks = tuple(chunk for chunk in CHUNKS if blocks % chunk == 0)
    lists = (1, 2, 4), (1, 2, 4), (2, 4, 8), (4, 8), chunks, (0, 1) if workload.r > 1 else (0,)
    return dict(zip(KNOBS, lists, strict=True))


def held_fields(usual: PlaneConfig, fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    held = tuple(name for name in usual.rows if name not in KNOBS)
    for name in fixed:
        if name not in held:
            raise InvalidInput(f"{name!r} cannot be fixed in such a space: {did_you_mean(name, held)}")
    base = usual.with_values(fixed)
    return {name: getattr(base, name) for name in held}

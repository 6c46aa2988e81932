"""A space in which each configuration is planned and checked for its reason one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.planned import Plan
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import ListedOneByOne
from subbyte.workload.conv import ConvWorkload

Planned_co = TypeVar("Planned_co", bound=Plan, covariant=True)


class Planner(Protocol[Planned_co]):
    """What such a space needs from its family."""

    def usual_plan(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> Planned_co:
        """The plan for the workload's output type."""
        ...

    def check(self, plan: Plan) -> str | None:
        """Why a plan is rejected, None when it can be built."""
        ...

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, None when some may."""
        ...


@dataclass(frozen=True)
class OneByOneSpace(ListedOneByOne, Generic[Planned_co]):
    """An index is a mixed-radix number over ``knobs``, the first varying fastest."""

    family: Planner[Planned_co]
    usual: Configuration
    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str

    def config(self, index: int) -> Configuration:
        """The configuration with this index. Raises InvalidInput."""
        return type(self.usual)(**{**self.values_at(index), **self._held})

    @cached_property
    def _held(self) -> Mapping[str, Value]:
        """The fields that do not vary, checked once together with the names of the others."""
        first = self.usual.with_values({**{name: choices[0] for name, choices in self.knobs.items()}, **self.fixed})
        return {name: getattr(first, name) for name in self.fixed}

    def plan(self, which: int | Configuration, /) -> Planned_co:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, Configuration) else self.config(which)
        return self.family.usual_plan(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return self.family.check(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why no configuration of the space can be built; None if some might be."""
        return self.family.hopeless(self.workload, self.arch)


def held_fields(
    usual: Configuration, names: tuple[str, ...], fixed: Mapping[str, object], kind: str
) -> dict[str, Value]:
    """The fields ``names``, which a space of that kind holds fixed, as in ``usual`` unless ``fixed`` sets them. Raises
    InvalidInput for a field that varies."""
    for name in fixed:
        if name not in names:
            raise InvalidInput(f"{name!r} cannot be fixed in a {kind} space: {did_you_mean(name, names)}")
    base = usual.with_values(fixed)
    return {name: getattr(base, name) for name in names}

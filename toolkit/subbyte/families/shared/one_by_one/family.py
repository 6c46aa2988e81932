"""A family with one configuration class whose spaces check configurations one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import Family, Plan
from subbyte.families.shared.one_by_one.space import OneByOneSpace, held_fields
from subbyte.families.shared.reasons import serialized, spilled
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload

Planned = TypeVar("Planned", bound=Plan)


class OneByOneFamily(Family, Generic[Planned]):
    """A family only has to add rules, value lists, an estimate, and the code."""

    planned: Callable[..., Planned]
    """The class of its plans."""
    varied: ClassVar[tuple[str, ...]]
    """Knobs that its space varies, the first fastest; all others are held fixed."""
    usual_output: ClassVar[tuple[str, tuple[int, int]]] = ("int4", (-8, 7))
    """Default output type and range."""
    half: ClassVar[float] = 2e4
    """Cycles of the estimate at which the fake runner makes up half of the maximum."""
    in_registers: ClassVar[str] = "sums"
    """What a kernel that uses local memory has too much of."""

    @abstractmethod
    def why_not(self, plan: Planned) -> str | None:
        """Why the plan cannot be built ("kind: details"), None when it can."""

    @abstractmethod
    def value_lists(self, workload: ConvWorkload) -> Mapping[str, tuple[int, ...]]:
        """The value lists for a layer."""

    @abstractmethod
    def cycles(self, plan: Planned) -> float:
        """A rough count."""

    @property
    def kind(self) -> str:
        """The kind of its space."""
        return next(iter(self.kinds))

    # ---- plans and spaces -------------------------------------------------------------------------------------------

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "",
        clip: tuple[int, int] | None = None, requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        name, full = self.usual_output
        return self.planned(workload, config, arch, output or name, full if clip is None else clip, requant)

    def usual_plan(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> Planned:
        """The plan for the workload's output type."""
        return self.planned(workload, config, arch, workload.precision.output.name)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return self.why_not(cast(Planned, plan))

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload, None when one does."""
        reason = self.hopeless(workload, arch)
        if reason is not None or _candidates(self, workload, arch):
            return reason
        return self.space(workload, arch, self.kind, {}).check(0)

    def space(
        self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]
    ) -> OneByOneSpace[Planned]:
        """The space of a layer. Raises InvalidInput if a fixed field is a knob."""
        return OneByOneSpace(self, self.plain, workload, arch, self.value_lists(workload), self.held(fixed), kind)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> OneByOneSpace[Planned]:  # fmt: skip
        """The space of a record's header."""
        lists = cast("Mapping[str, tuple[int, ...]]", knobs)
        return OneByOneSpace(self, self.plain, workload, arch, lists, fixed, kind)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The fields that do not vary. Raises InvalidInput for a knob."""
        names = tuple(name for name in self.plain.rows if name not in self.varied)
        return held_fields(self.plain, names, fixed, self.kind)

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def plans(self, workload: ConvWorkload, arch: Arch) -> Iterable[Planned]:
        """The plans for a layer that can be built."""
        space = self.space(workload, arch, self.kind, {})
        return [space.plan(index) for index in space.valid]

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the space, best estimate first."""
        return _candidates(self, workload, arch)

    def estimate(self, plan: Plan) -> float:
        """A rough cycle count."""
        return self.cycles(cast(Planned, plan))

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """Derived from the estimate."""
        cycles = self.cycles(self.usual_plan(workload, config, arch_named("sm_90a")))
        return min(0.9, max(0.005, self.half / (self.half + cycles)))

    # ---- generating -------------------------------------------------------------------------------------------------

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        return None

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a compiled kernel is rejected, None when it is accepted."""
        return serialized(log) or spilled(local_bytes, self.in_registers)


@cache
def _candidates(family: OneByOneFamily[Any], workload: ConvWorkload, arch: Arch) -> tuple[Configuration, ...]:
    if family.hopeless(workload, arch) is not None:
        return ()
    return tuple(plan.config for plan in sorted(family.plans(workload, arch), key=family.cycles))

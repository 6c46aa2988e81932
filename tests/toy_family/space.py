"""All configurations of a layer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import Enumerated, ListedTable
from subbyte.workload.conv import ConvWorkload
from toy_family.config import ToyConfig
from toy_family.plan import ToyPlan, why_not
from toy_family.types import other_types

KIND = "toy"


@dataclass(frozen=True)
class ToySpace(ListedTable):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str = KIND

    def config(self, index: int) -> ToyConfig:
        """The configuration at an index. Raises InvalidInput."""
        return ToyConfig().with_values({**self.values_at(index), **self.fixed})

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput."""
        index, weight = 0, 1
        for name, values in self.knobs.items():
            value = config.to_dict().get(name)
            if value not in values:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space")
            index += values.index(value) * weight
            weight *= len(values)
        return index

    def plan(self, which: int | Configuration, /) -> ToyPlan:
        """The plan of a configuration, given itself or by its index."""
        config = which if isinstance(which, ToyConfig) else self.config(which)  # type: ignore[arg-type]
        return plan_of(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused, None when it is valid."""
        return why_not(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why nothing can be built, None when something may."""
        return other_types(self.workload)

    @cached_property
    def _enumerated(self) -> Enumerated:
        reasons = {index: self.check(index) for index in range(len(self))}
        refused = Counter(reason.split(":")[0] for reason in reasons.values() if reason)
        return tuple(index for index, reason in reasons.items() if reason is None), dict(refused)

    @cached_property
    def index_hash(self) -> str:
        """Changes with what an index means."""
        data: list[Any] = [
            self.workload.spec,
            self.arch.name,
            {k: list(v) for k, v in self.knobs.items()},
            dict(self.fixed),
        ]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]

    @cached_property
    def hash(self) -> str:
        """Changes with what an index means and with the constraints."""
        return hashlib.sha256(f"{self.index_hash} {self.valid}".encode()).hexdigest()[:16]


def plan_of(workload: ConvWorkload, config: ToyConfig, arch: Arch) -> ToyPlan:
    """The plan with the output's whole range."""
    output = workload.precision.output
    return ToyPlan(workload, config, arch, output.name, (output.least, output.largest))


def held(fixed: Mapping[str, object]) -> dict[str, Value]:
    """The switch, with another value where ``fixed`` has one. Raises InvalidInput for anything else."""
    for name in fixed:
        if name != "layout":
            raise InvalidInput(f"{name!r} cannot be fixed in a toy space: {did_you_mean(name, ('layout',))}")
    return {"layout": ToyConfig().with_values(fixed).layout}

"""All configurations of a layer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.families.shared.planes.config import KNOBS, PlaneConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import Enumerated, ListedTable, listed
from subbyte.workload.conv import ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS

if TYPE_CHECKING:
    from subbyte.device.arch import Arch
    from subbyte.families.shared.planes.family import PlaneFamily

CHUNKS = (1, 2, 4, 8)


@dataclass(frozen=True)
class PlaneSpace(ListedTable):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    family: PlaneFamily
    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str

    def config(self, index: int) -> PlaneConfig:
        """The configuration with this index. Raises InvalidInput."""
        return self.family.usual.with_values({**self.values_at(index), **self.fixed})

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that is not of this space."""
        index, weight = 0, 1
        if not self.family.owns(config):
            name = type(self.family.usual).__name__
            raise InvalidInput(f"configuration {shown(config)}: expected a {name}, such as {name}(chunk=2)")
        for name, choices in self.knobs.items():
            value = getattr(config, name)
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
            index += choices.index(value) * weight
            weight *= len(choices)
        for name, held in self.fixed.items():
            if getattr(config, name) != held:
                raise InvalidInput(f"{name}={getattr(config, name)}: held at {held} in this space")
        return index

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

    @cached_property
    def _enumerated(self) -> Enumerated:
        reasons = {index: self.check(index) for index in range(len(self))}
        refused = Counter(reason.split(":")[0] for reason in reasons.values() if reason)
        return tuple(index for index, reason in reasons.items() if reason is None), dict(refused)

    @cached_property
    def index_hash(self) -> str:
        """Changes with what an index means."""
        knobs = {name: list(values) for name, values in self.knobs.items()}
        data = [self.workload.spec, self.arch.name, self.kind, knobs, dict(self.fixed)]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]

    @cached_property
    def hash(self) -> str:
        """Changes with what an index means and with the constraints."""
        return hashlib.sha256(f"{self.index_hash} {self.valid}".encode()).hexdigest()[:16]


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

"""All configurations of a layer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.rules import hopeless, why_not
from subbyte.families.bits.tiles import PAIR_CHANNELS
from subbyte.families.shared.flat_view import flat_view
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import Enumerated, ListedTable, listed
from subbyte.workload.conv import ConvWorkload, ceil_div

KIND = "bits"
HELD = ("dependent_launch", "stagger")
"""Fields that do not vary."""


@dataclass(frozen=True)
class BitsSpace(ListedTable):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str = KIND

    def config(self, index: int) -> BitsConfig:
        """The configuration with this index. Raises InvalidInput."""
        return BitsConfig().with_values({**self.values_at(index), **self.fixed})

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that is not of this space."""
        index, weight = 0, 1
        if not isinstance(config, BitsConfig):
            raise InvalidInput(f"configuration {shown(config)}: expected a BitsConfig, such as BitsConfig(tile_rows=2)")
        for name, choices in self.knobs.items():
            value = getattr(config, name)
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
            index += choices.index(value) * weight
            weight *= len(choices)
        for name, value in self.fixed.items():
            if getattr(config, name) != value:
                raise InvalidInput(f"{name}={getattr(config, name)}: held at {value} in this space")
        return index

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


def plan_of(
    workload: ConvWorkload, config: BitsConfig, arch: Arch, output: str | None = None, requant: str = "fixed"
) -> BitsPlan:
    """The plan that gives the output type, or ``output``."""
    given = workload.precision.output.name if output is None else output
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
    }


def held_fields(fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    for name in fixed:
        if name not in HELD:
            raise InvalidInput(f"{name!r} cannot be fixed in a bits space: {did_you_mean(name, HELD)}")
    base = BitsConfig().with_values(fixed)
    return {name: getattr(base, name) for name in HELD}

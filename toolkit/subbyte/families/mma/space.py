"""A space: all combinations of the knobs' values for one workload and architecture, with the reason for each
refusal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.families.mma.config import SWITCHES, MmaConfig
from subbyte.families.mma.enumeration import SAME, plainest, sort_out
from subbyte.families.mma.plan import Plan
from subbyte.families.mma.rules import hopeless, why_not
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import Enumerated, ListedTable, listed
from subbyte.workload import ConvWorkload

HELD = (*SWITCHES, "atom")
"""Fields of a configuration that a space holds fixed."""


@dataclass(frozen=True)
class Space(ListedTable):
    """All configurations for a workload on an architecture. Index = mixed radix over ``knobs``, first knob fastest.

    ``fixed`` holds the fields that do not vary: switches and atom.
    """

    workload: ConvWorkload
    arch: Arch
    kind: str
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]

    def config(self, index: int) -> MmaConfig:
        """The configuration with this index. Raises InvalidInput when it is not an integer or out of range."""
        held: Mapping[str, Any] = self.fixed
        return MmaConfig(**self.values_at(index), **held)

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that does not belong to this space."""
        index, weight = 0, 1
        if not isinstance(config, MmaConfig):
            raise InvalidInput(f"configuration {shown(config)}: expected an MmaConfig, such as MmaConfig(chunk=2)")
        for name, choices in self.knobs.items():
            value = getattr(config, name)
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
            index += choices.index(value) * weight
            weight *= len(choices)
        other = self.config(index)
        if other != config:
            names = [name for name in other.to_dict() if getattr(other, name) != getattr(config, name)]
            said = ", ".join(f"{name}={getattr(config, name)} (here {getattr(other, name)})" for name in names)
            raise InvalidInput(f"configuration is not of the {self.kind} space: {said}")
        return index

    def plan(self, which: int | Configuration, /) -> Plan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        if isinstance(which, MmaConfig):
            return Plan(self.workload, which, self.arch)
        return Plan(self.workload, self.config(cast(int, which)), self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid.

        Either it cannot be built (:mod:`subbyte.families.mma.rules`), or an earlier one of the space builds the same
        program.
        """
        planned = self.plan(which)
        reason = why_not(planned)
        if reason is None and (plain := plainest(planned, self.knobs)) != planned.config:
            reason = f"{SAME}: builds the same program as {plain.key}"
        return reason

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may. Cheap."""
        return hopeless(self.workload, self.arch)

    @cached_property
    def _enumerated(self) -> Enumerated:
        valid, refused = sort_out(self.workload, self.arch, self.knobs, self.fixed)
        return tuple(valid.tolist()), dict(refused)

    @cached_property
    def index_hash(self) -> str:
        """Hexadecimal digest of everything an index depends on: workload, architecture, knobs and fixed fields."""
        data = {
            "workload": self.workload.spec,
            "arch": self.arch.name,
            "kind": self.kind,
            "knobs": {name: list(values) for name, values in self.knobs.items()},
            "fixed": dict(self.fixed),
        }
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]

    @cached_property
    def hash(self) -> str:
        """Hexadecimal digest of the meaning of an index and of the constraints: of ``index_hash`` and ``valid``."""
        return space_hash(self.index_hash, self.valid)


def held_fields(fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    for name in fixed:
        if name not in HELD:
            raise InvalidInput(f"{name!r} cannot be fixed in a space: {did_you_mean(name, HELD)}")
    base = MmaConfig().with_values(fixed)
    return {name: getattr(base, name) for name in HELD}


def space_hash(index_hash: str, valid: Sequence[int]) -> str:
    """:attr:`Space.hash` of a space with this ``index_hash`` whose constraints leave ``valid`` (ascending)."""
    return hashlib.sha256(f"{index_hash} {','.join(map(str, valid))}".encode()).hexdigest()[:16]

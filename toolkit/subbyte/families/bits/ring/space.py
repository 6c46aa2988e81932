"""The space of all rings for a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring.rules import hopeless_layer
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.shared.one_by_one.space import OneByOneSpace, Planner
from subbyte.spaces.configuration import Configuration
from subbyte.workload.conv import ConvWorkload

KIND = "bits-ring"
KNOBS: Mapping[str, tuple[int, ...]] = {
    "channels": (32, 64, 128, 256),
    "consumers": (1, 2, 4),
    "depth": (2, 4, 8, 16),
    "stages": (2, 4, 8),
    "share_weights": (1, 2, 4),
    "share_pixels": (1, 2),
}
"""The values in the space, for every layer."""
HELD = ("lead",)
"""Fields that do not vary, in addition to those of all spaces of the family: measurements showed no gain."""


@dataclass(frozen=True)
class RingSpace(OneByOneSpace[BitsPlan]):
    """The space of rings, for layers that are matrix products."""

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return self.hopeless or self.family.check(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may."""
        return hopeless_layer(self.workload, self.arch)


def ring_space(family: Planner[BitsPlan], workload: ConvWorkload, arch: Arch, held: Mapping[str, object]) -> RingSpace:
    """The rings of a layer; ``held`` are the fields that spaces of the family hold fixed. Raises InvalidInput for a
    field that rings do not have."""
    foreign = {name: value for name, value in held.items() if name not in RingConfig.rows}
    changed = [name for name, value in foreign.items() if value != getattr(RingConfig, name)]
    if changed:
        raise InvalidInput(f"{changed[0]}={held[changed[0]]!r}: rings have no such knob; leave it out")
    own = {name: value for name, value in held.items() if name in RingConfig.rows}
    fixed = {name: getattr(RingConfig().with_values(own), name) for name in (*own, *HELD)}
    return RingSpace(family, RingConfig(), workload, arch, KNOBS, fixed, KIND)

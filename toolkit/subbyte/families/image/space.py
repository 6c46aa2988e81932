"""All configurations of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.image.config import ImageConfig
from subbyte.families.image.plan import ImagePlan
from subbyte.families.image.rules import WIDTHS, hopeless, why_not
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.spaces.listed import ListedOneByOne
from subbyte.workload.conv import ConvWorkload

KIND = "wgmma-image"
HELD = ("dependent_launch", "layout")
"""Fields that do not vary."""


@dataclass(frozen=True)
class ImageSpace(ListedOneByOne):
    """An index is a mixed radix over ``knobs``, the first varying fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, Value]
    kind: str = KIND

    def config(self, index: int) -> ImageConfig:
        """The configuration with this index. Raises InvalidInput."""
        return ImageConfig().with_values({**self.values_at(index), **self.fixed})

    @property
    def usual(self) -> ImageConfig:
        """A configuration of its kind."""
        return ImageConfig()

    def plan(self, which: int | Configuration, /) -> ImagePlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, ImageConfig) else self.config(cast(int, which))
        return ImagePlan(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration is refused ("kind: details"), None when it is valid."""
        return why_not(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may."""
        return hopeless(self.workload, self.arch)


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """What the space offers for a layer."""
    places = workload.p * (workload.q + workload.s)
    return {
        "pixels": tuple(n for n in WIDTHS if n <= min(128, max(8, places + 8))),
        "filter_warpgroups": (1, 2),
        "channel_warpgroups": (1, 2, 4),
        "cluster_split_k": (1, 2, 4, 8),
        "in_flight": (1, 2, 4),
    }


def held_fields(fixed: Mapping[str, object]) -> dict[str, Value]:
    """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""
    for name in fixed:
        if name not in HELD:
            raise InvalidInput(f"{name!r} cannot be fixed in a {KIND} space: {did_you_mean(name, HELD)}")
    base = ImageConfig().with_values(fixed)
    return {name: getattr(base, name) for name in HELD}

"""The knobs and values that the space of a layer varies."""

from __future__ import annotations

from collections.abc import Mapping

from subbyte.device.arch import Arch
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.bits.rules import multiplies_whole
from subbyte.families.bits.tiles import PAIR_CHANNELS
from subbyte.families.shared.flat_view import flat_view
from subbyte.families.shared.one_by_one import space as one_by_one
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload, ceil_div

KIND = "bits"
HELD = ("dependent_launch", "stagger", "counted", "row_parts")
"""Fields that do not vary."""


def plan_of(
    workload: ConvWorkload,
    config: BitsConfig | RingConfig,
    arch: Arch,
    output: str | None = None,
    requant: str = "fixed",
) -> BitsPlan:
    """The plan for the workload's output type, or for ``output``."""
    given = workload.precision.output.name if output is None else output
    if isinstance(config, RingConfig):
        return RingPlan(workload, config, arch, given, requant=requant)
    return BitsPlan(workload, config, arch, given, requant=requant)


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """The value lists for a layer."""
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
    return one_by_one.held_fields(BitsConfig(), HELD, fixed, KIND)

"""The schedule of the kernel whose blocks make a single tile iteration, with bulk-copied weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from subbyte.families.wgmma.config import (
    CONSUMERS_M,
    CONSUMERS_N,
    IN_FLIGHT,
    LAYOUT,
    PACKING,
    SEGMENTS,
    SPLIT_K,
    SWITCH_VALUES,
    UNROLL,
    WIDTH,
    WgmmaConfig,
)
from subbyte.families.wgmma.schedule import Schedule
from subbyte.renamed import former_name
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import choice, flag, knob, switch, whole


@configuration
class SingleTileConfig(WgmmaConfig):
    """A schedule of the wgmma kernel whose blocks make a single tile iteration (sm_90a).

    Weights come into shared memory by bulk copies, and no buffer is reused: every input row of the block has its own
    stage.
    """

    prefix: ClassVar[str] = "wgs-"

    tile_width: int = knob("tw", whole(), WIDTH, default=28, always=True)
    tile_rows: int = knob("tr", whole(), "fragment rows of a block's tile; they share weights", default=1, always=True)
    consumers_m: int = knob("cm", whole(), CONSUMERS_M, default=1, always=True)
    consumers_n: int = knob("cn", whole(), CONSUMERS_N, default=1)
    segments: int = knob("sg", whole(), SEGMENTS, default=1, always=True)
    cluster_split_k: int = knob("sk", whole(), SPLIT_K, default=1)
    multicast: int = knob(
        "mc", whole(), "blocks of a cluster that need the same weights: each sends a share to all of them", default=1,
        always=True,
    )  # fmt: skip
    unroll: int = knob("un", whole(), UNROLL, default=1)
    in_flight: int = knob("if", whole(), IN_FLIGHT, default=1)
    dependent_launch: int = knob(
        "pdl", flag(), "programmatic dependent launch: 1 = a launch may start before the preceding one has ended",
        default=1,
    )  # fmt: skip
    weights_ahead: int = knob(
        "wa", whole(0),
        "n > 0 = a fragment's weights are read from shared memory when the n-th before it is unpacked; 0 = all of a "
        "loop body at its start",
        default=0,
    )  # fmt: skip
    parameters: int = knob(
        "pa", whole(0, 2),
        "when a consumer loads its requantization parameters: 0 = after its first row's loads; 1 = late, after that "
        "row's arrival; 2 = early, before it waits for the preceding launch, and its sums start from them",
        default=0,
    )  # fmt: skip
    early_start: int = knob(
        "es", whole(0, 2),
        "1 = consumers read the first weights and meet at one barrier after their rows; 2 = the same, and the only "
        "consumer and the producer load half of the first row each; 0 = rows are counted one by one",
        default=0,
    )  # fmt: skip
    duplicate_aware: str = switch(
        "dup.", choice(*SWITCH_VALUES["duplicate_aware"]), "full: this kernel has no other way", default="full"
    )
    register_packing: bool = switch("rp", choice(*SWITCH_VALUES["register_packing"]), PACKING, default=True)
    layout: str = switch("", choice(*SWITCH_VALUES["layout"]), LAYOUT, default="nhwcnc")

    @property
    def schedule(self) -> Schedule:
        """The same choices as geometry, memory and emitter need them."""
        return self.scheduled(late_parameters=int(self.parameters == 1), early_parameters=int(self.parameters == 2))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Supports a name from earlier versions."""
        return former_name(__name__, name)

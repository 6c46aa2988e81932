"""The schedule of a matrix product on one-bit warpgroup products whose depth is processed in stages."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import flag, knob, whole


@configuration
class RingConfig(Configuration):
    """A schedule of the bits family for deep reductions (wgmma b1, sm_90a)."""

    prefix: ClassVar[str] = "bitring-"

    channels: int = knob("oc", whole(32, 256), "output channels of a block, and of an instruction", default=128,
                         always=True)  # fmt: skip
    consumers: int = knob("co", whole(1, 4), "warpgroups that multiply; each has a tile of 8 pixels", default=2,
                          always=True)  # fmt: skip
    depth: int = knob("dp", whole(2, 16), "blocks of 128 input channels of a stage", default=4, always=True)
    stages: int = knob("sg", whole(2, 32), "stages of the ring", default=4, always=True)
    share_weights: int = knob(
        "sw", whole(1, 4), "neighbouring blocks of a cluster that copy weights to one another", default=1
    )
    share_pixels: int = knob(
        "sp", whole(1, 4), "neighbouring blocks of a cluster that copy activations to one another", default=1
    )
    lead: int = knob(
        "le", whole(0, 8), "stages that the first warpgroup is ahead, so that one multiplies while the other compares",
        default=0,
    )  # fmt: skip
    dependent_launch: int = knob("pdl", flag(), "1 = may start before the kernel before it has ended", default=1)

    # only tiles of a staged map can have these, not those of a ring
    tile_rows: ClassVar[int] = 1
    turn_rows: ClassVar[int] = 1
    run_on: ClassVar[int] = 0
    row_parts: ClassVar[int] = 1
    doubled: ClassVar[int] = 0
    stagger: ClassVar[int] = 0
    counted: ClassVar[int] = 0
    paired_rows: ClassVar[int] = 0
    whole_values: ClassVar[int] = 0

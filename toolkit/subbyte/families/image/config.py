"""The schedule of a kernel whose columns are pixels of one image."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import choice, flag, knob, switch, whole


@configuration
class ImageConfig(Configuration):
    """A schedule of the image family (wgmma s8, sm_90a): the columns of an instruction are neighbouring pixels of one
    image, so that a batch of one does not pay for eight. A block computes one tile and ends."""

    prefix: ClassVar[str] = "wgi-"

    pixels: int = knob(
        "px", whole(8, 256), "pixels of one image that a block computes: the columns of one instruction", default=32,
        always=True,
    )  # fmt: skip
    filter_warpgroups: int = knob(
        "fw", whole(1, 4), "warpgroups along the output channels, 64 each", default=1, always=True
    )
    channel_warpgroups: int = knob(
        "cw", whole(1, 8), "warpgroups of a block that share the input channels of a tile and add up in shared memory",
        default=1, always=True,
    )  # fmt: skip
    cluster_split_k: int = knob(
        "sk", whole(1, 8), "blocks of a cluster that share the input channels of a tile and add up in distributed "
        "shared memory", default=1,
    )  # fmt: skip
    in_flight: int = knob(
        "if", whole(1, 7), "instruction groups that may be unfinished while the next operand is prepared", default=2
    )
    dependent_launch: int = knob("pdl", flag(), "1 = may start before the kernel before it has ended", default=1)
    layout: str = switch("", choice("nhwcnc", "nhwc"), "of activations and outputs in memory", default="nhwcnc")

    @property
    def ways(self) -> int:
        """Warpgroups, over all blocks of a cluster, that share the input channels of a tile."""
        return self.channel_warpgroups * self.cluster_split_k

    @property
    def warpgroups(self) -> int:
        """Warpgroups per block; all of them load, multiply and store."""
        return self.filter_warpgroups * self.channel_warpgroups

    @property
    def threads(self) -> int:
        """Threads per block."""
        return 128 * self.warpgroups

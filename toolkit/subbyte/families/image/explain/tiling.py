"""How a kernel for one image divides a convolution: blocks, warpgroups, instructions."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from subbyte.errors import InvalidInput
from subbyte.families.image.plan import TILE_FILTERS, ImagePlan
from subbyte.families.image.rules import why_not
from subbyte.info_record import InfoRecord, Table
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload


@dataclass(frozen=True)
class ImageLevel:
    """One level of the tiling. ``count``: how many of it the level above contains; ``pixels`` of one image,
    ``channels`` output channels, ``depth`` positions of K (taps and input channels)."""

    name: str
    count: int
    pixels: int
    channels: int
    depth: int


@dataclass(frozen=True)
class ImageTiling(InfoRecord):
    """The levels of one kernel, from the whole layer down. ``pitch`` is the number of places from one row of pixels to
    the next; ``threads`` and ``shared_bytes`` are per block."""

    workload: ConvWorkload
    config: str
    arch: str
    instruction: str
    levels: tuple[ImageLevel, ...]
    pitch: int
    threads: int
    shared_bytes: int

    def title(self) -> str:
        """One line that names what the record shows."""
        return (
            f"tiling of {self.workload.label} ({self.config}): {prod(one.count for one in self.levels[1:3]):,} blocks "
            f"({self.instruction})"
        )

    def table(self) -> Table:
        """One row per level."""
        names = ("level", "of the level above", "pixels", "output channels", "positions of K")
        return Table(names, tuple((one.name, one.count, one.pixels, one.channels, one.depth) for one in self.levels))

    def text(self) -> str:
        """The levels, and the order of the pixels."""
        lines = (
            f"a block: {self.threads} threads; shared memory: {self.shared_bytes:,} bytes",
            f"a row of pixels begins {self.pitch} places behind the one before; an instruction's go on across rows",
        )
        return "\n".join([super().text(), "", *lines])


def image_tiling(plan: ImagePlan) -> ImageTiling:
    """The levels of a plan. Raises InvalidInput with the reason for a plan that is rejected."""
    if reason := why_not(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )
    w, config, taps = plan.workload, plan.config, plan.workload.r * plan.workload.s
    depth, pixels = taps * w.channel_blocks * CHANNEL_BLOCK, config.pixels
    share, own = taps * plan.block_channels * CHANNEL_BLOCK, taps * plan.part_channels * CHANNEL_BLOCK
    levels = (
        ImageLevel("layer", 1, w.n * w.p * w.q, w.k, depth),
        ImageLevel("image", w.n, w.p * w.q, w.k, depth),
        ImageLevel("block", plan.blocks // w.n, pixels, plan.columns, share),
        ImageLevel("warpgroup", config.warpgroups, pixels, TILE_FILTERS, own),
        ImageLevel("instruction", plan.fragments * plan.halves, pixels, TILE_FILTERS, CHANNEL_BLOCK),
    )
    return ImageTiling(
        w, config.key, plan.arch.name, plan.atom.name, levels, plan.pitch, config.threads, plan.shared_bytes
    )

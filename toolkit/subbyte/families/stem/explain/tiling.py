"""How a kernel for few input channels divides a convolution: turns of warpgroups, tiles of pixels, steps of K."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from subbyte.errors import InvalidInput
from subbyte.families.stem.plan import STEP_BYTES, StemPlan
from subbyte.families.stem.rules import why_not
from subbyte.info_record import InfoRecord, Table
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload


@dataclass(frozen=True)
class StemLevel:
    """One level of the tiling. ``count``: how many of it the level above contains; ``rows`` by ``columns`` output
    pixels of ``images`` images, ``channels`` output channels, ``depth`` positions of K (taps and channels of a window,
    and padding)."""

    name: str
    count: int
    rows: int
    columns: int
    images: int
    channels: int
    depth: int


@dataclass(frozen=True)
class StemTiling(InfoRecord):
    """The levels of one kernel, from the whole layer down; sizes are those of a turn that no border cuts.

    ``useful`` positions of K are taps and channels of the window; in each of ``blocks``, each of ``warpgroups``
    computes ``turns`` turns; ``shared_bytes`` is per block."""

    workload: ConvWorkload
    config: str
    arch: str
    instruction: str
    levels: tuple[StemLevel, ...]
    useful: int
    blocks: int
    warpgroups: int
    turns: int
    shared_bytes: int

    @property
    def instructions(self) -> int:
        """Matrix instructions of a turn that no border cuts."""
        return prod(level.count for level in self.levels[2:])

    def title(self) -> str:
        """One line that names what the record shows."""
        return (
            f"tiling of {self.workload.label} ({self.config}): {self.levels[1].count:,} turns, K of "
            f"{self.useful} taps and channels in {self.levels[-1].count} steps ({self.instruction})"
        )

    def table(self) -> Table:
        """One row per level."""
        names = ("level", "of the level above", "pixels", "images", "output channels", "positions of K")
        return Table(
            names,
            tuple(
                (one.name, one.count, f"{one.rows} x {one.columns}", one.images, one.channels, one.depth)
                for one in self.levels
            ),
        )

    def text(self) -> str:
        """The levels, and the contents of K."""
        depth = self.levels[-1].count * STEP_BYTES
        shares = f"{self.blocks:,} blocks of {self.warpgroups} warpgroups, each of {self.turns} turns"
        lines = (
            f"{shares}; shared memory of a block: {self.shared_bytes:,} bytes",
            f"{self.instructions:,} instructions in a turn that no border cuts",
            f"{self.useful} of {depth} positions of K are taps and channels of a window: subbyte explain sharedk",
        )
        return "\n".join([super().text(), "", *lines])


def stem_tiling(plan: StemPlan) -> StemTiling:
    """The levels of a plan. Raises InvalidInput with the reason for a plan that is rejected."""
    if reason := why_not(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )
    w, config, steps = plan.workload, plan.config, plan.strings.steps
    depth, width, channels = steps * STEP_BYTES, plan.tile[1], config.filters
    levels = (
        StemLevel("layer", 1, w.p, w.q, w.n, w.k, w.r * w.s * w.c),
        StemLevel("turn", plan.all_turns * plan.slices, config.turn_rows, width, BATCH_GROUP, channels, depth),
        StemLevel("row", config.turn_rows, 1, width, BATCH_GROUP, channels, depth),
        StemLevel("tile", plan.tiles, 1, width // plan.tiles, BATCH_GROUP, channels, depth),
        StemLevel("step", steps, 1, width // plan.tiles, BATCH_GROUP, channels, STEP_BYTES),
    )
    return StemTiling(
        w, config.key, plan.arch.name, plan.atom.name, levels, w.r * w.s * w.c, plan.blocks, config.consumers,
        config.turns, plan.shared_bytes,
    )  # fmt: skip

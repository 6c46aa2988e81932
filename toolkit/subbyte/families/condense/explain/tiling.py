"""How a kernel that finds zeros divides a matrix product: blocks, warps, tiles, and the steps of a tile without
zeros."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from subbyte.errors import InvalidInput
from subbyte.families.condense.config import PANEL
from subbyte.families.condense.estimate import TILE_ROWS
from subbyte.families.condense.plan import CondensePlan
from subbyte.families.condense.rules import why_not
from subbyte.info_record import InfoRecord, Table
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload


@dataclass(frozen=True)
class CondenseLevel:
    """One level of the tiling. ``count``: how many of it the level above contains; ``rows`` (pixels times images) by
    ``columns`` (output channels) by ``depth`` positions of K."""

    name: str
    count: int
    rows: int
    columns: int
    depth: int


@dataclass(frozen=True)
class CondenseTiling(InfoRecord):
    """The levels of one kernel, from the whole product down; sizes are those of a block that no border cuts.

    ``chunks``: stages of K, each of ``chunk`` blocks of 32 positions; ``sharing``: lanes that share their positions;
    ``threads`` and ``shared_bytes`` are per block."""

    workload: ConvWorkload
    config: str
    arch: str
    instruction: str
    levels: tuple[CondenseLevel, ...]
    chunks: int
    chunk: int
    sharing: int
    threads: int
    shared_bytes: int

    @property
    def instructions(self) -> int:
        """Matrix instructions of a block that no border cuts, if nothing can be skipped."""
        return prod(level.count for level in self.levels[2:])

    def title(self) -> str:
        """One line that names what the record shows."""
        whole, block = self.levels[:2]
        return (
            f"tiling of {self.workload.label} ({self.config}): a product of {whole.rows:,} x {whole.depth:,} by "
            f"{whole.depth:,} x {whole.columns:,} in {block.count:,} blocks ({self.instruction})"
        )

    def table(self) -> Table:
        """One row per level."""
        names = ("level", "of the level above", "pixels x images", "output channels", "positions of K")
        return Table(names, tuple((one.name, one.count, one.rows, one.columns, one.depth) for one in self.levels))

    def text(self) -> str:
        """The levels, and the effect of zeros."""
        lanes = "a lane takes each 32nd" if self.sharing == 1 else f"{self.sharing} lanes share each 16th"
        lines = (
            f"a block: {self.threads} threads; shared memory: {self.shared_bytes:,} bytes",
            f"K comes in {self.chunks:,} chunks of {self.chunk} times {CHANNEL_BLOCK} positions",
            f"{self.instructions:,} instructions in a block that no border cuts, were no position of K left out",
            f"of the positions of a chunk {lanes}; a tile takes as many steps as the lane with the most that are live",
            "what zeros leave of them: subbyte explain condense",
        )
        return "\n".join([super().text(), "", *lines])


def condense_tiling(plan: CondensePlan) -> CondenseTiling:
    """The levels of a plan. Raises InvalidInput with the reason for a plan that is rejected."""
    if reason := why_not(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )
    w, config, (blocks, column_blocks, _) = plan.workload, plan.config, plan.launch.grid
    depth = w.channel_blocks * CHANNEL_BLOCK
    m, n, k = BATCH_GROUP * plan.atom.pixels, 8, CHANNEL_BLOCK * plan.atom.blocks
    levels = (
        CondenseLevel("product", 1, plan.pixels * BATCH_GROUP, w.k, w.c),
        CondenseLevel("block", blocks * column_blocks, TILE_ROWS * config.row_warps, plan.columns, depth),
        CondenseLevel("warp", config.warps, TILE_ROWS, PANEL * config.panels, depth),
        CondenseLevel("tile", config.panels * plan.panel_tiles, TILE_ROWS, config.tile_columns, depth),
        CondenseLevel("step without zeros", w.channel_blocks, TILE_ROWS, config.tile_columns, k),
        CondenseLevel("instruction", TILE_ROWS // m * config.tile_columns // n, m, n, k),
    )
    return CondenseTiling(
        w, config.key, plan.arch.name, plan.atom.name, levels, plan.chunks, config.chunk, config.sharing,
        config.threads, plan.shared_bytes,
    )  # fmt: skip

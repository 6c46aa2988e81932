"""How a kernel of the wgmma family divides the matrix product: blocks, tile iterations, warpgroups, instructions.

Here output channels are the rows of the product, pixels times images its columns. Everything is read from the same plan
as the generated kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.errors import Unsupported
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.info_record import InfoRecord, Table
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ceil_div

INSTRUCTION_CHANNELS = 64
ITERATION = "tile iteration"
WRITTEN = "pass"
"""The name of a tile iteration in ``--json``, kept from earlier versions."""


@dataclass(frozen=True)
class WarpgroupLevel:
    """One level of the tiling. ``count``: how many of it the level above contains; ``channels`` output channels by
    ``columns`` (pixels times images) by ``depth`` (kernel offsets times input channels)."""

    name: str
    count: int
    channels: int
    columns: int
    depth: int


@dataclass(frozen=True)
class WarpgroupTiling(InfoRecord):
    """The levels of one kernel, from the whole product down; sizes are those of a block inside the image.

    ``block_pixels``: rows and columns of output pixels per block; ``loading`` warpgroups fetch for those that
    multiply; ``cluster`` blocks run together.
    """

    workload: str
    spec: str
    config: str
    arch: str
    instruction: str
    levels: tuple[WarpgroupLevel, ...]
    block_pixels: tuple[int, int]
    images: int
    threads: int
    loading: int
    cluster: int
    registers: tuple[int, int]
    shared_bytes: int

    @property
    def instructions(self) -> int:
        """Matrix instructions of a block that no border cuts."""
        _, _, *inside = self.levels
        product = 1
        for level in inside:
            product *= level.count
        return product

    def title(self) -> str:
        """One line that names what the record shows."""
        whole, block = self.levels[:2]
        return (
            f"tiling of {self.workload} ({self.config}): a product of {whole.channels:,} x {whole.depth:,} by "
            f"{whole.depth:,} x {whole.columns:,} in {block.count:,} blocks ({self.instruction})"
        )

    def table(self) -> Table:
        """One row per level."""
        names = ("level", "of the level above", "output channels", "pixels x images", "depth")
        rows = ((one.name, one.count, one.channels, one.columns, one.depth) for one in self.levels)
        return Table(names, tuple(rows))

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON; a tile iteration is called ``pass``."""
        made = super().to_dict()
        levels = [{**one, "name": WRITTEN if one["name"] == ITERATION else one["name"]} for one in made["levels"]]
        return {**made, "levels": levels}

    def text(self) -> str:
        """The levels, and the composition of a block."""
        rows, columns = self.block_pixels
        together = f"; {self.cluster} blocks in a cluster" if self.cluster > 1 else ""
        pixels = f"a block: {rows} x {columns} output pixels of {self.images} images"
        groups = f"{self.threads} threads, of them {self.loading} warpgroup(s) that load{together}"
        registers = "registers of a thread: {} where it multiplies, {} where it loads".format(*self.registers)
        lines = (
            f"{pixels}; {groups}",
            f"{registers}; shared memory: {self.shared_bytes:,} bytes",
            f"{self.instructions:,} matrix instructions in a block that no border cuts",
        )
        return "\n".join([super().text(), "", *lines])


def warpgroup_tiling(plan: WgmmaPlan) -> WarpgroupTiling:
    """How a plan divides its workload. Raises Unsupported with the reason for one that cannot be built."""
    found, target = plan.workload, plan.arch
    if reason := why_not(plan):
        raise Unsupported(f"{found.label} with {plan.config.key} on {target.name} cannot be built: {reason}")
    rows = max(plan.segment_end(segment) - plan.segment_start(segment) for segment in range(plan.knobs.segments))
    c = plan.knobs
    return WarpgroupTiling(
        found.label, found.spec, plan.config.key, target.name, plan.atom.name, tuple(_levels(plan, rows)),
        (rows, plan.width_covered), BATCH_GROUP * c.image_groups, c.threads, c.producers,
        plan.launch.cluster, plan.registers, plan.shared_bytes,
    )  # fmt: skip


def _levels(plan: WgmmaPlan, rows: int) -> list[WarpgroupLevel]:
    w, c = plan.workload, plan.knobs
    images, depth = BATCH_GROUP * c.image_groups, w.r * w.s * plan.channel_blocks * CHANNEL_BLOCK
    share = depth // c.cluster_split_k
    deep = CHANNEL_BLOCK * plan.atom.blocks
    along = w.r * w.s * plan.steps * plan.halves * c.channel_groups // plan.atom.blocks  # an odd block is padded
    row = plan.row_pixels * BATCH_GROUP
    iterations = ceil_div(rows, c.tile_rows * c.consumers_rows) * c.m_iterations
    iteration_rows, width = c.tile_rows * c.consumers_rows, plan.width_covered
    return [
        WarpgroupLevel("product", 1, w.k, w.p * w.q * w.batch_groups * BATCH_GROUP, depth),
        WarpgroupLevel("block", plan.grid_blocks, plan.filters * c.m_iterations, rows * width * images, share),
        WarpgroupLevel(ITERATION, iterations, plan.filters, iteration_rows * width * images, share),
        WarpgroupLevel("warpgroup", c.consumers, INSTRUCTION_CHANNELS * c.tiles_m, c.tile_rows * row, share),
        WarpgroupLevel("instruction", c.tile_rows * c.tiles_m * along, INSTRUCTION_CHANNELS, row, deep),
    ]  # fmt: skip

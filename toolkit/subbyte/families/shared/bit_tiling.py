"""How a kernel on bit planes divides the matrix product: levels from the whole down to one instruction.

Here pixels times images are the rows of the product, output channels its columns, kernel offsets times input channels
its depth, in values; an instruction takes one plane of either side. Each family reads its levels from the plan that its
kernels use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from subbyte.families.base import Plan
from subbyte.info_record import InfoRecord, Table
from subbyte.workload.conv import BATCH_GROUP


@dataclass(frozen=True)
class BitLevel:
    """One level of the tiling. ``count``: how many of it the level above contains; ``rows`` (pixels times images) by
    ``channels`` (output channels) by ``depth`` values, with ``pairs`` of planes multiplied."""

    name: str
    count: int
    rows: int
    channels: int
    depth: int
    pairs: int


@dataclass(frozen=True)
class BitTiling(InfoRecord):
    """The levels of one kernel, from the whole product down; sizes are those of a block inside the image.

    ``block_pixels``: rows and columns of output pixels per block; ``planes`` and ``weight_planes``: bits of an
    activation and of a weight; ``ones``: instructions per block that count the activations' own bits and multiply no
    weights.
    """

    workload: str
    spec: str
    config: str
    arch: str
    instruction: str
    levels: tuple[BitLevel, ...]
    block_pixels: tuple[int, int]
    planes: int
    weight_planes: int
    threads: int
    shared_bytes: int
    ones: int

    @property
    def instructions(self) -> int:
        """Instructions of a block that no border cuts, without those of ones."""
        return prod(level.count for level in self.levels[2:])

    def title(self) -> str:
        """One line that names what the record shows."""
        whole, block = self.levels[:2]
        pairs = f", in {whole.pairs} pairs of planes," if whole.pairs > 1 else ""
        return (
            f"tiling of {self.workload} ({self.config}): a product of {whole.rows:,} x {whole.depth:,} by "
            f"{whole.depth:,} x {whole.channels:,}{pairs} in {block.count:,} blocks ({self.instruction})"
        )

    def table(self) -> Table:
        """One row per level."""
        names = ("level", "of the level above", "pixels x images", "output channels", "depth", "pairs of planes")
        rows = ((one.name, one.count, one.rows, one.channels, one.depth, one.pairs) for one in self.levels)
        return Table(names, tuple(rows))

    def text(self) -> str:
        """The levels, and the composition of a block."""
        rows, columns = self.block_pixels
        ones = f", and {self.ones:,} that count the activations' bits" if self.ones else ""
        what = f"{self.levels[-1].name}{'s' * (self.instructions > 1)}"
        shared = f"shared memory: {self.shared_bytes:,} bytes"
        lines = (
            f"a block: {rows} x {columns} output pixels of {BATCH_GROUP} images; {self.threads} threads; {shared}",
            f"{self.instructions:,} {what} in a block that no border cuts{ones}",
        )
        return "\n".join([super().text(), "", *lines])


def bit_tiling(plan: Plan, instruction: str, levels: Sequence[BitLevel], threads: int, ones: int = 0) -> BitTiling:
    """The record of a plan; the level of the whole product is put first."""
    w, types = plan.workload, plan.workload.precision
    whole = BitLevel("product", 1, w.batch_groups * BATCH_GROUP * w.p * w.q, w.k, w.r * w.s * w.c, levels[0].pairs)
    return BitTiling(
        w.label, w.spec, plan.config.key, plan.arch.name, instruction, (whole, *levels), plan.tile,
        types.activations.bits, types.weights.bits, threads, plan.shared_bytes, ones,
    )  # fmt: skip

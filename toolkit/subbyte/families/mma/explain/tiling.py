"""How a convolution becomes a matrix product and how that is divided: block tiles, warp tiles, matrix instructions.

Source: Choi et al. 2022 (arXiv 2202.06819), section 2.1 and Figures 1 and 2. Everything is read from the same
:class:`subbyte.families.mma.plan.Plan` as the generated kernel. The matrix product is ``[M, N, K]`` =
(output pixels times images, output channels, kernel offsets times input channels). Its rows are ordered by (group of 8
images, output row, output column, image), its columns by (block of 32 channels, or of 16 with 8 bits, kernel row,
kernel column, channel): the order of the kernel's operands in memory. A block tile is a rectangle of pixels,
so its rows form *runs*, one for each row of the rectangle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan
from subbyte.families.mma.rules import why_not
from subbyte.info_record import InfoRecord, Table, columns_text, grid_text
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP

Run = tuple[int, int]
"""First and number of consecutive rows, columns or positions."""


@dataclass(frozen=True)
class Band:
    """One row (or column) of block tiles: what it covers along its axis."""

    first: int
    """First output position."""
    outputs: int
    """Output positions inside the map; a band at the edge may have fewer than its tile."""
    reads: tuple[tuple[int, ...], ...]
    """Input position by [position in the tile][kernel position]; outside the map it is zero padding."""


@dataclass(frozen=True)
class WarpTile:
    """What one warp of a block computes."""

    number: int
    pixels: tuple[int, ...]
    """Pixels of the block tile, by their index in it (row by row)."""
    columns: tuple[int, ...]
    """8-channel tiles of the block."""
    share: int
    """Its part of the staged channel blocks, if several warps split them."""


@dataclass(frozen=True)
class Multiply:
    """One matrix instruction of a warp: which of the warp's pixels (8 rows each) and which of its column tiles."""

    pixels: tuple[int, ...]
    column: int


@dataclass(frozen=True)
class Step:
    """One step along K: each instruction of a warp is issued once."""

    iteration: int
    """Main-loop stage that loads its data into shared memory."""
    share: int
    """The warps that execute it, by :attr:`WarpTile.share`."""
    r: int
    s: int
    channel_blocks: tuple[int, ...]
    """Blocks of input channels that one instruction takes at once."""
    columns: tuple[int, ...]
    """First column of the lowered matrix for each of them."""


@dataclass(frozen=True)
class BlockTile(InfoRecord):
    """One block of the launch grid."""

    place: tuple[int, int, int, int]
    """Group of images, row and column of block tiles, block of output channels."""
    outputs: tuple[Run, Run]
    """Output rows and columns inside the map."""
    inputs: tuple[Run, Run]
    """The range of input rows and columns that it reads, without padding."""
    gemm_rows: tuple[Run, ...]
    gemm_columns: Run
    """Output channels, padded ones included."""

    def title(self) -> str:
        """One line that names the block and what it computes."""
        (p, rows), (q, columns) = self.outputs
        return (
            f"block {self.place}: output rows {p} to {p + rows - 1}, columns {q} to {q + columns - 1}, "
            f"channels {self.gemm_columns[0]} to {sum(self.gemm_columns) - 1}"
        )

    def table(self) -> Table:
        """One row per run of rows of the matrix product."""
        return Table(("first row", "rows"), self.gemm_rows)


@dataclass(frozen=True)
class Tiling(InfoRecord):
    """A convolution as a tiled matrix product. Tuples over an axis run in its order."""

    workload: ConvWorkload
    config: MmaConfig
    arch: str
    instruction: str
    shape: tuple[int, int, int]
    """Rows, columns and depth of one matrix instruction, in values of the activations' type."""
    gemm: tuple[int, int, int]
    """M, N and K of the matrix product, true sizes."""
    padded: tuple[int, int, int]
    """M, N and K with images, filters and channels padded to whole tiles."""
    groups: int
    """Groups of 8 images."""
    tile: tuple[int, int]
    warp_tile: tuple[int, int]
    rows: tuple[Band, ...]
    columns: tuple[Band, ...]
    column_blocks: int
    block_channels: int
    """Output channels per block."""
    pixels: tuple[tuple[int, int], ...]
    """Row and column of each pixel of a block tile."""
    warps: tuple[WarpTile, ...]
    multiplies: tuple[Multiply, ...]
    """Instructions of one warp and step; all warps do the same on their own pixels and columns."""
    steps: tuple[Step, ...]
    blocks: int
    iterations: int
    instructions: int
    """Matrix instructions of the whole kernel."""
    useful: float
    """Fraction of the multiplications that the convolution needs; the rest are for edges and padded channels."""

    @property
    def block_depth(self) -> int:
        """Contiguous input channels per block: 32 of four bits, 16 of eight."""
        return self.workload.precision.activations.block

    def block(self, tile: int = 0, column_block: int = 0) -> BlockTile:
        """The block with these coordinates in the launch grid. Raises InvalidInput when there is none."""
        limit = self.blocks // self.column_blocks
        if not (0 <= tile < limit and 0 <= column_block < self.column_blocks):
            raise InvalidInput(
                f"block {tile},{column_block}: the grid has {limit} x {self.column_blocks} blocks, counted from 0,0"
            )
        across, down = len(self.columns), len(self.rows)
        group, i, j = tile // (across * down), tile // across % down, tile % across
        row, column, w = self.rows[i], self.columns[j], self.workload
        runs = tuple(
            (((group * w.p + row.first + p) * w.q + column.first) * BATCH_GROUP, column.outputs * BATCH_GROUP)
            for p in range(row.outputs)
        )
        return BlockTile(
            place=(group, i, j, column_block),
            outputs=((row.first, row.outputs), (column.first, column.outputs)),
            inputs=(_inside(row, w.h), _inside(column, w.w)),
            gemm_rows=runs,
            gemm_columns=(column_block * self.block_channels, self.block_channels),
        )

    def title(self) -> str:
        """One line that names workload, configuration and instruction."""
        m, n, k = self.gemm
        return (
            f"tiling of {self.workload.label}: a product of {m:,} x {k:,} by {k:,} x {n:,} in {self.blocks:,} blocks "
            f"of {self.tile[0]}x{self.tile[1]} pixels and {self.block_channels} channels ({self.instruction})"
        )

    def table(self) -> Table:
        """One row per level, from the whole product to one instruction."""
        m, n, k = self.gemm
        warp = self.warps[0]
        depth = k // self.iterations if self.padded[2] == k else self.padded[2] // self.iterations
        shares = len({w.share for w in self.warps})
        rows = (
            ("product", 1, m, n, k),
            ("block tile", self.blocks, BATCH_GROUP * len(self.pixels), self.block_channels, self.padded[2]),
            ("stage", self.iterations, BATCH_GROUP * len(self.pixels), self.block_channels, depth),
            ("warp tile", len(self.warps), BATCH_GROUP * len(warp.pixels), 8 * len(warp.columns), depth // shares),
            ("instruction", len(self.multiplies) * len(self.steps) // (self.iterations * shares), *self.shape),
        )
        return Table(("level", "of the level above", "rows", "columns", "depth"), rows)

    def text(self, tile: int = 0, column_block: int = 0) -> str:
        """The levels, the share of edges and padding, and one block. Raises InvalidInput when there is no such
        block."""
        note = f"{self.instructions:,} matrix instructions; {self.useful:.1%} of their multiplications are needed"
        return "\n\n".join([self.title(), columns_text(self.table()), note, self.block_text(tile, column_block)])

    def block_text(self, tile: int = 0, column_block: int = 0) -> str:
        """One block in words and as a picture: which warps compute each pixel and each tile of 8 output channels.

        Raises InvalidInput when there is no such block.
        """
        block = self.block(tile, column_block)
        (y, height), (x, width) = block.inputs
        owners: dict[tuple[int, int], list[str]] = {}
        for warp in self.warps:
            for pixel in warp.pixels:
                for column in warp.columns:
                    owners.setdefault((pixel, column), []).append(str(warp.number))
        tiles = range(self.block_channels // 8)
        cells = [["+".join(owners[pixel, column]) for column in tiles] for pixel in range(len(self.pixels))]
        heads = [str(block.gemm_columns[0] + 8 * t) for t in tiles]
        reads = f"reads input rows {y} to {y + height - 1}, columns {x} to {x + width - 1}"
        stages = f"{self.iterations} stages of {len(self.steps) // self.iterations} steps"
        return "\n".join(
            [
                block.title(),
                f"{reads}; in {stages}",
                "which warp computes what, pixels down, first of 8 output channels across:",
                grid_text(heads, [f"({p},{q})" for p, q in self.pixels], cells),
            ]
        )


def tiling(plan: Plan) -> Tiling:
    """The tiles of a plan. Raises InvalidInput with the reason for a plan that the constraints reject."""
    if reason := why_not(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )
    return _record(plan)


def with_block(record: Tiling, block: tuple[int, int]) -> tuple[dict[str, Any], str]:
    """The record with one of its blocks, as the command line prints it. Raises InvalidInput when there is no such
    block."""
    return {**record.to_dict(), "block": record.block(*block).to_dict()}, record.text(*block)


def _record(plan: Plan) -> Tiling:
    w, config, atom = plan.workload, plan.config, plan.atom
    down, across = plan.pixel_tiles
    blocks = w.batch_groups * down * across * plan.column_blocks
    steps, multiplies, warps = _steps(plan), _multiplies(plan), _warps(plan)
    depth = w.precision.activations.block
    shape = (8 * atom.pixels, 8, depth * atom.blocks)
    instructions = blocks * len(multiplies) * len(steps) * len(warps) // config.split_channels
    return Tiling(
        workload=w,
        config=config,
        arch=plan.arch.name,
        instruction=atom.name,
        shape=shape,
        gemm=(w.n * w.p * w.q, w.k, w.r * w.s * w.c),
        padded=(
            w.batch_groups * BATCH_GROUP * w.p * w.q,
            plan.filters,
            w.r * w.s * w.channel_blocks * depth,
        ),
        groups=w.batch_groups,
        tile=plan.tile,
        warp_tile=plan.warp_tile,
        rows=tuple(_band(i, plan.tile[0], w.p, w.r, w) for i in range(down)),
        columns=tuple(_band(j, plan.tile[1], w.q, w.s, w) for j in range(across)),
        column_blocks=plan.column_blocks,
        block_channels=config.columns,
        pixels=tuple((row, column) for row in range(plan.tile[0]) for column in range(plan.tile[1])),
        warps=warps,
        multiplies=multiplies,
        steps=steps,
        blocks=blocks,
        iterations=plan.iterations,
        instructions=instructions,
        useful=w.macs / (instructions * shape[0] * shape[1] * shape[2]),
    )


def _band(index: int, size: int, outputs: int, taps: int, w: ConvWorkload) -> Band:
    first = index * size
    reads = tuple(
        tuple((first + pixel) * w.stride - w.pad + tap * w.dilation for tap in range(taps)) for pixel in range(size)
    )
    return Band(first, min(size, outputs - first), reads)


def _warps(plan: Plan) -> tuple[WarpTile, ...]:
    config = plan.config
    tiles, wide = config.warp_row_tiles, config.warp_col_tiles
    found = []
    for number in range(config.threads // 32):
        row, rest = number % config.blk_row_warps, number // config.blk_row_warps
        column, share = rest % config.blk_col_warps, rest // config.blk_col_warps
        pixels = tuple(range(row * tiles, (row + 1) * tiles))
        found.append(WarpTile(number, pixels, tuple(range(column * wide, (column + 1) * wide)), share))
    return tuple(found)


def _multiplies(plan: Plan) -> tuple[Multiply, ...]:
    halves = range(plan.atom.pixels)
    return tuple(
        Multiply(tuple(plan.partner(pair, half) for half in halves), column)
        for pair in range(plan.pairs)
        for column in range(plan.config.warp_col_tiles)
    )


def _steps(plan: Plan) -> tuple[Step, ...]:
    w, config, together = plan.workload, plan.config, plan.atom.blocks
    part, depth = config.chunk // config.split_channels, w.precision.activations.block
    found = []
    for iteration in range(plan.iterations):
        first_row, chunk = plan.step(iteration)
        for block in range(0, config.chunk, together):
            blocks = tuple(chunk * config.chunk + block + i for i in range(together))
            for tap in range(plan.taps_staged):
                r, s = first_row + tap // w.s, tap % w.s
                columns = tuple(((b * w.r + r) * w.s + s) * depth for b in blocks)
                found.append(Step(iteration, block // part, r, s, blocks, columns))
    return tuple(found)


def _inside(band: Band, size: int) -> Run:
    positions = [at for reads in band.reads[: band.outputs] for at in reads if 0 <= at < size]
    return (min(positions), max(positions) - min(positions) + 1) if positions else (0, 0)

"""The expected fraction of K that is kept with random zeros, and a rough estimate of the kernel's time."""

from __future__ import annotations

from functools import cache
from math import comb

from subbyte.families.condense.plan import CondensePlan
from subbyte.workload.conv import ceil_div

TILE_ROWS = 32
LANES = 32
DENSITY = 0.05
"""Density of both sides if none is given, at which such a kernel may pay."""
MULTIPROCESSORS = 132
"""Multiprocessors of the GPU that the estimate assumes (H200)."""
BLOCK_CYCLES = 1500.0
COPIED_BYTES = 40.0
"""Bytes per cycle that a multiprocessor gets from the L2."""
LOAD_CYCLES, PERMUTE_CYCLES, STEP_CYCLES = 8.0, 0.5, 2.0
"""Cycles of a multiprocessor per step: two ldmatrix of 512 bytes at 128 bytes a cycle; an instruction on the integer
units (64 lanes a cycle); bit search, loop and addresses."""
MATRIX_CYCLES = 1.6
"""Cycles of one m16n8k32 on int8 (measured peak, H200)."""


def kept(rows: float, columns: float, tile_columns: int, tile_rows: int = TILE_ROWS) -> float:
    """The fraction of K that a tile keeps when values are nonzero independently with these probabilities: neither all
    rows nor all columns of the tile are 0 there."""
    return (1 - (1 - rows) ** tile_rows) * (1 - (1 - columns) ** tile_columns)


@cache
def steps(share: float, blocks: int, sharing: int = 1) -> float:
    """Expected steps of a tile over this many blocks of 32 positions: the largest number of live positions of any lane,
    or half of it for two lanes that share theirs, when each position is live with this probability."""
    most, up_to, positions = 0.0, 0.0, blocks * sharing
    for count in range(positions):  # the maximum exceeds a count unless all lanes have at most as many
        up_to = min(1.0, up_to + comb(positions, count) * share**count * (1 - share) ** (positions - count))
        if count % sharing == 0:
            most += 1 - up_to ** (LANES // sharing)
    return most


def tile_steps(plan: CondensePlan, share: float) -> float:
    """Steps of a tile over all chunks when this fraction of positions is live."""
    full, rest = divmod(plan.workload.channel_blocks, plan.config.chunk)
    sharing = plan.config.sharing
    return full * steps(share, plan.config.chunk, sharing) + steps(share, rest, sharing)


def step_cycles(plan: CondensePlan) -> float:
    """Estimated cycles that a multiprocessor needs for one step of a tile."""
    tiles = plan.config.tile_columns // 8
    integer = 16 + 4 + 2 * max(1, tiles // 2) + 4 * max(1, tiles // 2)
    return max(LOAD_CYCLES, integer * PERMUTE_CYCLES, 2 * tiles * MATRIX_CYCLES) + STEP_CYCLES


def estimated_cycles(plan: CondensePlan, rows: float = DENSITY, columns: float = DENSITY) -> float:
    """A rough cycle count at these densities, good enough to rank configurations of one workload."""
    config, blocks = plan.config, plan.workload.channel_blocks
    share = kept(rows, columns, config.tile_columns)
    tiles = plan.block_panels * plan.panel_tiles * config.row_warps
    taken = tile_steps(plan, share)
    work = tiles * (taken * step_cycles(plan) + 6.0 * plan.chunks)
    work += config.row_warps * blocks * 16.0 + (config.row_warps + plan.block_panels) * blocks * 6.0
    copied = (config.row_warps + plan.block_panels) * blocks * 512.0 / COPIED_BYTES
    together = max(1, min(plan.arch.shared_per_sm // (plan.shared_bytes + 1024), 2048 // config.threads,
                          plan.arch.registers_per_sm // (config.threads * (plan.accumulators + 48))))  # fmt: skip
    hidden = min(16.0, together * config.warps) / 16.0
    each = max(work / hidden**0.5, copied) + (0.3 if plan.buffers == 2 or together > 1 else 1.0) * copied
    count = plan.launch.grid[0] * plan.launch.grid[1]
    return BLOCK_CYCLES + ceil_div(count, MULTIPROCESSORS) * each + plan.chunks * 600.0

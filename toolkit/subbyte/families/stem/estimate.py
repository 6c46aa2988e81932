"""How long a kernel takes, roughly: what its blocks multiply, issue, load and store.

Blocks of a multiprocessor overlap: products of some warpgroups run beside the integer and floating-point instructions
of others, so that the larger of both counts, but for the first rows of a block and the end of its last tile.
"""

from __future__ import annotations

from math import log2

from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import registers_needed
from subbyte.workload.conv import BATCH_GROUP, ceil_div

MULTIPROCESSORS = 132
START_CYCLES = 2400.0
"""From one launch to the next: launch, first bytes, last stores."""
BLOCK_CYCLES = 1200.0
"""Of a block beside its tiles: barriers, first copies."""
STORED, COPIED = 18.0, 40.0
"""Bytes of a multiprocessor in a cycle: to memory, all of them at once; from the L2."""
PER_FRAGMENT, PER_PRODUCT, PER_SUM, PER_TILE = 22.0, 4.0, 2.9, 60.0
"""Instructions of a warp: an operand's words, its six integer instructions and waiting; a wgmma; a sum; a tile."""
ALONE = 0.75
"""Share of its instructions' latency that a warpgroup without a neighbour does not hide."""
FEATURES = ("estimate", "products", "instructions", "copied", "waves", "resident", "shared")


def product_cycles(filters: int) -> float:
    """Of an s8 wgmma with one operand in registers (measured on an H200)."""
    return max(13.0, filters / 2)


def resident(plan: StemPlan) -> int:
    """Blocks that a multiprocessor has at a time."""
    arch, threads = plan.arch, plan.config.threads
    registers = ceil_div(registers_needed(plan), 8) * 8
    room = arch.shared_per_sm // (plan.shared_bytes + arch.shared_per_sm - arch.shared_per_block)
    return max(1, min(room, arch.threads_per_sm // threads, arch.registers_per_sm // (threads * registers)))


def products(plan: StemPlan) -> float:
    """Tensor Core cycles of a block."""
    tiles = plan.tiles * plan.config.turns * plan.config.tile_rows
    return tiles * plan.strips.steps * product_cycles(plan.config.filters)


def instructions(plan: StemPlan) -> float:
    """Instructions of a block that a scheduler of the multiprocessor issues."""
    config = plan.config
    each = len(plan.fragments) * PER_FRAGMENT + config.tile_rows * (
        plan.strips.steps * PER_PRODUCT + plan.row_sums * PER_SUM
    )
    return plan.tiles * config.turns * (each + PER_TILE)


def copied(plan: StemPlan) -> float:
    """Bytes that a block copies into shared memory."""
    return plan.weight_bytes + plan.config.turns * plan.staged_rows * plan.row_words * 4 * BATCH_GROUP


def estimated_cycles(plan: StemPlan) -> float:
    """A rough count of cycles."""
    together, warpgroups = resident(plan), plan.config.consumers
    waves = ceil_div(plan.blocks, MULTIPROCESSORS)
    work, issue = products(plan), instructions(plan)
    latency = ALONE * (work + issue) / max(1, min(together, waves) * warpgroups)
    load = copied(plan) / COPIED
    each = max(work, issue) + latency
    outside = (BLOCK_CYCLES + (load if plan.config.turns == 1 else load / plan.config.turns)) / min(together, waves)
    w = plan.workload
    written = w.batch_groups * BATCH_GROUP * w.p * w.q * w.padded_filters / 2 / (MULTIPROCESSORS * STORED)
    return START_CYCLES + max(waves * (each + outside), written)


def feature_row(plan: StemPlan) -> list[float]:
    """What a cost model sees."""
    found = (
        estimated_cycles(plan), products(plan), instructions(plan), copied(plan),
        ceil_div(plan.blocks, MULTIPROCESSORS), resident(plan), plan.shared_bytes,
    )  # fmt: skip
    return [log2(1 + value) for value in found]

"""A rough estimate of a kernel's time: what its warpgroups multiply, issue, copy and store.

Products of some warpgroups overlap with the instructions of others, but share the issue slots with them, so most of
both counts.
"""

from __future__ import annotations

from math import log2

from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import registers_needed
from subbyte.workload.conv import BATCH_GROUP, ceil_div

MULTIPROCESSORS = 132
START_CYCLES = 2400.0
"""Fixed cycles of a launch: launch, first bytes, last stores."""
BLOCK_CYCLES = 1200.0
"""Cycles of a block besides its turns: barriers, weights, first words."""
STORED = 18.0
"""Bytes per cycle and multiprocessor stored to memory when all store at once."""
PER_STRING, PER_PART, PER_STEP, PER_SUM, PER_TILE, PER_TURN = 8.0, 1.6, 4.0, 1.7, 24.0, 80.0
"""Instructions of a warp: per string; per word of it, including the words it is made from; per wgmma, sum, tile and
turn."""
ALONE = 0.6
"""Fraction of its instructions' latency that a warpgroup without a neighbour does not hide."""
FEATURES = ("estimate", "products", "instructions", "written", "waves", "resident", "shared")


def product_cycles(filters: int) -> float:
    """Cycles of an s8 wgmma with both operands in shared memory (measured on an H200)."""
    return max(filters / 2, 16 + filters / 4)


def resident(plan: StemPlan) -> int:
    """Resident blocks of a multiprocessor."""
    arch, threads = plan.arch, plan.config.threads
    registers = ceil_div(registers_needed(plan), 8) * 8
    room = arch.shared_per_sm // (plan.shared_bytes + arch.shared_per_sm - arch.shared_per_block)
    return max(1, min(room, arch.threads_per_sm // threads, arch.registers_per_sm // (threads * registers)))


def products(plan: StemPlan) -> float:
    """Tensor Core cycles per turn."""
    return plan.tiles * plan.config.turn_rows * plan.strings.steps * product_cycles(plan.config.filters)


def instructions(plan: StemPlan) -> float:
    """Instructions per turn that a scheduler issues."""
    config, lay = plan.config, plan.strings
    written = plan.passes * (PER_STRING + config.turn_rows * lay.kinds * lay.length * PER_PART)
    each = config.turn_rows * (lay.steps * PER_STEP + plan.row_sums * PER_SUM + PER_TILE)
    return PER_TURN + written + plan.tiles * each


def written(plan: StemPlan) -> float:
    """Bytes of strings per turn."""
    return plan.buffer_bytes


def estimated_cycles(plan: StemPlan) -> float:
    """A rough cycle count."""
    config, together = plan.config, resident(plan)
    blocks = plan.blocks
    waves = ceil_div(blocks, MULTIPROCESSORS * together)
    beside = min(together, ceil_div(blocks, MULTIPROCESSORS))
    work, issue = products(plan), instructions(plan)
    each = (max(work, issue) + 0.5 * min(work, issue)) * config.consumers * config.turns * beside
    latency = ALONE * (work + issue) + 600 * config.turns / max(1, beside * config.consumers)
    outside = BLOCK_CYCLES + plan.weight_bytes * beside / 40
    w = plan.workload
    stored = w.batch_groups * BATCH_GROUP * w.p * w.q * w.padded_filters / 2 / (MULTIPROCESSORS * STORED)
    return START_CYCLES + max(waves * (each + latency + outside), stored)


def feature_row(plan: StemPlan) -> list[float]:
    """The features of a plan for a cost model."""
    found = (
        estimated_cycles(plan), products(plan), instructions(plan), written(plan),
        ceil_div(plan.blocks, MULTIPROCESSORS), resident(plan), plan.shared_bytes,
    )  # fmt: skip
    return [log2(1 + value) for value in found]

"""A rough estimate of a kernel's time: launch, weights and pixels, products, partial sums of others, results.

The constants began as predictions (benchmarks/notes/stem.md, "One image"), in cycles of an H200.
"""

from __future__ import annotations

from math import log2

from subbyte.families.image.plan import ImagePlan
from subbyte.families.image.rules import registers_needed
from subbyte.workload.conv import ceil_div

MULTIPROCESSORS = 132
START_CYCLES = 2300.0
"""Cycles from one launch to the next, without the work of a block."""
BLOCK_CYCLES = 1100.0
"""Cycles per block: coordinates, its first loads, barriers."""
LOADED = 32.0
"""Bytes per cycle that a multiprocessor gets from the L2."""
PER_LOAD, PER_FRAGMENT, PER_GROUP = 60.0, 14.0, 30.0
"""Instructions of a warp in cycles: a piece's place and unpacking, an operand, results of 8 pixels."""
STALL = 10.0
"""Cycles per fragment with in_flight=1: the next operand waits for the products before it."""
IN_BLOCK, IN_CLUSTER = 150.0, 700.0
"""Cycles of waiting for the sums of other warpgroups, and of other blocks."""
FEATURES = ("estimate", "products", "loaded", "waves", "ways", "shared")


def products(plan: ImagePlan) -> float:
    """Tensor Core cycles per block."""
    each = max(13.0, plan.config.pixels / 2)
    return plan.config.warpgroups * plan.fragments * plan.halves * each


def loaded(plan: ImagePlan) -> float:
    """Bytes that a block reads."""
    return plan.config.warpgroups * plan.fragments * 2048 + plan.pieces * 32.0


def resident(plan: ImagePlan) -> int:
    """Resident blocks of a multiprocessor."""
    arch, threads = plan.arch, plan.config.threads
    registers = ceil_div(registers_needed(plan), 8) * 8
    room = arch.shared_per_sm // (plan.shared_bytes + arch.shared_per_sm - arch.shared_per_block)
    return max(1, min(room, arch.threads_per_sm // threads, arch.registers_per_sm // (threads * registers)))


def estimated_cycles(plan: ImagePlan) -> float:
    """A rough cycle count."""
    config = plan.config
    each = BLOCK_CYCLES + plan.loads * PER_LOAD + plan.fragments * PER_FRAGMENT + plan.slots * PER_GROUP
    if config.in_flight == 1:
        each += plan.fragments * STALL
    if config.ways > 1:
        each += IN_CLUSTER if config.cluster_split_k > 1 else IN_BLOCK
    each += loaded(plan) / LOADED + products(plan)
    waves, together = ceil_div(plan.blocks, MULTIPROCESSORS), resident(plan)
    busy = products(plan) + loaded(plan) / LOADED
    return START_CYCLES + ceil_div(waves, together) * each + (waves - ceil_div(waves, together)) * busy


def feature_row(plan: ImagePlan) -> list[float]:
    """The features of a plan for a cost model."""
    found = (
        estimated_cycles(plan), products(plan), loaded(plan), ceil_div(plan.blocks, MULTIPROCESSORS),
        plan.config.ways, plan.shared_bytes,
    )  # fmt: skip
    return [log2(1 + value) for value in found]

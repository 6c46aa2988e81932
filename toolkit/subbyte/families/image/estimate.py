"""A rough estimate of a kernel's time: launch, weights and pixels, products, partial sums of others, results.

The constants, in cycles of an H200, were fitted to the times of 865 kernels of 111 layers (benchmarks/notes/stem.md,
"One image"), layers left out in turn: what it puts first of a layer takes 0.79 to 1.49 times its estimate.
"""

from __future__ import annotations

from math import log2

from subbyte.families.image.plan import ImagePlan
from subbyte.families.image.rules import registers_needed
from subbyte.families.shared.smooth import longest
from subbyte.workload.conv import BATCH_GROUP, ceil_div

MULTIPROCESSORS, IN_CLUSTERS = 132, 120
"""Multiprocessors, and those of them on which clusters of more than two blocks fit."""
START_CYCLES = 1572.0
"""Cycles from one launch to the next, without the work of a block."""
BLOCK_CYCLES = 676.0
"""Cycles per block: coordinates, its first loads, barriers."""
LOADED = 96.0
"""Bytes per cycle that a multiprocessor gets from the L2."""
PER_LOAD, PER_FRAGMENT, PER_GROUP = 159.0, 6.4, 96.0
"""Cycles that a block waits: a piece's place, its arrival and unpacking; an operand; results of 8 pixels."""
STALL = 6.6
"""Cycles per fragment with in_flight=1: the next operand waits for the products before it."""
IN_BLOCK, IN_CLUSTER, PER_PART = 144.0, 338.0, 208.0
"""Cycles of waiting for the sums of other warpgroups, and of other blocks; and of each core matrix of each of them."""
BUSY_LOAD, BUSY_FRAGMENT, BUSY_GROUP = 388.0, 27.0, 10.0
"""Cycles of a multiprocessor that the same take of every warpgroup, while other blocks go on."""
STORED, STORED_ALONE = 3.75, 0.94
"""Cycles of a multiprocessor per 8 bytes of results: pixels of one image, and the zeros of the images that are not
there, are 128 bytes apart. The second while few blocks store."""
ROW_STORED = 0.31
"""The fraction of these in ``nhwc``, where pixels are neighbours."""
SHARPNESS = 2.5
"""Exponent of the norm that approximates the longest of several concurrent activities."""
FEATURES = ("estimate", "products", "loaded", "waves", "ways", "shared")


def products(plan: ImagePlan) -> float:
    """Tensor Core cycles per block."""
    each = max(13.0, plan.config.pixels / 2)
    return plan.config.warpgroups * plan.fragments * plan.halves * each


def loaded(plan: ImagePlan) -> float:
    """Bytes that a block reads."""
    return plan.config.warpgroups * plan.fragments * 2048 + plan.pieces * 32.0


def stored(plan: ImagePlan) -> tuple[float, float]:
    """Words of 8 bytes that a block writes on average, and one of the last image, which writes zeros for those that pad
    the batch."""
    w = plan.workload
    images = w.batch_groups * BATCH_GROUP
    every = images * w.p * w.q * w.filter_blocks * 2
    block = plan.config.pixels * min(plan.columns, w.filter_blocks * 32) / 16 / plan.config.cluster_split_k
    return every / plan.blocks, block * (1 + images - w.n)


def resident(plan: ImagePlan) -> int:
    """Resident blocks of a multiprocessor."""
    arch, threads = plan.arch, plan.config.threads
    registers = ceil_div(registers_needed(plan), 8) * 8
    room = arch.shared_per_sm // (plan.shared_bytes + arch.shared_per_sm - arch.shared_per_block)
    return max(1, min(room, arch.threads_per_sm // threads, arch.registers_per_sm // (threads * registers)))


def waiting(plan: ImagePlan) -> float:
    """Cycles of a block from its begin to its end."""
    config = plan.config
    cycles = BLOCK_CYCLES + plan.loads * PER_LOAD + plan.fragments * PER_FRAGMENT + plan.slots * PER_GROUP
    if config.in_flight == 1:
        cycles += plan.fragments * STALL
    if config.ways > 1:
        cycles += IN_CLUSTER if config.cluster_split_k > 1 else IN_BLOCK
        cycles += plan.slots * config.ways * PER_PART
    return cycles + products(plan) + loaded(plan) / LOADED + stored(plan)[1] * STORED_ALONE * _apart(plan)


def busy(plan: ImagePlan) -> float:
    """Cycles of a multiprocessor per block while others are resident too."""
    own = plan.loads * BUSY_LOAD + plan.fragments * BUSY_FRAGMENT + plan.slots * BUSY_GROUP
    stores = stored(plan)[0] * STORED * _apart(plan)
    return longest(SHARPNESS, plan.config.warpgroups * own, products(plan), loaded(plan) / LOADED, stores)


def estimated_cycles(plan: ImagePlan) -> float:
    """A rough cycle count: rounds of resident blocks that each wait, or all blocks that keep a multiprocessor busy."""
    blocks = ceil_div(plan.blocks, IN_CLUSTERS if plan.config.cluster_split_k > 2 else MULTIPROCESSORS)
    return START_CYCLES + longest(SHARPNESS, ceil_div(blocks, resident(plan)) * waiting(plan), blocks * busy(plan))


def feature_row(plan: ImagePlan) -> list[float]:
    """The features of a plan for a cost model."""
    found = (
        estimated_cycles(plan), products(plan), loaded(plan), ceil_div(plan.blocks, MULTIPROCESSORS),
        plan.config.ways, plan.shared_bytes,
    )  # fmt: skip
    return [log2(1 + value) for value in found]


def _apart(plan: ImagePlan) -> float:
    return ROW_STORED if plan.layout == "nhwc" else 1.0

"""A rough estimate of the time of a kernel with a ring: what it multiplies, moves through shared memory and compares.

The coefficients come from the kernels in ``benchmarks/results/bits/ring-first-h200-2026-11-23.json``, ``COPIED`` from
those with two stages in ``ring-h200-2026-11-23.json``. Blocks in clusters took as long as others there, or a little
longer: the L2 cache serves what every block copies for itself.
"""

from __future__ import annotations

from math import log2

from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.tiles import CORE_BYTES
from subbyte.workload.precision import SUMS

START_CYCLES = 3200.0
"""Fixed cycles of a launch."""
PRODUCTS = 1.03
"""Cycles per Tensor Core cycle."""
SHARED = 128.0
"""Bytes per cycle into shared memory, to registers and to the Tensor Cores."""
TILE, FURTHER_CONSUMER = 500.0, 130.0
"""Cycles after the products of a tile."""
LATENCY, FURTHER_LATENCY = 400.0, 160.0
"""Cycles from the start of a copy to the end of its products, as far as further stages do not hide them."""
COPIED = 48.0
"""Bytes per cycle that a multiprocessor's copies deliver; with two long stages nothing hides them."""
STAGE = 15.0
"""Cycles per stage."""
SHORT_RING = 40.0
"""Cycles, divided by the number of stages: of otherwise equal rings the longer one is preferred."""
COMPARED = 3.0
"""Cycles for each of a thread's sums and thresholds after the first."""
LINE = 4.0
"""Cycles for each of a thread's sums whose code comes from one multiplication."""
STORED = 16.0
"""Bytes of sums stored per cycle."""
CLUSTER = 1.02
"""Relative time of blocks in a cluster."""


def _products(plan: RingPlan) -> float:
    """Tensor Core cycles per tile, with activations from registers (measured on an H200)."""
    return plan.config.consumers * plan.steps * plan.planes * max(13.0, plan.n / 2)


def _moved(plan: RingPlan) -> float:
    """Bytes of a tile through shared memory: activations are written and read once, weights are read by every warpgroup
    for every plane."""
    config = plan.config
    pixels = plan.block_pixels * plan.planes * plan.channel_blocks * CORE_BYTES
    return 2 * pixels + (1 + config.consumers * plan.planes) * plan.weight_bytes


def _behind(plan: RingPlan) -> float:
    """Cycles after the products of a tile."""
    consumers, channels = plan.config.consumers, plan.config.channels
    if plan.output == SUMS:
        return TILE + plan.block_pixels * 8 * channels * 4 / STORED
    more = LINE if plan.by_line else COMPARED * (plan.thresholds - 1)
    return TILE + FURTHER_CONSUMER * consumers + more * channels / 2


def estimated_cycles(plan: RingPlan) -> float:
    """A rough cycle count."""
    config = plan.config
    busy = max(PRODUCTS * _products(plan), _moved(plan) / SHARED) + STAGE * plan.tile_stages + _behind(plan)
    copied = LATENCY + FURTHER_LATENCY * config.consumers + plan.stage_bytes / COPIED
    waiting = plan.tile_stages * copied / (config.stages - 1)
    tile = max(busy, waiting) * (1.0 if plan.cluster == 1 else CLUSTER)
    return START_CYCLES + plan.turns * tile + SHORT_RING / config.stages


def feature_row(plan: RingPlan) -> list[float]:
    """The features of a plan for a cost model, in the order of the family's features."""
    found = [
        estimated_cycles(plan), _products(plan), _behind(plan), _moved(plan), plan.turns, plan.config.consumers,
        plan.shared_bytes,
    ]  # fmt: skip
    return [log2(1 + value) for value in found]

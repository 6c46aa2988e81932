"""How long a kernel with a ring takes, roughly: what it multiplies, moves through shared memory and compares.

The coefficients are of the kernels in ``benchmarks/results/bits/ring-first-h200-2026-11-23.json``, ``COPIED`` of those
of two stages in ``ring-h200-2026-11-23.json``. Blocks of clusters
took as long as others there, or a little longer: the L2 cache gives what every block copies for itself.
"""

from __future__ import annotations

from math import log2

from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.tiles import CORE_BYTES
from subbyte.workload.precision import SUMS

START_CYCLES = 3200.0
"""From one launch to the next, beside what is below."""
PRODUCTS = 1.03
"""Cycles per cycle of the Tensor Cores."""
SHARED = 128.0
"""Bytes a cycle that go into shared memory, to registers and to the Tensor Cores."""
TILE, FURTHER_CONSUMER = 500.0, 130.0
"""Cycles behind the products of a tile."""
LATENCY, FURTHER_LATENCY = 400.0, 160.0
"""Cycles from a copy's beginning to the products' end, as far as further stages do not hide them."""
COPIED = 48.0
"""Bytes a cycle that a multiprocessor's copies bring, which of two long stages nothing hides."""
STAGE = 15.0
"""Cycles of each stage."""
SHORT_RING = 40.0
"""Cycles, divided by the stages: of rings that are alike otherwise the longer one is taken."""
COMPARED = 3.0
"""Cycles for each of a thread's sums and thresholds but the first."""
LINE = 4.0
"""Cycles for each of a thread's sums whose code one multiplication gives."""
STORED = 16.0
"""Bytes of sums a cycle."""
CLUSTER = 1.02
"""Time of a cluster's blocks beside that of others."""


def _products(plan: RingPlan) -> float:
    """Tensor Core cycles of a tile: with activations from registers (measured on an H200)."""
    return plan.config.consumers * plan.steps * plan.planes * max(13.0, plan.n / 2)


def _moved(plan: RingPlan) -> float:
    """Bytes of a tile through shared memory: activations come and go once, weights for every warpgroup and plane."""
    config = plan.config
    pixels = plan.block_pixels * plan.planes * plan.channel_blocks * CORE_BYTES
    return 2 * pixels + (1 + config.consumers * plan.planes) * plan.weight_bytes


def _behind(plan: RingPlan) -> float:
    """Cycles behind the products of a tile."""
    consumers, channels = plan.config.consumers, plan.config.channels
    if plan.output == SUMS:
        return TILE + plan.block_pixels * 8 * channels * 4 / STORED
    more = LINE if plan.by_line else COMPARED * (plan.thresholds - 1)
    return TILE + FURTHER_CONSUMER * consumers + more * channels / 2


def estimated_cycles(plan: RingPlan) -> float:
    """A rough count of cycles."""
    config = plan.config
    busy = max(PRODUCTS * _products(plan), _moved(plan) / SHARED) + STAGE * plan.tile_stages + _behind(plan)
    copied = LATENCY + FURTHER_LATENCY * config.consumers + plan.stage_bytes / COPIED
    waiting = plan.tile_stages * copied / (config.stages - 1)
    tile = max(busy, waiting) * (1.0 if plan.cluster == 1 else CLUSTER)
    return START_CYCLES + plan.turns * tile + SHORT_RING / config.stages


def feature_row(plan: RingPlan) -> list[float]:
    """What a cost model sees, in the order of the family's features."""
    found = [
        estimated_cycles(plan), _products(plan), _behind(plan), _moved(plan), plan.turns, plan.config.consumers,
        plan.shared_bytes,
    ]  # fmt: skip
    return [log2(1 + value) for value in found]

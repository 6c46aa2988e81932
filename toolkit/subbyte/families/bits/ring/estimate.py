"""How long a kernel with a ring takes, roughly: what it multiplies, copies and compares."""

from __future__ import annotations

from math import log2

from subbyte.families.bits.ring.plan import RingPlan
from subbyte.workload.precision import SUMS

START_CYCLES = 4200.0
"""From one launch to the next, with the first stages on their way."""
COPIED = 30.0
"""Bytes a cycle that the L2 cache gives each multiprocessor."""
COMPARED, STORED = 5.0, 10.0
"""Cycles of a warpgroup for each of a thread's sums: compared, or stored as it is."""
MULTIPLIED = 1.06
"""Cycles per cycle of the Tensor Cores."""


def _products(plan: RingPlan) -> float:
    """Tensor Core cycles of a tile: with activations from registers (measured on an H200)."""
    return plan.config.consumers * plan.steps * plan.planes * max(13.0, plan.n / 2)


def _copied(plan: RingPlan) -> float:
    """Bytes of a tile that a block's share of the L2 cache gives."""
    config = plan.config
    pixels = plan.block_pixels * plan.pixel_bytes / config.share_pixels
    return pixels + plan.weight_bytes / config.share_weights


def _compared(plan: RingPlan) -> float:
    """Cycles behind the products of a tile."""
    return plan.counts * (STORED if plan.output == SUMS else COMPARED * plan.thresholds) + 400


def estimated_cycles(plan: RingPlan) -> float:
    """A rough count of cycles."""
    products, compared = MULTIPLIED * _products(plan), _compared(plan)
    beside = compared / 4 if plan.config.lead else compared
    alone = plan.tile_stages * (400 + products / plan.config.consumers / plan.tile_stages)
    tile = max(products, _copied(plan) / COPIED, alone) + beside
    return START_CYCLES + plan.turns * tile + compared - beside


def feature_row(plan: RingPlan) -> list[float]:
    """What a cost model sees, in the order of the family's features."""
    found = [
        estimated_cycles(plan), _products(plan), _compared(plan), _copied(plan), plan.turns, plan.config.consumers,
        plan.shared_bytes,
    ]  # fmt: skip
    return [log2(1 + value) for value in found]

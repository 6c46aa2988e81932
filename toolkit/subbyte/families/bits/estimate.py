"""A rough estimate of a kernel's time: what its blocks multiply, compare and load.

The coefficients are a least-squares fit to the 214 kernels of ``benchmarks/results/bits/first-h200-2026-11-23.json``.
Times of products and integer instructions add up: while a one-bit wgmma runs, whose counts go through the registers
every 30 to 70 cycles, other warps issue little.
"""

from __future__ import annotations

from math import log2

from subbyte.families.bits.plan import BitsPlan
from subbyte.workload.conv import ceil_div

MULTIPROCESSORS = 132
START_CYCLES = 3121.0
"""Fixed cycles of a launch."""
TURN_CYCLES = 1873.0
"""Cycles of each further block on a multiprocessor."""
PRODUCTS, ISSUE = 1.10, 0.89
"""For all tiles of a block: cycles per Tensor Core cycle, and per integer instruction."""
PRODUCTS_ALONE, ISSUE_ALONE = 1.24, 0.52
"""The same for an undisturbed warpgroup, which waits for its own products."""
LOAD = 0.00077
"""Cycles per byte loaded."""
LATENCY = 120
"""Cycles from the last instruction of a tile to its counts."""
PER_TILE, PER_FURTHER_TILE = 100, 40
"""Integer instructions besides those for each sum, for the first tile of a turn and for each tile below it."""
LINE = 3.5
"""Integer instructions per sum whose code comes from one multiplication."""
FEATURES = ("estimate", "multiply", "compare", "load", "waves", "consumers", "shared")


def instruction_cycles(n: int) -> float:
    """Cycles of a one-bit wgmma with both operands in shared memory (measured on an H200)."""
    return max(n / 2, 16 + n / 4)


def _turns(plan: BitsPlan) -> int:
    return ceil_div(plan.slices * plan.places, MULTIPROCESSORS)


def _instructions(plan: BitsPlan) -> float:
    """Integer instructions of a warp per tile."""
    each = plan.sets * plan.weight_planes * (1.0 if plan.paired else 2.0)
    each += LINE if plan.by_line else plan.thresholds * (1.0 if plan.paired else 2.2)
    doubled = plan.sums * (plan.planes - 1) if plan.config.doubled else 0
    rows = plan.config.turn_rows
    return plan.config.channels / 2 * each + doubled + (PER_TILE + (rows - 1) * PER_FURTHER_TILE) / rows


def _products(plan: BitsPlan) -> float:
    """Tensor Core cycles per tile."""
    return plan.steps * plan.planes * instruction_cycles(plan.n)


def estimated_cycles(plan: BitsPlan) -> float:
    """A rough cycle count."""
    products, issue = _products(plan), _instructions(plan)
    together = plan.tiles * (PRODUCTS * products + ISSUE * issue)
    waits = LATENCY * (plan.planes if plan.config.doubled else 1) / plan.config.turn_rows
    alone = ceil_div(plan.tiles, plan.config.consumers) * (PRODUCTS_ALONE * (products + waits) + ISSUE_ALONE * issue)
    turns, loaded = _turns(plan), plan.weight_bytes + plan.rows_bytes
    return START_CYCLES + turns * (max(together, alone) + LOAD * loaded) + (turns - 1) * TURN_CYCLES


def feature_row(plan: BitsPlan) -> list[float]:
    """The features of a plan for a cost model."""
    found = [
        estimated_cycles(plan), plan.tiles * _products(plan), plan.tiles * _instructions(plan),
        plan.weight_bytes + plan.rows_bytes, _turns(plan), plan.config.consumers, plan.shared_bytes,
    ]  # fmt: skip
    return [log2(1 + value) for value in found]

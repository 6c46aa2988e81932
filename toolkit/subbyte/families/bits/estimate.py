"""How long a kernel takes, roughly: what its blocks multiply, compare and load.

The coefficients are a least-squares fit to the 214 kernels of ``benchmarks/results/bits/first-h200-2026-11-23.json``.
Products and integer instructions add up: beside a one-bit wgmma, whose counts go through the registers every 30 to 70
cycles, other warps issue little.
"""

from __future__ import annotations

from math import log2

from subbyte.families.bits.plan import BitsPlan
from subbyte.workload.conv import ceil_div

MULTIPROCESSORS = 132
START_CYCLES = 3121.0
"""From one launch to the next, beside what is below."""
TURN_CYCLES = 1873.0
"""Of each further block of a multiprocessor."""
PRODUCTS, ISSUE = 1.10, 0.89
"""Of all tiles of a block: cycles per cycle of the Tensor Cores, and per integer instruction."""
PRODUCTS_ALONE, ISSUE_ALONE = 1.24, 0.52
"""The same of a warpgroup that nobody delays, which waits for its own products."""
LOAD = 0.00077
"""Cycles per byte that is loaded."""
LATENCY = 120
"""Cycles from the last instruction of a tile to its counts."""
PER_TILE, PER_FURTHER_TILE = 100, 40
"""Integer instructions beside those of each sum, of the first tile of a turn and of each below it."""
LINE = 3.5
"""Integer instructions of a sum whose code one multiplication gives."""
FEATURES = ("estimate", "multiply", "compare", "load", "waves", "consumers", "shared")


def instruction_cycles(n: int) -> float:
    """Of a one-bit wgmma with both operands in shared memory (measured on an H200)."""
    return max(n / 2, 16 + n / 4)


def _turns(plan: BitsPlan) -> int:
    return ceil_div(plan.slices * plan.places, MULTIPROCESSORS)


def _instructions(plan: BitsPlan) -> float:
    """Integer instructions of a warp for a tile."""
    each = plan.sets * plan.weight_planes * (1.0 if plan.paired else 2.0)
    each += LINE if plan.by_line else plan.thresholds * (1.0 if plan.paired else 2.2)
    doubled = plan.sums * (plan.planes - 1) if plan.config.doubled else 0
    rows = plan.config.turn_rows
    return plan.config.channels / 2 * each + doubled + (PER_TILE + (rows - 1) * PER_FURTHER_TILE) / rows


def _products(plan: BitsPlan) -> float:
    """Tensor Core cycles of a tile."""
    return plan.steps * plan.planes * instruction_cycles(plan.n)


def estimated_cycles(plan: BitsPlan) -> float:
    """A rough count of cycles."""
    products, issue = _products(plan), _instructions(plan)
    together = plan.tiles * (PRODUCTS * products + ISSUE * issue)
    waits = LATENCY * (plan.planes if plan.config.doubled else 1) / plan.config.turn_rows
    alone = ceil_div(plan.tiles, plan.config.consumers) * (PRODUCTS_ALONE * (products + waits) + ISSUE_ALONE * issue)
    turns, loaded = _turns(plan), plan.weight_bytes + plan.rows_bytes
    return START_CYCLES + turns * (max(together, alone) + LOAD * loaded) + (turns - 1) * TURN_CYCLES


def feature_row(plan: BitsPlan) -> list[float]:
    """What a cost model sees."""
    found = [
        estimated_cycles(plan), plan.tiles * _products(plan), plan.tiles * _instructions(plan),
        plan.weight_bytes + plan.rows_bytes, _turns(plan), plan.config.consumers, plan.shared_bytes,
    ]  # fmt: skip
    return [log2(1 + value) for value in found]

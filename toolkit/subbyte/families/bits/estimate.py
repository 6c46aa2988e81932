"""How long a kernel takes, roughly: what its blocks multiply, compare and load (H200)."""

from __future__ import annotations

from math import log2

from subbyte.families.bits.plan import BitsPlan
from subbyte.workload.precision import SUMS

START_CYCLES = 2600
"""From the launch to the first instruction: launch, barriers, first bytes."""
MULTIPROCESSORS = 132
ISSUE = 128
"""Integer instructions of a multiprocessor and cycle."""
BYTES = 40
"""From the L2 to a multiprocessor in a cycle, all of them loading."""
FEATURES = ("estimate", "multiply", "compare", "load", "waves", "consumers", "shared")


def instruction_cycles(n: int) -> float:
    """Of a one-bit wgmma with both operands in shared memory (measured on an H200)."""
    return max(n / 2, 16 + n / 4)


def _parts(plan: BitsPlan) -> tuple[float, float, float, float]:
    """Cycles of a multiprocessor for its blocks: products, comparisons, loads; and its turns."""
    blocks = plan.slices * plan.places
    at_once = max(1, min(plan.arch.shared_per_sm // max(plan.shared_bytes, 1), 2048 // plan.threads, 8))
    waves = -(-blocks // (MULTIPROCESSORS * at_once)) if blocks > MULTIPROCESSORS else 1
    held = min(at_once, -(-blocks // MULTIPROCESSORS))
    turns = waves * held
    multiply = plan.tiles * plan.steps * plan.planes * instruction_cycles(plan.n)
    sums = plan.tiles * 64 * plan.config.channels
    each = plan.sets * plan.weight_planes * (1.0 if plan.paired else 2.0) + plan.thresholds * (
        1.0 if plan.paired else 2.5
    )
    if plan.output == SUMS:
        each = plan.sets * plan.weight_planes + 3.0
    compare = sums * (each + 0.3) / ISSUE + plan.tiles * 60
    load = (plan.weight_bytes + plan.rows_bytes) / BYTES
    return multiply * turns, compare * turns, load * turns, float(waves)


def estimated_cycles(plan: BitsPlan) -> float:
    """A rough count of cycles."""
    multiply, compare, load, waves = _parts(plan)
    # One consumer alternates between products and comparisons; several overlap them.
    overlap = 1.0 / plan.config.consumers
    worst, other = max(multiply, compare), min(multiply, compare)
    return START_CYCLES * waves + load * 0.5 + worst + overlap * other


def feature_row(plan: BitsPlan) -> list[float]:
    """What a cost model sees."""
    multiply, compare, load, waves = _parts(plan)
    found = [estimated_cycles(plan), multiply, compare, load, waves, plan.config.consumers, plan.shared_bytes]
    return [log2(1 + value) for value in found]

"""A rough estimate of a kernel's time: popcounts, 16 per cycle on a multiprocessor, and the other instructions."""

from __future__ import annotations

from typing import cast

from subbyte.families.popc.config import PopcConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.waves import in_waves, load_cost

COUNT_CYCLES, OTHER_CYCLES = 8.0, 2.0
"""Cycles of a quarter multiprocessor for a warp's popcount (CUDA C++ Programming Guide: 16 a cycle) and for another
integer instruction (64 a cycle)."""
LOAD_CYCLES = 8.0


def estimated_cycles(plan: PlanePlan) -> float:
    """A rough cycle count, good enough to rank configurations of one workload."""
    config, saved = plan.config, cast(PopcConfig, plan.config).carry_save
    pieces = len(plan.pieces) * plan.view.r * plan.chunks * plan.planes
    pairs = pieces * plan.weight_planes * 2 * config.warp_col_tiles * config.warp_row_tiles
    loads = pieces * (config.warp_row_tiles + 2 * plan.weight_planes * config.warp_col_tiles) * load_cost(plan)
    each = max(COUNT_CYCLES * (3 if saved else 4), OTHER_CYCLES * (10 if saved else 8))
    return in_waves(plan, pairs * each + LOAD_CYCLES * loads, 0.0)

"""How long a kernel takes, roughly: popcounts, 16 a cycle of a multiprocessor, and the other instructions."""

from __future__ import annotations

from typing import cast

from subbyte.families.popc.config import PopcConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.workload.conv import ceil_div

MULTIPROCESSORS = 108
"""Of the GPU that the estimate aims at (A100)."""
COUNT_CYCLES, OTHER_CYCLES = 8.0, 2.0
"""Of a quarter of a multiprocessor, for a warp's popcount (CUDA C++ Programming Guide: 16 a cycle) and another integer
instruction (64 a cycle)."""
START, TURN, LATENCY = 2000.0, 900.0, 500.0
"""Cycles from launch to first product, of a block's begin and end, and of a stage that nothing hides."""
BYTES_PER_CYCLE = 40.0
"""That the L2 gives a multiprocessor."""


def estimated_cycles(plan: PlanePlan) -> float:
    """A rough count of cycles, good enough to rank configurations of one workload."""
    config, saved = plan.config, cast(PopcConfig, plan.config).carry_save
    pieces = len(plan.pieces) * plan.view.r * plan.chunks * plan.planes
    pairs = pieces * plan.weight_planes * 2 * config.warp_col_tiles * config.warp_row_tiles
    loads = (
        pieces * (config.warp_row_tiles + 2 * plan.weight_planes * config.warp_col_tiles) * (1 if plan.staged else 3)
    )
    issue = pairs * (max(COUNT_CYCLES * (3 if saved else 4), OTHER_CYCLES * (10 if saved else 8))) + 8.0 * loads
    per_sm = ceil_div(plan.blocks, MULTIPROCESSORS)
    resident = min(plan.arch.shared_per_sm // (plan.shared_bytes + 1024), plan.arch.threads_per_sm // config.threads, 4)
    together = min(max(1, resident), per_sm)
    work = issue * max(1.0, config.threads / 128 * together)
    waits = plan.iterations * LATENCY / max(1, plan.stages - 1) / together
    loaded = 4 * plan.stage_words * plan.iterations * per_sm / BYTES_PER_CYCLE
    return START + ceil_div(per_sm, together) * (max(work, waits) + TURN) + 0.5 * loaded

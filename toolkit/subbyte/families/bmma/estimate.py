"""How long a kernel takes, roughly: blocks run in waves, and each scheduler works through its warps' instructions."""

from __future__ import annotations

from typing import cast

from subbyte.families.bmma.plan import BmmaPlan
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.workload.conv import ceil_div

MULTIPROCESSORS = 108
"""Of the GPU that the estimate aims at (A100); others take the same configurations in more or fewer waves."""
PRODUCT_CYCLES = 8.0
"""Of a quarter of a multiprocessor for an m16n8k256 (A100: 4,992 TOPS of one bit)."""
START, TURN, LATENCY = 2000.0, 900.0, 500.0
"""Cycles from launch to first product, of a block's begin and end, and of a stage that nothing hides."""
BYTES_PER_CYCLE = 40.0
"""That the L2 gives a multiprocessor."""


def estimated_cycles(plan: PlanePlan) -> float:
    """A rough count of cycles, good enough to rank configurations of one workload."""
    one, config = cast(BmmaPlan, plan), plan.config
    rows = plan.view.r * plan.chunks
    steps = ceil_div(len(plan.pieces), plan.atom.blocks) * rows
    products = steps * plan.planes * plan.pairs * (plan.weight_planes * config.warp_col_tiles + bool(one.counts.pixel))
    loads = steps * one.fragment_registers * (1 if plan.staged else 3)
    issue = 2.0 * products + 2.0 * loads + 6.0 * len(plan.factors) * plan.set_registers
    warps = config.threads / 128
    together = max(
        1, min(plan.arch.shared_per_sm // (plan.shared_bytes + 1024), plan.arch.threads_per_sm // config.threads, 4)
    )
    per_sm = ceil_div(plan.blocks, MULTIPROCESSORS)
    together = min(together, per_sm)
    work = max(PRODUCT_CYCLES * plan.atom.pixels * plan.atom.blocks / 4 * products, issue) * max(1.0, warps * together)
    waits = plan.iterations * LATENCY / max(1, plan.stages - 1) / together + PRODUCT_CYCLES * products
    loaded = 4 * plan.stage_words * plan.iterations * per_sm / BYTES_PER_CYCLE
    return START + ceil_div(per_sm, together) * (max(work, waits) + TURN) + 0.5 * loaded

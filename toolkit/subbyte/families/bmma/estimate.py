"""A rough estimate of a kernel's time: matrix instructions, and the other instructions that a scheduler issues."""

from __future__ import annotations

from typing import cast

from subbyte.families.bmma.plan import BmmaPlan
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.waves import in_waves, load_cost
from subbyte.workload.conv import ceil_div

PRODUCT_CYCLES = 8.0
"""Cycles of a quarter multiprocessor for an m16n8k256: assumed, not measured on such a GPU."""


def estimated_cycles(plan: PlanePlan) -> float:
    """A rough cycle count, good enough to rank configurations of one workload."""
    one, config = cast(BmmaPlan, plan), plan.config
    weights, activations = one.warp_planes
    steps = ceil_div(len(plan.pieces), plan.atom.blocks) * plan.view.r * plan.chunks
    each = weights * config.warp_col_tiles * (2 if one.doubled else 1) + bool(plan.ones_registers)
    products = steps * activations * plan.pairs * each
    loads = steps * one.fragment_registers * load_cost(plan)
    issue = 2.0 * products + 2.0 * loads + 6.0 * len(plan.factors) * plan.set_registers
    matrix = PRODUCT_CYCLES * plan.atom.pixels * plan.atom.blocks / 4 * products
    return in_waves(plan, max(matrix, issue), PRODUCT_CYCLES * products)

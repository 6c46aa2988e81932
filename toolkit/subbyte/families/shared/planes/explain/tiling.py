"""How a kernel on fragments of bit planes divides the matrix product."""

from __future__ import annotations

from dataclasses import replace

from subbyte.families.shared.bit_tiling import BitLevel, BitTiling, bit_tiling
from subbyte.families.shared.planes.explain.built import require_built
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.operand import BLOCK_BITS

TILE_CHANNELS = 8


def plane_tiling(plan: PlanePlan) -> BitTiling:
    """The levels of a plan: blocks, stages, warps, products of fragments. Raises InvalidInput with the reason for a
    plan that is rejected."""
    plan = replace(plan, output=plan.workload.precision.output.name)
    require_built(plan)
    config, atom = plan.config, plan.atom
    pairs, own = plan.weight_planes * plan.planes, plan.warp_planes[0] * plan.warp_planes[1]
    depth, of_stage = (taps * BLOCK_BITS for taps in (plan.iterations * _taps(plan), _taps(plan)))
    rows, of_warp = config.pixels * BATCH_GROUP, config.warp_row_tiles * BATCH_GROUP
    channels = TILE_CHANNELS * config.warp_col_tiles
    products, ones = plan.stage_products
    levels = (
        BitLevel("block", plan.blocks, rows, plan.columns, depth, pairs),
        BitLevel("stage", plan.iterations, rows, plan.columns, of_stage, pairs),
        BitLevel("warp", plan.threads // 32, of_warp, channels, of_stage, own),
        BitLevel(plan.product, products, atom.pixels * BATCH_GROUP, TILE_CHANNELS, atom.blocks * BLOCK_BITS, 1),
    )
    return bit_tiling(plan, atom.name, levels, plan.threads, ones * plan.iterations * plan.threads // 32)


def _taps(plan: PlanePlan) -> int:
    """Taps, times blocks of 128 channels, per stage."""
    return plan.rows_staged * len(plan.pieces)

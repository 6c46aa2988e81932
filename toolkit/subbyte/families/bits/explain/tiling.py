"""How a kernel on one-bit warpgroup products divides the matrix product."""

from __future__ import annotations

from dataclasses import replace

from subbyte.errors import InvalidInput
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.rules import why_not
from subbyte.families.bits.tiles import PIECE_BYTES, TILE_PIXELS
from subbyte.families.shared.bit_tiling import BitLevel, BitTiling, bit_tiling
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.operand import BLOCK_BITS


def bits_tiling(plan: BitsPlan) -> BitTiling:
    """The levels of a plan: blocks, turns of warpgroups, and instructions, whose columns hold every plane of the
    weights. Raises InvalidInput with the reason for a plan that is rejected."""
    plan = replace(plan, output=plan.workload.precision.output.name)
    if reason := why_not(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )
    if isinstance(plan, RingPlan):
        return _ring_tiling(plan)
    w, config, pairs = plan.view, plan.config, plan.weight_planes * plan.planes
    of_step = 2 * (PIECE_BYTES if plan.whole_values else BLOCK_BITS)
    depth, rows = plan.steps * of_step, config.tile_rows * w.q * BATCH_GROUP
    of_turn, of_tile = config.turn_rows * TILE_PIXELS * BATCH_GROUP, TILE_PIXELS * BATCH_GROUP
    levels = (
        BitLevel("block", plan.slices * plan.places, rows, config.channels, depth, pairs),
        BitLevel("turn of a warpgroup", plan.turns, of_turn, config.channels, depth, pairs),
        BitLevel(
            "instruction", config.turn_rows * plan.steps * plan.planes, of_tile, config.channels, of_step,
            plan.weight_planes,
        ),
    )  # fmt: skip
    return bit_tiling(plan, plan.atom.name, levels, plan.threads)


def _ring_tiling(plan: RingPlan) -> BitTiling:
    """The levels of a kernel with a ring: tiles of a block, tiles of its warpgroups, stages, instructions."""
    config, pairs = plan.config, plan.weight_planes * plan.planes
    of_stage, of_tile = config.depth * BLOCK_BITS, TILE_PIXELS * BATCH_GROUP
    depth = len(plan.pieces) * BLOCK_BITS
    tiles = plan.pixel_tiles * plan.channel_tiles * plan.cluster
    levels = (
        BitLevel("tile of a block", tiles, plan.block_pixels * BATCH_GROUP, config.channels, depth, pairs),
        BitLevel("warpgroup", config.consumers, of_tile, config.channels, depth, pairs),
        BitLevel("stage", plan.tile_stages, of_tile, config.channels, of_stage, pairs),
        BitLevel(
            "instruction", plan.stage_steps(False) * plan.planes, of_tile, config.channels, 2 * BLOCK_BITS,
            plan.weight_planes,
        ),
    )  # fmt: skip
    return bit_tiling(plan, plan.atom.name, levels, plan.threads)

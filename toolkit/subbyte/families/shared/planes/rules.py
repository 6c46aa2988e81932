"""Whether a plan can be built, and why not: rules, checked in order. Each kind adds its own."""

from __future__ import annotations

from collections.abc import Callable

from subbyte.families.shared.bit_rules import MOST_SUM, compared_output, compared_range
from subbyte.families.shared.planes.geometry import GROUP_TILES
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.workload.coverage import too_large
from subbyte.workload.operand import WORD_BITS
from subbyte.workload.precision import SUMS

OVERHEAD = 48
"""Registers for addresses, loop state and comparisons, besides counts and fragments."""
MOST_WRITTEN = 1600
"""Most unrolled products of fragments: beyond it the instruction cache overflows."""

Rule = Callable[[PlanePlan], str | None]


def output(plan: PlanePlan) -> str | None:
    """Codes must count thresholds."""
    return compared_output(plan.output, plan.view.precision.output)


def sums(plan: PlanePlan) -> str | None:
    """Doubled sums, or compared ones, must fit 32 bits; everything else is computed modulo 2^32."""
    if plan.output == SUMS:
        types, w = plan.view.precision, plan.view
        most = w.r * w.s * w.c * ((1 << types.weights.bits) - 1) * ((1 << types.activations.bits) - 1)
        if plan.counts.scale * most < MOST_SUM:
            return None
        return f"range: from xor come doubled sums, up to {2 * most}, beyond 2^31 - 1; use fewer channels"
    return compared_range(*plan.span)


def sizes(plan: PlanePlan) -> str | None:
    """Knobs must fit the layer."""
    config, w = plan.config, plan.view
    if plan.threads > plan.arch.threads_per_block:
        return f"threads: {plan.threads} of a block; at most {plan.arch.threads_per_block}"
    if config.warp_col_tiles % GROUP_TILES:
        return f"divisibility: warp_col_tiles {config.warp_col_tiles} is no multiple of 4: a word has four tiles' bits"
    if config.columns // 2 >= -(-w.k // WORD_BITS) * WORD_BITS:
        return f"tiles: {config.columns} output channels of a block, of a layer with {w.k}"
    if plan.channel_blocks % config.chunk:
        return f"divisibility: chunk {config.chunk} does not divide {plan.channel_blocks} blocks of 128 input channels"
    if config.warp_row_tiles % plan.atom.pixels:
        return f"divisibility: warp_row_tiles {config.warp_row_tiles} is odd: {plan.atom.name} takes two pixels"
    if config.tile_height and config.pixels % config.tile_height:
        return f"divisibility: tile_height {config.tile_height} does not divide {config.pixels} pixels"
    if not plan.even:
        return f"divisibility: {config.warp_row_tiles} pixels of a warp are no rectangle in rows of {plan.tile[1]}"
    return None


def same_program(plan: PlanePlan) -> str | None:
    """Each program must occur once."""
    config = plan.config
    if config.reorder_inner and plan.view.r == 1:
        return "same program: with one kernel row reorder_inner=0 builds it as well"
    if not plan.staged and config.stages != type(config)().stages:
        return "same program: without stages in shared memory their number says nothing"
    return None


def written(plan: PlanePlan) -> str | None:
    """The number of unrolled products is limited."""
    if plan.written <= MOST_WRITTEN:
        return None
    return f"unrolling: {plan.written} products are written out; at most {MOST_WRITTEN}: smaller tiles or chunk"


def index(plan: PlanePlan) -> str | None:
    """Indices must fit 32 bits."""
    return too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))


def registers_needed(plan: PlanePlan) -> int:
    """Approximate registers per thread."""
    return plan.kept_registers + plan.fragment_registers + OVERHEAD


def registers(plan: PlanePlan) -> str | None:
    """Counts and fragments of a thread must fit its registers."""
    needed = registers_needed(plan)
    most = min(plan.arch.registers_per_thread, plan.arch.registers_per_sm // plan.threads // 8 * 8)
    return None if needed <= most else f"registers: about {needed} of a thread; at most {most}"


def shared_memory(plan: PlanePlan) -> str | None:
    """The stages of a block must fit shared memory."""
    most = plan.arch.shared_per_block
    return None if plan.shared_bytes <= most else f"shared: {plan.shared_bytes} bytes of a block; at most {most}"


RULES: tuple[Rule, ...] = (output, sums, sizes, same_program, written, index, registers, shared_memory)

"""Which kernels that skip zeros can be built, and why the others cannot: one reason per rule."""

from __future__ import annotations

from collections.abc import Callable

from subbyte.device.arch import Arch
from subbyte.device.atoms import UNPACKED_LOG2
from subbyte.families.condense.plan import CondensePlan
from subbyte.families.shared.reasons import first_reason
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.coverage import int4_alone, largest_tensor, sum_limit, too_large

GRID_LIMIT = 65_535
"""Most blocks along the second grid dimension."""
MASK_BITS = 32
REGISTER_OVERHEAD = 48
"""Registers per thread besides the accumulators: fragments, addresses, the rest of a mask."""


def other_layers(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no kernel of the family computes a workload, whatever its configuration; None when some may."""
    w = workload
    if (w.r, w.s, w.pad, w.stride) != (1, 1, 0, 1):
        return (
            f"not covered: {w.r}x{w.s}, stride {w.stride}, padding {w.pad}: zeros are found only in matrix products "
            "and 1x1 layers of stride 1 without padding"
        )
    if not arch.async_copy:
        return f"atom: m16n8k32.s8 and cp.async need sm_80 or later, not {arch.name}"
    return int4_alone(w) or sum_limit(w, UNPACKED_LOG2) or _pattern(w) or too_large(largest_tensor(w))


def _pattern(workload: ConvWorkload) -> str | None:
    if workload.precision.weights.group is None:
        return None
    pattern = workload.precision.weights.sparsity
    return f"operands: weights of the pattern {pattern} say where zeros are; a kernel of it or a dense one takes them"


def _layer(plan: CondensePlan) -> str | None:
    return other_layers(plan.workload, plan.arch)


def _index(plan: CondensePlan) -> str | None:
    return too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))


def _same(plan: CondensePlan) -> str | None:
    if plan.config.ahead and plan.chunks == 1:
        return f"same program: {plan.workload.channel_blocks} blocks of K are one chunk; leave ahead at 0"
    return None


def _grid(plan: CondensePlan) -> str | None:
    if plan.launch.grid[1] > GRID_LIMIT:
        return f"grid: {plan.launch.grid[1]} blocks along the columns exceed {GRID_LIMIT}"
    return None


def _threads(plan: CondensePlan) -> str | None:
    if plan.config.threads > plan.arch.threads_per_block:
        return f"threads: {plan.config.threads} of a block exceed {plan.arch.threads_per_block}"
    return None


def _waste(plan: CondensePlan) -> str | None:
    if plan.config.column_tiles == 3:
        return "divisibility: column_tiles is 1, 2 or 4, so that tiles fill a panel of 32 columns"
    blocks, panels = plan.workload.channel_blocks, plan.workload.filter_blocks
    if plan.config.chunk > blocks:
        return f"divisibility: a chunk of {plan.config.chunk} blocks is more than the {blocks} of K"
    if plan.block_panels >= 2 * panels and plan.block_panels > 1:
        return f"divisibility: {plan.block_panels} panels of 32 columns of a block are twice the {panels} there are"
    return None


def _bits(plan: CondensePlan) -> str | None:
    if plan.config.chunk * plan.config.sharing > MASK_BITS:
        return f"masks: {plan.config.chunk} blocks of {plan.config.sharing} lanes do not fit a word of {MASK_BITS} bits"
    return None


def _shared(plan: CondensePlan) -> str | None:
    if plan.shared_bytes > plan.arch.shared_per_block:
        return (
            f"shared memory: {plan.shared_bytes} bytes exceed the {plan.arch.shared_per_block} of a block on "
            f"{plan.arch.name}"
        )
    return None


def _registers(plan: CondensePlan) -> str | None:
    resident = plan.config.threads * max(1, plan.config.min_blocks)
    needed = plan.accumulators + REGISTER_OVERHEAD
    allowed = min(plan.arch.registers_per_thread, plan.arch.registers_per_sm // resident // 8 * 8)
    if needed > allowed:
        return f"registers: about {needed} per thread needed, {allowed} allowed with {resident} threads"
    return None


RULES: tuple[Callable[[CondensePlan], str | None], ...] = (
    _layer, _index, _bits, _waste, _same, _grid, _threads, _shared, _registers,
)  # fmt: skip


def why_not(plan: CondensePlan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    return first_reason(RULES, plan)

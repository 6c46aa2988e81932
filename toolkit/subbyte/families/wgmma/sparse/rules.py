"""Rules of the kernel for 2:4 weights, in addition to those of the pipeline; see
:mod:`subbyte.families.wgmma.rules`."""

from __future__ import annotations

from subbyte.families.wgmma import rules
from subbyte.families.wgmma.pipeline import rules as pipeline
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.workload import ConvWorkload
from subbyte.workload.coverage import four_bits_alone

PATTERN = (2, 4)


def weights(plan: WgmmaPlan) -> str | None:
    """Weights must be 2:4."""
    return other_weights(plan.workload)


def other_weights(workload: ConvWorkload) -> str | None:
    """Why a workload's weights do not suit the kernel; None when they do."""
    found = workload.precision.weights
    if found.group == PATTERN:
        return four_bits_alone(workload)
    return f"operands: this kernel multiplies 2:4 sparse weights, not {found}; a dense one takes them"


def channels(plan: WgmmaPlan) -> str | None:
    """An instruction takes two blocks of 32 channels; an odd number of blocks in a stage is followed by a block of
    zeros."""
    blocks, groups = plan.workload.channel_blocks, plan.knobs.channel_groups
    if blocks % groups == 0 and plan.channels % 2 and groups > 1:
        return f"divisibility: an instruction takes 64 input channels; a stage of {groups} has {32 * plan.channels}"
    return None


def meaningless(plan: WgmmaPlan) -> str | None:
    """Knobs that only other kernels have must be at their defaults."""
    config = plan.knobs
    if config.cluster_split_k > 1 or config.tiles_m > 1 or plan.lowered:
        return "stages: 2:4 weights go with none of cluster_split_k, tiles_m=2 and duplicate_aware=none"
    return None


def resident(plan: WgmmaPlan) -> str | None:
    """Weights that stay in registers must be all weights of a single tile of output channels."""
    config = plan.knobs
    if config.rows_ahead and (plan.keep_rows or plan.tap_rows == 1 or plan.unroll < plan.steps):
        with_them = "rows of each iteration's own (row_reuse=0, 3) and all channels of a stage in a loop body (unroll)"
        return f"registers: weights of all kernel rows ahead go with {with_them}"
    if not config.resident:
        return None
    if config.m_iterations > 1 or config.channel_groups > 1 or not plan.keep_rows:
        return "registers: weights stay for one tile of all channels (m_iterations=1, channel_groups=1, row_reuse=1, 2)"
    if config.unroll > 1:
        return "same program: weights that stay are all written out; leave unroll at 1"
    return None


RULES: tuple[rules.Rule, ...] = (
    weights, meaningless, channels, resident, *pipeline.RULES,
)  # fmt: skip
"""In the order in which they are checked."""

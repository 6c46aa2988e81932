"""Rules of the kernel for block-sparse weights, in addition to those of the pipeline."""

from __future__ import annotations

from subbyte.families.wgmma import rules
from subbyte.families.wgmma.pipeline import rules as pipeline
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.workload import ConvWorkload
from subbyte.workload.coverage import four_bits_alone

MOST_PAIRS = 4
"""Most fragments in a loop body."""
MOST_TAPS = 14
"""Most kernel rows whose list ends fit into the head of a tile."""


def weights(plan: WgmmaPlan) -> str | None:
    """Weights must have blocks of zeros."""
    return other_weights(plan.workload)


def other_weights(workload: ConvWorkload) -> str | None:
    """Why a workload's weights do not suit the kernel; None when they do."""
    found = workload.precision.weights
    if found.live_percent is not None:
        return four_bits_alone(workload)
    return f"operands: this kernel multiplies weights with blocks of zeros, not {found}; a dense one takes them"


def meaningless(plan: WgmmaPlan) -> str | None:
    """Knobs that only other kernels have must be at their defaults."""
    config = plan.knobs
    if config.cluster_split_k > 1 or config.tiles_m > 1 or config.m_iterations > 1 or plan.lowered or config.half_rows:
        return (
            "stages: a live list goes with none of cluster_split_k, tiles_m=2, m_iterations, half_rows and "
            "duplicate_aware=none"
        )
    if config.channel_groups > 1 or not plan.keep_rows or config.early_release:
        return "stages: live blocks are of all channels and kernel rows at once (channel_groups=1, row_reuse=1)"
    if config.unroll > 1:
        return "same program: live_pairs says how long a loop body is; leave unroll at 1"
    return None


def pairs(plan: WgmmaPlan) -> str | None:
    """A loop body must have a valid number of live-block pairs, and the head of the live list must have room for the
    kernel rows."""
    if plan.knobs.live_pairs > MOST_PAIRS:
        return f"registers: live_pairs {plan.knobs.live_pairs}: allowed: 1 to {MOST_PAIRS}"
    if plan.tap_rows > MOST_TAPS:
        return f"stages: a list of live blocks has room for {MOST_TAPS} kernel rows, not {plan.tap_rows}"
    return None


RULES: tuple[rules.Rule, ...] = (weights, meaningless, pairs, *pipeline.RULES)
"""In the order in which they are checked."""

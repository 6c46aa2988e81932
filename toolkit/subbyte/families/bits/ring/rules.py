"""Whether a plan with a ring can be built, and why not: rules, checked in order."""

from __future__ import annotations

from collections.abc import Callable

from subbyte.device.arch import Arch
from subbyte.families.bits.geometry import COLUMNS, WORKING_REGISTERS
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.shared.bit_rules import bit_operands, compared_output, compared_range
from subbyte.families.shared.reasons import first_reason
from subbyte.numerics.fusion import NOTHING
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import SUMS

MOST_BLOCKS = 8
"""The largest cluster that every GPU can launch (CUDA C++ Programming Guide, thread block clusters)."""

Rule = Callable[[RingPlan], str | None]


def single_pixels(workload: ConvWorkload) -> str | None:
    """Each window must be a single pixel."""
    w = workload
    if (w.r, w.s, w.pad, w.stride) == (1, 1, 0, 1):
        return None
    return "not covered: a ring goes through the channels of single pixels (1x1, stride 1, no padding), no windows"


def output(plan: RingPlan) -> str | None:
    """Codes must count thresholds, with nothing fused in between."""
    if plan.fusion != NOTHING:
        return "fusion: a ring neither pools nor adds nor keeps sums; take a kernel without"
    return compared_output(plan.output, plan.view.precision.output)


def sizes(plan: RingPlan) -> str | None:
    """Knobs must fit the layer."""
    w, config = plan.view, plan.config
    if config.channels not in (32, 64, 128, 256):
        return f"tiles: {config.channels} output channels; allowed: 32, 64, 128, 256"
    if config.channels // 2 >= -(-w.k // 32) * 32:
        return f"tiles: {config.channels} output channels of a layer with {w.k}"
    if plan.filter_columns not in COLUMNS:
        return f"columns: {plan.filter_columns} are no N of an instruction"
    if plan.block_pixels // 2 >= w.w and config.consumers > 1:
        return f"tiles: {plan.block_pixels} pixels of a block for a layer with {w.w}"
    if config.depth % 2 or config.depth // 2 >= plan.channel_blocks:
        return f"stages: {config.depth} blocks of channels of a stage for {plan.channel_blocks}; say an even number"
    return None


def ring(plan: RingPlan) -> str | None:
    """Stages must differ in what they do."""
    config = plan.config
    if config.lead and (config.consumers == 1 or config.lead >= min(config.stages, plan.tile_stages + 1)):
        return f"stages: {config.lead} ahead needs several warpgroups, a longer ring and as many stages of a tile"
    if config.stages > plan.turns * plan.tile_stages and config.stages > 2:
        return f"stages: a ring of {config.stages} for {plan.turns * plan.tile_stages} stages"
    return None


def cluster(plan: RingPlan) -> str | None:
    """Blocks must be able to share evenly."""
    config, w = plan.config, plan.view
    weights, pixels = config.share_weights, config.share_pixels
    if 3 in (weights, pixels) or plan.cluster > MOST_BLOCKS:
        return f"cluster: {weights} x {pixels} blocks; allowed: 1, 2, 4 either way, 8 together"
    if plan.slices % pixels:
        return f"cluster: {pixels} blocks that share activations do not divide {plan.slices} slices of channels"
    if weights > 1 and (weights - 1) * plan.block_pixels >= w.w:
        return f"cluster: {weights} blocks of {plan.block_pixels} pixels for a layer with {w.w}"
    return None


def compared(plan: RingPlan) -> str | None:
    """The part that varies with the pixel must fit 32 bits for the comparison."""
    return compared_range(*plan.span) if plan.output != SUMS and not plan.by_line else None


def registers(plan: RingPlan) -> str | None:
    """Counts and activations of a thread must fit its registers."""
    most = plan.granted - WORKING_REGISTERS
    held = plan.counts + 2 * plan.fragments
    return None if held <= most else f"registers: {held} for counts and activations of a thread; at most {most}"


def shared_memory(plan: RingPlan) -> str | None:
    """Stages, tables and barriers of a block must fit shared memory."""
    most = plan.arch.shared_per_block
    return None if plan.shared_bytes <= most else f"shared: {plan.shared_bytes} bytes of a block; at most {most}"


def hopeless_layer(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no ring at all can be built for a layer; None when some may."""
    reason = bit_operands(workload, "bits", "wgmma") or single_pixels(workload)
    if reason or arch.warpgroups:
        return reason
    return f"not covered: one-bit wgmma exists on sm_90a, not on {arch.name}"


RULES: tuple[Rule, ...] = (output, sizes, ring, cluster, compared, registers, shared_memory)


def why_not(plan: RingPlan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    return single_pixels(plan.workload) or first_reason(RULES, plan)

"""Rules of the kernel whose blocks make a single tile iteration and get their weights by bulk copies; see
:mod:`subbyte.families.wgmma.rules`."""

from __future__ import annotations

from subbyte.families.wgmma import rules
from subbyte.families.wgmma.memory import FRAGMENT_BYTES
from subbyte.families.wgmma.plan import WgmmaPlan


def techniques(plan: WgmmaPlan) -> str | None:
    """Each input pixel must be loaded once: this kernel has no other way."""
    return (
        "stages: a single tile iteration loads every pixel once; duplicate_aware=none needs a pipeline"
        if plan.lowered
        else None
    )


def single_iteration(plan: WgmmaPlan) -> str | None:
    """There must be a single tile iteration, and neighbours must divide its places."""
    knobs = plan.knobs
    if knobs.segments * knobs.tile_rows < plan.output_size[0]:
        return "stages: a block with bulk-copied weights must have a single tile iteration (segments * tile_rows)"
    if plan.flat or (16 % plan.loaded_blocks and plan.loaded_blocks % 16):
        return "stages: bulk-copied weights need a kernel with rows, and 1, 2, 4, 8 or a multiple of 16 channel blocks"
    if plan.odd_part:
        return "stages: bulk-copied weights need an even number of blocks of 16 channels of bytes"
    if knobs.consumers > plan.window:
        return f"stages: {knobs.consumers} consumers load a row each; the block reads {plan.window}"
    if plan.multicast_blocks * knobs.cluster_split_k > 8:
        return f"cluster: multicast {knobs.multicast} times cluster_split_k {knobs.cluster_split_k} blocks; at most 8"
    if plan.places % plan.multicast_blocks and (not plan.odd_places or plan.filter_blocks % 2):
        return f"cluster: {plan.multicast_blocks} blocks that share weights do not divide {plan.places} places"
    if plan.ahead * FRAGMENT_BYTES // 16 % plan.multicast_blocks:
        return f"cluster: {plan.multicast_blocks} blocks do not divide the 16-byte pieces of {plan.ahead} fragments"
    return None


def order_of_loads(plan: WgmmaPlan) -> str | None:
    """Rules for when weights and parameters are read."""
    knobs = plan.knobs
    if knobs.weights_ahead > plan.ahead:
        return f"stages: weights_ahead {knobs.weights_ahead} of the {plan.ahead} fragments of a loop body"
    if knobs.early_parameters and knobs.cluster_split_k > 1:
        return "cluster: with cluster_split_k, one instruction adds sums and parameters; leave parameters at 0 or 1"
    if knobs.early_start == 2 and (knobs.consumers > 1 or plan.copies < 2):
        return "stages: early_start=2 divides the row of one consumer, of two loads at least for a thread"
    return None


RULES: tuple[rules.Rule, ...] = (
    techniques, rules.architecture, rules.operands, rules.sizes, rules.accumulator, rules.padding, rules.width,
    rules.row_division, rules.consumers, rules.channel_division, rules.cluster, single_iteration, rules.shared_memory,
    rules.registers, rules.code_size, rules.index,
)  # fmt: skip
"""In the order in which they are checked; :func:`order_of_loads`, which reads few knobs, follows them."""

"""Rules of blocks that make a single pass and get their weights by bulk copies; see
:mod:`subbyte.families.wgmma.rules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subbyte.families.wgmma.memory import FRAGMENT_BYTES
from subbyte.families.wgmma.plan import WarpgroupPlan

_BULK_NEEDS = {
    "load_ahead": 1, "groups_y": 1, "filter_passes": 1, "channel_groups": 1, "keep_rows": 1, "weight_ring": 0,
    "stagger": 0, "at_once": 0, "swizzle": 0, "early_release": 0, "flatten": 0, "tiles_m": 1, "producers": 1,
    "joined": 0, "image_groups": 1, "producer_registers": 0, "producer_late": 0, "lean_start": 0,
    "duplicate_aware": "full",
}  # fmt: skip
"""Values of the other knobs with ``bulk_weights``."""
BULK_ONLY = ("weights_ahead", "late_parameters", "early_parameters", "early_start")
"""Knobs of these blocks alone, which no rule but :func:`bulk_only` reads: it comes last."""


def refused_early(values: Mapping[str, Any]) -> str | None:
    """Why a configuration with these values (the others are the defaults) cannot be built, from the values alone:
    quick, for spaces with many such."""
    if not values.get("bulk_weights"):
        return None
    for name, needed in _BULK_NEEDS.items():
        if values.get(name, needed) != needed:
            return f"stages: bulk_weights needs {name}={needed}"
    return None


def early(plan: WarpgroupPlan) -> str | None:
    """The same as a rule."""
    return refused_early(vars(plan.config))


def bulk(plan: WarpgroupPlan) -> str | None:
    """What else a block with ``bulk_weights`` needs: a single pass, and neighbours that divide its places."""
    config = plan.config
    if not config.bulk_weights:
        return None
    if config.segments * config.tile_rows < plan.output_size[0]:
        return "stages: a block whose weights come by bulk copies (bulk_weights) must have a single pass"
    if plan.flat or (16 % plan.channels and plan.channels % 16):
        return "stages: bulk_weights is for kernels with rows, and 1, 2, 4, 8 or a multiple of 16 channel blocks"
    if config.ring != plan.window:
        return f"stages: bulk_weights keeps every row: ring must be {plan.window}"
    if config.consumers > plan.window:
        return f"stages: {config.consumers} warpgroups bring a row each; a block with bulk_weights reads {plan.window}"
    if config.bulk_weights * config.split > 8:
        return f"cluster: {config.bulk_weights} times split {config.split} blocks; allowed: up to 8"
    if plan.places % plan.peers and (not plan.odd_places or plan.filter_blocks % 2):
        return f"cluster: {plan.peers} blocks that share weights do not divide {plan.places} places"
    if plan.ahead * FRAGMENT_BYTES // 16 % plan.peers:
        return f"cluster: {plan.peers} blocks do not divide the 16-byte pieces of {plan.ahead} fragments"
    return None


def bulk_only(plan: WarpgroupPlan) -> str | None:
    """What reads weights or parameters at another time."""
    config = plan.config
    if not config.bulk_weights:
        for name in BULK_ONLY:
            if getattr(config, name):
                return f"same program: {name} has no meaning without bulk_weights; leave it at 0"
    if config.weights_ahead > plan.ahead:
        return f"stages: weights_ahead {config.weights_ahead} of the {plan.ahead} fragments of a loop body"
    if config.early_parameters and config.late_parameters:
        return "stages: parameters are asked for once, early or late (early_parameters=0 or late_parameters=0)"
    if config.early_parameters and config.split > 1:
        return "cluster: with split, sums and parameters are added by one instruction; leave early_parameters at 0"
    if config.early_start == 2 and (config.consumers > 1 or plan.copies < 2):
        return "stages: early_start=2 divides the row of one consumer, of two loads at least for a thread"
    return None

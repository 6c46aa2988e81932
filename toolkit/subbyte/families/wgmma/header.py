"""What the C header of a kernel on ``wgmma`` needs: the order of its weights."""

from __future__ import annotations

from dataclasses import asdict
from math import prod
from pathlib import Path

from subbyte.families.base import ExportParts
from subbyte.families.shared.header.bytes import Zero, byte_parts
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.weights import ORDERS
from subbyte.workload.conv import CHANNEL_BLOCK
from subbyte.workload.coverage import four_bits_alone

_HERE = Path(__file__).parent
FRAGMENT_THREADS = 128
AXES = ("tile", "rank", "row", "group", "step", "column")
"""Axes of the weights: 64 filters, block of the cluster, kernel row, part of the input channels, step of 32 or 64
channels within it, kernel column."""


def header_parts(plan: WgmmaPlan) -> ExportParts:
    """What the header needs. Raises Unsupported for a residual with 8-bit operands."""
    if plan.knobs.listed:
        text = (_HERE / "blocks/weights.h").read_text(encoding="utf-8")
        numbers = {f"list_{name}": str(value) for name, value in asdict(plan.list_form).items()}
        return ExportParts({"weights": text}, (plan.weight_words,), numbers)
    axes = weight_axes(plan)
    places = {name: prod(size for _, size in axes[index + 1 :]) for index, (name, _) in enumerate(axes)}
    words = {
        "halves": str(plan.halves), "steps": str(plan.steps), "weight_groups": str(dict(axes)["group"]),
        "fragment_channels": str(plan.halves * CHANNEL_BLOCK),
        "weight_axes": ", ".join(f"{name} [{size}]" for name, size in axes),
        **{f"{name}_step": str(places[name]) for name in AXES},
    }  # fmt: skip
    sparse = bool(plan.knobs.sparse)
    fragment = (plan.fragment_words,) if sparse else (FRAGMENT_THREADS, 4)
    if four_bits_alone(plan.workload) is not None:
        shape = (*(size for _, size in axes), *fragment)
        text = (_HERE / "byte_weights.h").read_text(encoding="utf-8")
        more = {**words, **_order_in_fragment(plan, prod(shape))}
        zero = Zero(plan.zero_point, plan.atom.scale_log2, plan.workload.padded_filters)
        return byte_parts(plan, text, shape, more, zero)
    text = (_HERE / ("sparse/weights.h" if sparse else "weights.h")).read_text(encoding="utf-8")
    return ExportParts({"weights": text}, (*(size for _, size in axes), *fragment), words)


def _order_in_fragment(plan: WgmmaPlan, words: int) -> dict[str, str]:
    """Where a fragment holds a weight: the lane of four, the pair of words and the bit; ``words`` come before that."""
    found = {"inverted": "", "fill": "0u", "lane": "c % 32 / 8", "pair": "c % 2 * 2", "bit": "c % 8 / 2 * 8",
             "own_channels": "8*q..8*q+7"}  # fmt: skip
    if plan.bytes_in:
        found |= {"lane": "c % 16 / 4", "pair": "c % 32 / 16 * 2", "bit": "c % 4 * 8",
                  "own_channels": "4*q..4*q+3 of each half"}  # fmt: skip
    if plan.whole_weights:
        found |= {"inverted": ", every bit turned round", "fill": "0xFFFFFFFFu"}
        if plan.zero_point:
            found["fill"] = f"i < {words} ? 0xFFFFFFFFu : 0u"
    return found


def weight_axes(plan: WgmmaPlan) -> list[tuple[str, int]]:
    """Name and size of the axes before a fragment of weights, the outermost first."""
    c, r, s = plan.knobs, plan.workload.r, plan.workload.s
    sizes = (plan.padded_tiles, c.cluster_split_k, r, c.channel_groups, plan.steps, s)
    by_axis = dict(zip(ORDERS["rows"], zip(AXES, sizes, strict=True), strict=True))
    return [by_axis[axis] for axis in ORDERS[plan.weight_order]]

"""What the C header of a kernel on ``mma.sync`` needs: the order of its weights."""

from __future__ import annotations

from pathlib import Path

from subbyte.families.base import ExportParts
from subbyte.families.mma.operand_sizes import BLOCK_WORDS
from subbyte.families.mma.plan import Plan
from subbyte.families.shared.header.bytes import Zero, byte_parts
from subbyte.workload.conv import CHANNEL_BLOCK
from subbyte.workload.coverage import four_bits_alone

_HERE = Path(__file__).parent
_TWO_TILES = " in\n * the lower half of each byte, of 8*tile + 8 + o in the upper one, tile counting by two"


def header_parts(plan: Plan) -> ExportParts:
    """What the header needs. Raises Unsupported for a residual with 8-bit operands."""
    w = plan.workload
    if four_bits_alone(w) is not None:
        return _of_bytes(plan)
    groups = w.filter_blocks * CHANNEL_BLOCK // 8 // plan.vector
    return ExportParts(
        {"weights": (_HERE / "weights.h").read_text(encoding="utf-8")},
        (w.channel_blocks, w.r * w.s, groups, BLOCK_WORDS, plan.vector),
        {"vector": str(plan.vector), "groups": str(groups)},
        {"WEIGHT_VECTOR": plan.vector},
    )


def _of_bytes(plan: Plan) -> ExportParts:
    w = plan.workload
    groups = plan.filters // 8 // plan.tiles_together // plan.vector
    words = {
        "x_block": str(w.precision.activations.block), "vector": str(plan.vector), "groups": str(groups),
        "tile_filters": str(8 * plan.tiles_together), "of_two_tiles": "", "upper": "",
    }  # fmt: skip
    if plan.tiles_together == 2:
        words |= {"upper": " + k / 8 % 2 * 4", "of_two_tiles": _TWO_TILES}
    shape = (w.channel_blocks, w.r * w.s, groups, BLOCK_WORDS, plan.vector)
    zero = Zero(plan.zero_point, plan.atom.scale_log2, plan.filters)
    text = (_HERE / "byte_weights.h").read_text(encoding="utf-8")
    return byte_parts(plan, text, shape, words, zero, {"WEIGHT_VECTOR": plan.vector})

"""What the C header of a kernel on ``mma.sync`` needs: the order of its weights, and other texts where operands are not
all of four bits or have a zero point (``bytes.h``)."""

from __future__ import annotations

from pathlib import Path

from subbyte.errors import Unsupported
from subbyte.families.base import ExportParts
from subbyte.families.mma.operand_sizes import BLOCK_WORDS
from subbyte.families.mma.plan import Plan
from subbyte.families.shared.header import sections_of
from subbyte.numerics.fusion import Fusion
from subbyte.workload.conv import CHANNEL_BLOCK
from subbyte.workload.coverage import four_bits_alone
from subbyte.workload.operand import SIGNED, WORD_BITS, Operand
from subbyte.workload.precision import SUMS

_HERE = Path(__file__).parent
_TWO_TILES = " in\n * the lower half of each byte, of 8*tile + 8 + o in the upper one, tile counting by two"
_SUM = "        int64_t sum = 0;\n"
_ADD = "                sum += value;\n"
_CORRECTION = (
    "        words[@base@ + k] = (uint32_t)((uint64_t)(-(int64_t)(@x_zero@) * sum) & 0xFFFFFFFFu) << @scale_log2@;\n"
)


def header_parts(plan: Plan) -> ExportParts:
    """What the header needs. Raises Unsupported for a residual beside operands of 8 bits."""
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
    w, types, texts = plan.workload, plan.workload.precision, sections_of(_HERE / "bytes.h")
    if Fusion.of(plan.output).added is not None:
        raise Unsupported(
            f"export of {w}: {plan.output} adds a tensor, and C headers of residuals are written for operands of four "
            "bits without zero points"
        )
    groups = plan.filters // 8 // plan.tiles_together // plan.vector
    shape: tuple[int, ...] = (w.channel_blocks, w.r * w.s, groups, BLOCK_WORDS, plan.vector)
    sections = {
        "index": texts[f"index_{plan.layout}"], "operands": texts["operands"], "weights": texts["weights"],
        "output": texts["output_sums" if plan.output == SUMS else "output_values"],
    }  # fmt: skip
    words = {
        **_type("x", types.activations), **_type("w", types.weights), **_type("y", types.output),
        "x_block": types.activations.block, "vector": plan.vector, "groups": groups,
        "tile_filters": 8 * plan.tiles_together, "correction_words": "", "sum": "", "add": "", "correction": "",
        "of_two_tiles": "", "upper": "",
    }  # fmt: skip
    if plan.tiles_together == 2:
        words |= {"upper": " + k / 8 % 2 * 4", "of_two_tiles": _TWO_TILES}
    if plan.zero_point:
        shape = (plan.correction_base + plan.filters,)
        text = _CORRECTION.replace("@base@", str(plan.correction_base)).replace("@x_zero@", str(plan.zero_point))
        words |= {
            "sum": _SUM, "add": _ADD, "correction": text.replace("@scale_log2@", str(plan.atom.scale_log2)),
            "correction_words": "\n * Behind them stands, for each filter, what its sums begin with: minus the zero "
                                f"point {plan.zero_point} times\n * the sum of its weights.",
        }  # fmt: skip
    return ExportParts(sections, shape, {name: str(one) for name, one in words.items()}, {"WEIGHT_VECTOR": plan.vector})


def _type(name: str, operand: Operand) -> dict[str, object]:
    """A type's texts by its name: sizes, and how codes become values."""
    bits = operand.bits
    return {
        f"{name}_host": operand.dtype, f"{name}_bits": bits, f"{name}_mask": (1 << bits) - 1,
        f"{name}_elements": WORD_BITS // bits, f"{name}_least": operand.least, f"{name}_largest": operand.largest,
        f"{name}_zero" if name == "x" else f"{name}_zero_point": operand.zero_point or 0,
        f"{name}_flip": 1 << bits - 1 if operand.encoding == SIGNED else 0,
    }  # fmt: skip

"""Parts of the C header for kernels that add a residual: a fourth row of parameters, and one more tensor."""

from __future__ import annotations

from subbyte.families.base import Plan
from subbyte.numerics.fusion import Fusion
from subbyte.numerics.requant import ADDED_MAX
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import WORD_BITS, Operand

_FIXED = """        if (added[k] < -@most@ || added[k] > @most@) {
            return @NAME@_BAD_VALUE;
        }
        factor = (int64_t)added[k] * ((int64_t)1 << (@fixed_shift@ - shift[k]));
        if (factor >= (int64_t)1 << 31 || factor <= -((int64_t)1 << 31)) {
            return @NAME@_NOT_EXACT;
        }
        words[3 * row + k] = (uint32_t)((uint64_t)factor & 0xFFFFFFFFu);
"""
_GENERAL = """        if (used && (added[k] < -@most@ || added[k] > @most@)) {
            return @NAME@_BAD_VALUE;
        }
        words[3 * row + k] = used ? (uint32_t)added[k] : 0u;
"""
BODIES = ("added_fixed", "added_general")
"""Placeholders whose text contains other placeholders."""


def added_to(plan: Plan) -> Operand | None:
    """The type of the values that a kernel adds to its sums."""
    return Fusion.of(plan.output).added


def added_words(plan: Plan) -> dict[str, str]:
    """The template's texts about the residual, by name; empty for a kernel without one."""
    names = ("added_line", "host_residual", "usage_residual", "usage_device", "added_term", "added_and", "added_row",
             "added_argument", "added_fixed", "added_general", "launch_parameters", "launch_argument")  # fmt: skip
    operand = added_to(plan)
    if operand is None:
        return {**dict.fromkeys(names, ""), "rows": "3", "offset_bits": "62"}
    w, blocks = plan.workload, ceil_div(plan.workload.k, operand.block)
    bits, packed = operand.bits, plan.layout == "nhwcnc"
    pixel = "((n / 8 * height + p) * width + q)" if packed else "((n * height + p) * width + q)"
    per_word, block = WORD_BITS // bits, 4 * WORD_BITS // bits
    among = f"({pixel} * {blocks} + k / {block}) * 8 + n % 8) * 4 + k % {block} / {per_word}"
    return {
        "added_line": f" *   r  {operand.name} [N={w.n}][P={w.p}][Q={w.q}][K={w.k}]  residual, added before sums are "
                      f"rounded, values {operand.least}..{operand.largest}\n",
        "host_residual": f", r: {operand.dtype}",
        "usage_residual": " *   pack_residual(r, words)                  words to the device, RESIDUAL_BYTES\n",
        "usage_device": "residual, ",
        "added_term": "r * added + ", "added_and": ", added (-2^24..2^24)", "added_row": ", added",
        "added_argument": "const int32_t *added, ",
        "added_fixed": _FIXED, "added_general": _GENERAL,
        "launch_parameters": " *   residual    RESIDUAL_BYTES, as pack_residual makes them\n",
        "launch_argument": "CUdeviceptr residual, ",
        "rows": "4", "offset_bits": "61", "most": str(ADDED_MAX),
        "r_host": operand.dtype, "r_type": operand.name,
        "r_least": str(operand.least), "r_largest": str(operand.largest),
        "r_bits": str(bits), "r_mask": str((1 << bits) - 1), "r_elements": str(per_word),
        "r_word": f"({among}" if packed else f"{pixel} * {4 * blocks} + k / {per_word}",
    }  # fmt: skip

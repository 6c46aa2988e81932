"""The parts of a C header for operands that are not all four-bit, or have a zero point: how values are packed and
unpacked, and the initial sums with a zero point. The texts are in ``bytes.h`` next to this file; the order of its
weights depends on the family."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import NamedTuple

from subbyte.errors import Unsupported
from subbyte.families.base import ExportParts, Plan
from subbyte.families.shared.header import sections_of
from subbyte.numerics.fusion import Fusion
from subbyte.workload.operand import SIGNED, WORD_BITS, Operand
from subbyte.workload.precision import SUMS

_HERE = Path(__file__).parent
_SUM = "        int64_t sum = 0;\n"
_ADD = "                sum += value;\n"
_CORRECTION = (
    "        words[@base@ + k] = (uint32_t)((uint64_t)(-(int64_t)(@x_zero@) * sum) & 0xFFFFFFFFu) << @scale_log2@;\n"
)


class Zero(NamedTuple):
    """A zero point of activations, the power of two by which sums are scaled, and the number of filters after
    padding."""

    point: int
    scale_log2: int
    filters: int


def byte_parts(
    plan: Plan, weights: str, shape: tuple[int, ...], words: Mapping[str, str], zero: Zero,
    defines: Mapping[str, int] | None = None,
) -> ExportParts:  # fmt: skip
    """What the header needs in addition to its family's ``weights``, of ``shape`` words, and ``words`` in that text;
    with a zero point the initial sum of each filter follows the weights. Raises Unsupported for a residual."""
    w, types, texts = plan.workload, plan.workload.precision, sections_of(_HERE / "bytes.h")
    if Fusion.of(plan.output).added is not None:
        raise Unsupported(
            f"export of {w}: {plan.output} adds a tensor, and C headers of residuals are written for operands of four "
            "bits without zero points"
        )
    sections = {
        "index": texts[f"index_{plan.layout}"], "operands": texts["operands"], "weights": weights,
        "output": texts["output_sums" if plan.output == SUMS else "output_values"],
    }  # fmt: skip
    found = {
        **_type("x", types.activations), **_type("w", types.weights), **_type("y", types.output),
        "correction_words": "", "sum": "", "add": "", "correction": "",
    }  # fmt: skip
    if zero.point:
        base = prod(shape)
        shape = (base + zero.filters,)
        text = _CORRECTION.replace("@base@", str(base)).replace("@x_zero@", str(zero.point))
        found |= {
            "sum": _SUM, "add": _ADD, "correction": text.replace("@scale_log2@", str(zero.scale_log2)),
            "correction_words": "\n * Behind them stands, for each filter, what its sums begin with: minus the zero "
                                f"point {zero.point} times\n * the sum of its weights.",
        }  # fmt: skip
    return ExportParts(sections, shape, {**found, **words}, dict(defines or {}))


def _type(name: str, operand: Operand) -> dict[str, str]:
    """The texts for a type, by its name: sizes, and how codes become values."""
    bits = operand.bits
    numbers = {
        "bits": bits, "mask": (1 << bits) - 1, "elements": WORD_BITS // bits, "least": operand.least,
        "largest": operand.largest, "zero" if name == "x" else "zero_point": operand.zero_point or 0,
        "flip": 1 << bits - 1 if operand.encoding == SIGNED else 0,
    }  # fmt: skip
    return {f"{name}_host": operand.dtype, **{f"{name}_{one}": str(value) for one, value in numbers.items()}}

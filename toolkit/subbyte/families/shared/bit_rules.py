"""What all kernels on bit planes accept, whichever instruction multiplies."""

from __future__ import annotations

from functools import cache

from subbyte.errors import Unsupported
from subbyte.numerics.bit_products import bit_products, range_reason
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import DENSE, UNSIGNED, Operand
from subbyte.workload.precision import INT4, SUMS

MOST_OUTPUT_BITS = 4
MOST_SUM = 1 << 31


def bit_operands(workload: ConvWorkload, name: str, other: str) -> str | None:
    """Both operands must be bit planes; int4 has the family ``other``, which is faster."""
    types = workload.precision
    if types == INT4:
        return f"operands: {name} kernels compute bit planes, such as w1a2; int4 has the {other} family"
    for operand in (types.weights, types.activations):
        if operand.sparsity != DENSE:
            return f"not covered: {operand} is sparse; {name} kernels take dense operands"
    try:
        bit_products(types)
    except Unsupported as error:
        return f"not covered: {error}"
    return range_reason(workload)


def compared_range(least: int, largest: int) -> str | None:
    """A sum is compared by the sign of a difference, which must fit 32 bits."""
    if largest - least < MOST_SUM - 1:
        return None
    return f"range: what is compared goes from {least} to {largest}, beyond 32 bits; use fewer channels"


@cache
def compared_output(output: str, operand: Operand) -> str | None:
    """The output must be codes that count thresholds, or sums."""
    if output == SUMS:
        return None
    if operand.bits > MOST_OUTPUT_BITS:
        count = (1 << operand.bits) - 1
        return f"output: {operand.name} has {count} thresholds; at most 15: say fewer bits (o4), or take int32 sums"
    if operand.encoding == UNSIGNED or list(operand.values) == sorted(operand.values):
        return None
    return (
        f"output: codes of {operand.name} do not rise with its values; name another output "
        "behind weights and activations, such as w2a2:signed.signed.offset, or take int32 sums"
    )

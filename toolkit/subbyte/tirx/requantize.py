"""Requantization inside a kernel: from a scaled int32 sum to a value of the output's type."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers
from subbyte.workload.operand import SIGNED

SIGNS = 0x88888888
"""The upper bit of every int4 value: the difference between v and v + 8."""
PACKED = {True: (-8, 7), False: (0, 15)}
"""The range to which ``cvt.pack.sat`` itself saturates, for a signed and an unsigned type of four bits."""
PACKED_BYTES = {True: (-128, 127), False: (0, 255)}
"""The same for eight bits."""
UNBOUNDED = (-(1 << 31), (1 << 31) - 1)


def signed_output(plan: Any) -> bool:
    """Whether the codes that a kernel outputs are signed."""
    return bool(plan.workload.precision.output.encoding == SIGNED)


def requantize(
    plan: Any, value: Any, parameters: list[Any], saturated: tuple[int, int] | None = None, residual: Any = None
) -> Any:
    """The requantized int32 of a scaled sum, given the channel's three int32 parameters (or, in the fixed form, two:
    the factor and the 64-bit offset).

    ``saturated``: the range to which the packing instruction saturates, four bits by default; a narrower clip is
    applied here. ``residual``: an int32 value that is multiplied by the channel's fourth parameter and added.
    """
    low, high = plan.clip
    ends = saturated or PACKED[signed_output(plan)]
    rows = [T.cast(parameter, "int64") for parameter in parameters]
    if plan.requant == "fixed":
        offset = rows[1] if len(rows) == 2 else (rows[2] << T.int64(32)) | (rows[1] & T.int64(0xFFFFFFFF))
        total = T.cast(value, "int64") * rows[0] + offset
        if residual is not None:  # scaled like the sums of the matrix instruction
            total = total + T.cast(residual << T.int32(plan.atom.scale_log2), "int64") * rows[3]
        result = T.cast(total >> T.int64(32), "int32")
    else:
        bias, multiplier, shift, *factor = rows
        total = T.cast(value >> T.int32(plan.atom.scale_log2), "int64") + bias
        product = total * multiplier
        if residual is not None:
            product = product + T.cast(residual, "int64") * factor[0]
        rounded = (product + (T.int64(1) << (shift - T.int64(1)))) >> shift
        least, most = min(low, -128), max(high, 127)  # the instruction that packs saturates 32 bits
        result = T.cast(T.max(T.min(rounded, T.int64(most)), T.int64(least)), "int32")
    if low > ends[0]:
        result = T.max(result, T.int32(low))
    if high < ends[1]:
        result = T.min(result, T.int32(high))
    return result


def requantized_code(plan: Any, value: Any, parameters: list[Any], residual: Any = None) -> Any:
    """The same as a code of a 4-bit or 8-bit output, to be packed by the instruction for its type."""
    output = plan.workload.precision.output
    if output.zero_point:  # clipped as a value, which is stored as a code
        return requantize(plan, value, parameters, UNBOUNDED, residual) + T.int32(output.zero_point)
    saturated = PACKED_BYTES[signed_output(plan)] if plan.bytes_out else None
    return requantize(plan, value, parameters, saturated, residual)


def by_float(plan: Any, value: Any, factor: Any, offset: Any) -> Any:
    """The requantized int32 minus the output's least value, not yet saturated to 0..15. ``value`` is a scaled sum plus
    the constant of the floating-point form (:mod:`subbyte.numerics.float_requant`); for int4, a clip to 0..7 is left to
    :func:`finished`."""
    product = registers("product", 1, "float32")
    op.multiply_add(product[0], T.reinterpret("float32", value), factor, offset)
    result = T.reinterpret("int32", product[0])
    if _positive_halves(plan):
        return result  # done for eight values at a time: see finished
    low, high = (end - plan.workload.precision.output.least for end in plan.clip)
    if low > 0:
        result = T.max(result, T.int32(low))
    return T.min(result, T.int32(high)) if high < 15 else result


def finished(plan: Any, word: Any) -> Any:
    """Eight values from :func:`by_float`, packed as 0..15, converted to what is stored."""
    if not signed_output(plan):
        return word
    if not _positive_halves(plan):
        return word ^ T.uint32(SIGNS)
    positive = bind("positive", word & T.uint32(SIGNS))  # v + 8 has its upper bit where v >= 0
    return word & (positive - (positive >> T.uint32(3)))


def _positive_halves(plan: Any) -> bool:
    """Whether the values are int4 clipped to 0..7: one bit then tells whether to keep them."""
    return bool(signed_output(plan) and plan.clip == (0, 7) and not plan.workload.precision.output.zero_point)

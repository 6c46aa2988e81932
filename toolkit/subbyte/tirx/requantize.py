"""Requantization inside a kernel: from a scaled int32 sum to a value of the output's type."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers

SIGNS = 0x88888888
"""The upper bit of every int4 value: the difference between v and v + 8."""
INT4_PACKED = (-8, 7)
"""What ``cvt.pack.sat.s4`` saturates at by itself."""
UNBOUNDED = (-(1 << 31), (1 << 31) - 1)


def requantize(plan: Any, value: Any, parameters: list[Any], saturated: tuple[int, int] = INT4_PACKED) -> Any:
    """The requantized int32 of a scaled sum, given the channel's three int32 parameters (or, in the fixed form, the
    factor and the 64-bit offset of two).

    ``saturated``: what the instruction that packs the value saturates at; a clip inside it is applied here.
    """
    low, high = plan.clip
    rows = [T.cast(parameter, "int64") for parameter in parameters]
    if plan.requant == "fixed":
        offset = rows[1] if len(rows) == 2 else (rows[2] << T.int64(32)) | (rows[1] & T.int64(0xFFFFFFFF))
        result = T.cast((T.cast(value, "int64") * rows[0] + offset) >> T.int64(32), "int32")
    else:
        bias, multiplier, shift = rows
        total = T.cast(value >> T.int32(plan.atom.scale_log2), "int64") + bias
        rounded = (total * multiplier + (T.int64(1) << (shift - T.int64(1)))) >> shift
        least, most = min(low, -128), max(high, 127)
        result = T.cast(T.max(T.min(rounded, T.int64(most)), T.int64(least)), "int32")
    if low > saturated[0]:
        result = T.max(result, T.int32(low))
    if high < saturated[1]:
        result = T.min(result, T.int32(high))
    return result


def by_float(plan: Any, value: Any, factor: Any, offset: Any) -> Any:
    """The requantized int32 plus 8, not saturated yet, of a scaled sum to which what the floating-point form adds has
    been added (:mod:`subbyte.numerics.float_requant`); a clip to 0..7 is left to :func:`finished`."""
    product = registers("product", 1, "float32")
    op.multiply_add(product[0], T.reinterpret("float32", value), factor, offset)
    result = T.reinterpret("int32", product[0])
    low, high = plan.clip
    if plan.clip == (0, 7):
        return result  # done for eight values at a time: see finished
    if low > -8:
        result = T.max(result, T.int32(low + 8))
    return T.min(result, T.int32(high + 8)) if high < 7 else result


def finished(plan: Any, word: Any) -> Any:
    """Eight values of :func:`by_float`, packed as 0..15, as they are stored."""
    if plan.clip != (0, 7):
        return word ^ T.uint32(SIGNS)
    positive = bind("positive", word & T.uint32(SIGNS))  # v + 8 has its upper bit where v >= 0
    return word & (positive - (positive >> T.uint32(3)))

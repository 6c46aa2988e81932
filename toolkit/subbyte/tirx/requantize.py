"""Requantization inside a kernel: from a scaled int32 sum to a value of the output's type."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

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

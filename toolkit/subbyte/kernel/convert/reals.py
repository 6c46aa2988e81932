"""Real numbers to words: loaded, widened to float32 and rounded to one of 256 values.

A byte has 255 thresholds, too many to compare with all of them. Instead the quotient, computed in float32 with an error
below 0.01, selects one threshold, whose comparison decides: the result is as exact as comparing with all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.convert.bytes import extended, named_place, offset_of, thread_of
from subbyte.kernel.convert.forms import Place
from subbyte.kernel.convert.plan import BYTE_STEPS, THREADS, ConversionPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers, when

_HALF_EXPONENT = 0x7C00
_SCALE_HALF = 2.0**112
"""Factor by which a float16's bits read as a float32 are too small: the exponent biases are 15
and 127. The product is exact, for denormals too."""


def quantize_bytes(plan: ConversionPlan, buffers: Mapping[str, Any]) -> None:
    """Quantize four real numbers into one word of int8; positions outside the tensor are 0."""
    index, s = thread_of(plan), plan.shape
    with when(plan.work % THREADS == 0 or index < plan.work):
        place = named_place(plan.words.at(index, plan.axes != "nhwc"))
        word = registers("packed", 1)
        T.buffer_store(word, T.uint32(0), [0])
        if plan.together:
            with when(every([place.n < s.n, place.c < s.c])):
                raw = loaded_together(plan, buffers["A"], place)
                for j in range(plan.word_values):
                    _put(plan, word, j, element(plan, raw, j), buffers["Prm"])
        else:
            first = bind("first", offset_of(plan, place))
            for j in range(plan.word_values):
                with when(every([place.n < s.n, place.c + j < s.c])):
                    value = buffers["A"][first + j * plan.strides.c]
                    _put(plan, word, j, bits_of(plan, value), buffers["Prm"])
        T.buffer_store(buffers["Out"], word[0], [place.word])


def _put(plan: ConversionPlan, word: Any, j: int, bits: Any, parameters: Any) -> None:
    """Store value ``j`` of a word, from the bits of a real number."""
    code_least = plan.least_code
    least = code_least - plan.zero
    real, quotient = registers("real", 1, "float32"), registers("quotient", 1, "float32")
    T.buffer_store(real, real_of(plan, bits), [0])
    T.buffer_store(quotient, real[0] * parameters[BYTE_STEPS] * parameters[BYTE_STEPS + 1], [0])
    low, high = T.float32(least), T.float32(least + BYTE_STEPS - 1)
    # NaN is not above any threshold and becomes the smallest value.
    T.buffer_store(quotient, T.Select(quotient[0] > low, quotient[0], low), [0])
    T.buffer_store(quotient, T.Select(quotient[0] < high, quotient[0], high), [0])
    below = bind("below", T.cast(quotient[0] - low, "int32"))
    code = below + T.Select(real[0] >= parameters[below], T.int32(1), T.int32(0)) + T.int32(code_least)
    T.buffer_store(word, word[0] | (T.cast(code, "uint32") & T.uint32(255)) << T.uint32(8 * j), [0])


def loaded_together(plan: ConversionPlan, values: Any, place: Place) -> Any:
    """The neighbouring channels of a word, loaded with accesses of up to 16 bytes."""
    count = plan.group_bytes // 4
    raw, first = registers("raw", count), bind("first", offset_of(plan, place) // plan.word_values * count)
    if count == 2:
        op.load8(raw, 0, values.ptr_to([first]), in_place=True)
    else:
        for part in range(0, count, 4):
            op.load16(raw, part, values.ptr_to([first + part]), "activations")
    return raw


def element(plan: ConversionPlan, raw: Any, j: int) -> Any:
    """Value ``j`` of the loaded words: a sign-extended integer, or the bits of a real number."""
    if plan.element == "int8":
        return extended(plan, raw, j)
    if plan.element == "float32":
        return raw[j]
    return (raw[j // 2] >> T.uint32(16)) if j % 2 else (raw[j // 2] & T.uint32(0xFFFF))


def bits_of(plan: ConversionPlan, value: Any) -> Any:
    """The bits of a real number that was loaded on its own."""
    return T.reinterpret("uint32", value) if plan.element == "float32" else T.cast(value, "uint32")


def real_of(plan: ConversionPlan, bits: Any) -> Any:
    """The float32 number with the value that the bits stand for. No conversion rounds."""
    if plan.element == "float32":
        return T.reinterpret("float32", bits)
    if plan.element == "bfloat16":
        return T.reinterpret("float32", bits << T.uint32(16))
    wide = T.reinterpret("float32", (bits & T.uint32(0x7FFF)) << T.uint32(13)) * T.float32(_SCALE_HALF)
    special = T.uint32(0x7F800000) | ((bits & T.uint32(0x3FF)) << T.uint32(13))  # infinity and NaN
    magnitude = T.Select((bits & T.uint32(_HALF_EXPONENT)) == T.uint32(_HALF_EXPONENT), special,
                         T.reinterpret("uint32", wide))  # fmt: skip
    return T.reinterpret("float32", magnitude | ((bits & T.uint32(0x8000)) << T.uint32(16)))

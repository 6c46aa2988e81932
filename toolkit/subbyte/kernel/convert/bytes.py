"""Byte words: four 8-bit values as they are (a conversion only moves them) or minus a zero point; and code shared by
all conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.kernel.convert.forms import BlockedForm, Place
from subbyte.kernel.convert.plan import THREADS, ConversionPlan
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import WORD_BITS


def thread_of(plan: ConversionPlan) -> Any:
    """The global index of the thread."""
    block, thread = T.cta_id([plan.launch.grid[0]]), T.thread_id([THREADS])
    for name, value in (("block", block), ("thread", thread)):
        IRBuilder.name(name, value)
    return bind("index", block * THREADS + thread)


def named_place(place: Place) -> Place:
    """The same place, with its parts bound to named variables in the text."""
    return Place(*(bind(name, T.int32(value) if isinstance(value, int) else value)
                   for name, value in zip(("word", "image", "row", "col", "channel"), place, strict=True)))  # fmt: skip


def offset_of(plan: ConversionPlan, place: Place) -> Any:
    """The index in memory of a word's first value."""
    step = plan.strides
    return place.n * step.n + place.y * step.h + place.x * step.w + place.c * step.c


def pack_bytes(plan: ConversionPlan, buffers: Mapping[str, Any]) -> None:
    """Pack four bytes into a word; 0 outside the tensor."""
    index, count, s = thread_of(plan), plan.word_values, plan.shape
    with when(plan.work % THREADS == 0 or index < plan.work):
        place = named_place(plan.words.at(index, plan.axes != "nhwc"))
        word = registers("packed", 1)
        T.buffer_store(word, T.uint32(0), [0])
        first = bind("first", offset_of(plan, place))
        if plan.together:
            with when(every([place.n < s.n, place.c < s.c])):
                if plan.zero:
                    raw = registers("raw", plan.group_bytes // 4)
                    for part in range(plan.group_bytes // 4):
                        T.buffer_store(raw, buffers["A"][first // count * (plan.group_bytes // 4) + part], [part])
                    for j in range(count):
                        _put(plan, word, j, extended(plan, raw, j))
                else:
                    T.buffer_store(word, buffers["A"][first // count], [0])
        else:
            for j in range(count):
                with when(every([place.n < s.n, place.c + j < s.c])):
                    value = T.cast(buffers["A"][first + j * plan.strides.c], "int32")
                    if plan.element == "int16":  # read as raw bits
                        value = (value << T.int32(16)) >> T.int32(16)
                    _put(plan, word, j, value)
        T.buffer_store(buffers["Out"], word[0], [place.word])


def extended(plan: ConversionPlan, raw: Any, j: int) -> Any:
    """Value ``j`` of words of int8 or int16 values, sign-extended."""
    bits = 8 if plan.element == "int8" else 16
    each = WORD_BITS // bits
    return (T.cast(raw[j // each], "int32") << T.int32((each - 1 - j % each) * bits)) >> T.int32(WORD_BITS - bits)


def _put(plan: ConversionPlan, word: Any, j: int, value: Any) -> None:
    """Store value ``j`` of a word: its code, or with a zero point the nearest code."""
    if plan.zero:
        low, high = T.int32(plan.least_code), T.int32(plan.least_code + 255)
        value = T.min(T.max(value + T.int32(plan.zero), low), high)
    code = T.cast(value, "uint32") & T.uint32(255)
    T.buffer_store(word, word[0] | code << T.uint32(8 * j), [0])


def _value(plan: ConversionPlan, word: Any, j: int) -> Any:
    """Value ``j`` of a word whose codes have a zero point."""
    if plan.signed:
        code = (T.cast(word, "int32") << T.int32(24 - 8 * j)) >> T.int32(24)
    else:
        code = T.cast(word >> T.uint32(8 * j) & T.uint32(255), "int32")
    return code - T.int32(plan.zero)


def unpack_bytes(plan: ConversionPlan, buffers: Mapping[str, Any]) -> None:
    """A word to four bytes, or four sums to their places."""
    form, s, index, count = plan.words, plan.shape, thread_of(plan), plan.word_values
    assert isinstance(form, BlockedForm)
    groups = ceil_div(s.c, count)
    with when(plan.work % THREADS == 0 or index < plan.work):
        group, pixel = bind("group", index % groups), bind("pixel", index // groups)
        x, row = pixel % s.w, pixel // s.w
        word = bind("word", form.word(row // s.h, row % s.h, x, group))
        first = bind("first", pixel * s.c + group * count)
        if plan.element == "int32":
            with loop("j", count) as j, when(plan.together or group * count + j < s.c):
                value = buffers["A"][word * count + j]
                T.buffer_store(buffers["Out"], T.reinterpret("uint32", value) if plan.together else value, [first + j])
            return
        if plan.together and not plan.zero:
            T.buffer_store(buffers["Out"], buffers["A"][word], [index])
            return
        packed = bind("packed", buffers["A"][word])
        if plan.together:
            words, bits = plan.group_bytes // 4, plan.group_bytes * 8 // count
            each = WORD_BITS // bits
            for part in range(words):
                codes = (T.cast(_value(plan, packed, part * each + j), "uint32") & T.uint32((1 << bits) - 1)
                         for j in range(each))  # fmt: skip
                joined: Any = T.uint32(0)
                for j, code in enumerate(codes):
                    joined = joined | code << T.uint32(bits * j)
                T.buffer_store(buffers["Out"], joined, [index * words + part])
            return
        for j in range(count):
            with when(group * count + j < s.c):
                if plan.zero:
                    T.buffer_store(buffers["Out"], T.cast(_value(plan, packed, j), plan.value_argument[0]), [first + j])
                    continue
                value = T.cast(packed >> T.uint32(8 * j) & T.uint32(255), plan.element)
                T.buffer_store(buffers["Out"], value, [first + j])

"""The TIRx function of a conversion: one thread for each word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.convert.bytes import named_place, offset_of, pack_bytes, thread_of, unpack_bytes
from subbyte.kernel.convert.forms import BlockedForm, Place, StripsForm
from subbyte.kernel.convert.plan import ENTRY, PACK, REALS, STEPS, THREADS, ConversionPlan
from subbyte.kernel.convert.reals import bits_of, element, loaded_together, quantize_bytes, real_of
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.tirx.function import named_function
from subbyte.workload.conv import ceil_div


def conversion_kernel(plan: ConversionPlan) -> Any:
    """The TIRx function of a plan."""
    if plan.bits == 8:
        packs = quantize_bytes if plan.element in REALS else pack_bytes
        body = packs if plan.kind == PACK else unpack_bytes
    else:
        body = _pack if plan.kind == PACK else _unpack
    return named_function(plan, 1, body, ENTRY.removesuffix("_kernel"))


def _pack(plan: ConversionPlan, buffers: Mapping[str, Any]) -> None:
    index = thread_of(plan)
    steps = _load_thresholds(buffers["Prm"]) if plan.element in REALS else None
    with when(plan.work % THREADS == 0 or index < plan.work):
        place = named_place(plan.words.at(index, plan.axes != "nhwc"))
        codes = registers("codes", WORD_VALUES, "int32")
        for j in range(WORD_VALUES):
            T.buffer_store(codes, T.int32(0), [j])
        if plan.together:
            with when(every(_inside(plan, place))):
                _load_together(plan, buffers["A"], place, steps, codes)
        else:
            _load_each(plan, buffers["A"], place, steps, codes)
        word = registers("packed", 1)
        T.buffer_store(word, T.uint32(0), [0])
        for j in range(WORD_VALUES - 2, -1, -2):
            op.pack_int4(word[0], codes[j + 1], codes[j], plan.signed)
        T.buffer_store(buffers["Out"], word[0], [place.word])


def _inside(plan: ConversionPlan, place: Place) -> list[Any]:
    """Conditions for a place whose image or channels may be padding of a group or block."""
    s = plan.shape
    found = [place.n < s.n] if s.n % 8 else []
    return [*found, place.c < s.c] if s.c % 32 else found


def _load_together(plan: ConversionPlan, values: Any, place: Place, steps: Any, codes: Any) -> None:
    """Load eight neighbouring channels with accesses of up to 16 bytes."""
    raw = loaded_together(plan, values, place)
    for j in range(WORD_VALUES):
        T.buffer_store(codes, _code(plan, element(plan, raw, j), steps), [j])


def _load_each(plan: ConversionPlan, values: Any, place: Place, steps: Any, codes: Any) -> None:
    """Load each value on its own, if it exists."""
    strips = plan.words.strips if isinstance(plan.words, StripsForm) else None
    s = plan.shape
    with loop("j", WORD_VALUES) as j:
        if strips is None:
            here, more = place._replace(c=place.c + j), []
        else:
            x, c = place.x + j // strips.channels, j % strips.channels
            here, more = place._replace(x=x, c=c), [place.y >= 0, place.y < s.h, x >= 0, x < s.w]
        with when(every([here.n < s.n, here.c < s.c, *more])):
            value = values[offset_of(plan, here)]
            value = T.cast(value, "int32") if plan.element == "int8" else bits_of(plan, value)
            T.buffer_store(codes, _code(plan, value, steps), [j])


def _load_thresholds(parameters: Any) -> Any:
    steps = registers("steps", STEPS + 1, "float32")
    for part in range(STEPS):
        T.buffer_store(steps, parameters[part], [part])
    return steps


def _code(plan: ConversionPlan, value: Any, steps: Any) -> Any:
    """The code to pack: the integer itself, saturated, or the number of thresholds that a real number reaches."""
    if steps is None:
        return value + T.int32(plan.zero) if plan.zero else value
    real = registers("real", 1, "float32")
    T.buffer_store(real, real_of(plan, value), [0])
    count: Any = T.int32(-8 if plan.signed else 0)
    for step in range(STEPS):
        count = count + T.Select(real[0] >= steps[step], T.int32(1), T.int32(0))
    return count


def _unpack(plan: ConversionPlan, buffers: Mapping[str, Any]) -> None:
    form, s, index = plan.words, plan.shape, thread_of(plan)
    assert isinstance(form, BlockedForm)
    groups = ceil_div(s.c, WORD_VALUES)
    with when(plan.work % THREADS == 0 or index < plan.work):
        group, pixel = bind("group", index % groups), bind("pixel", index // groups)
        x, row = pixel % s.w, pixel // s.w
        word = bind("word", form.word(row // s.h, row % s.h, x, group))
        if plan.element == "int32":
            _copy_sums(plan, buffers, word, pixel * s.c + group * WORD_VALUES, group)
            return
        packed = registers("packed", 1)
        T.buffer_store(packed, buffers["A"][word], [0])
        if plan.together:
            _store_bytes(plan, buffers["Out"], index, packed[0])
            return
        first = bind("first", pixel * s.c + group * WORD_VALUES)
        _each(plan, group, lambda j: T.buffer_store(
            buffers["Out"], T.cast(_nibble(plan, packed[0], j) - T.int32(plan.zero), "int8"), [first + j]))  # fmt: skip


def _each(plan: ConversionPlan, group: Any, store: Callable[[Any], None]) -> None:
    """Run ``store`` for each channel of a group that is inside the tensor."""
    with loop("j", WORD_VALUES) as j, when(plan.together or group * WORD_VALUES + j < plan.shape.c):
        store(j)


def _nibble(plan: ConversionPlan, word: Any, j: Any) -> Any:
    """Value ``j`` of a word as an int32."""
    if not plan.signed:
        return T.cast((word >> T.cast(j * 4, "uint32")) & T.uint32(15), "int32")
    return (T.cast(word, "int32") << (T.int32(28) - j * 4)) >> T.int32(28)


def _store_bytes(plan: ConversionPlan, output: Any, index: Any, word: Any) -> None:
    """Store the eight values of a word as eight bytes: even and odd ones are extended separately, then interleaved."""
    halves, mixed = registers("halves", 2), registers("mixed", 2)
    for odd in range(2):
        low = bind("low", (word >> T.uint32(4 * odd)) & T.uint32(0x0F0F0F0F))
        if plan.zero:  # a byte holds its value plus 128 until its top bit is flipped, so no byte borrows from the next
            codes = low ^ T.uint32(0x08080808) if plan.signed else low
            more = (128 + plan.least_code - plan.zero) * 0x01010101
            T.buffer_store(halves, codes + T.uint32(more) ^ T.uint32(0x80808080), [odd])
            continue
        signs = (low & T.uint32(0x08080808)) * T.uint32(30) if plan.signed else T.uint32(0)
        T.buffer_store(halves, low | signs, [odd])
    for half, selector in enumerate((0x5140, 0x7362)):
        op.permute_bytes(mixed[half], halves[0], halves[1], T.uint32(selector))
    with loop("i", 2, T.vectorized) as i:
        T.buffer_store(output, mixed[i], [index * 2 + i])


def _copy_sums(plan: ConversionPlan, buffers: Mapping[str, Any], word: Any, first: Any, group: Any) -> None:
    """Copy eight int32 sums from words of sums to values."""
    start = bind("first", first)
    if not plan.together:
        _each(plan, group, lambda j: T.buffer_store(buffers["Out"], buffers["A"][word * WORD_VALUES + j], [start + j]))
        return
    with loop("part", 2) as part, loop("i", 4, T.vectorized) as i:
        T.buffer_store(buffers["Out"], T.reinterpret("uint32", buffers["A"][word * WORD_VALUES + part * 4 + i]),
                       [start + part * 4 + i])  # fmt: skip

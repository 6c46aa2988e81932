"""The TIRx function of a pooling kernel: one thread per output word, processing its values in parallel.

Values are treated as codes 0..15 or 0..255 (signed ones are raised by half that range), so that maxima and
sums are unsigned. Padding pixels hold the code of 0, which is the zero point if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.kernel.pool.plan import ENTRY, THREADS, PoolPlan
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.tirx.function import named_function
from subbyte.workload.operand import WORD_BITS

_UNROLLED = 25
"""Windows with at most this many pixels have their loops unrolled."""


def _repeated(value: int, bits: int) -> Any:
    """A word with a value repeated in each field of this many bits."""
    return T.uint32(sum(value << place for place in range(0, WORD_BITS, bits)))


def pool_kernel(plan: PoolPlan) -> Any:
    """The TIRx function of a plan."""
    return named_function(plan, 1, _pool, ENTRY.removesuffix("_kernel"))


def _pool(plan: PoolPlan, buffers: Mapping[str, Any]) -> None:
    block, thread = T.cta_id([plan.launch.grid[0]]), T.thread_id([THREADS])
    for name, value in (("block", block), ("thread", thread)):
        IRBuilder.name(name, value)
    index = bind("index", block * THREADS + thread)
    with when(plan.work % THREADS == 0 or index < plan.work):
        place = plan.writes.at(index, False)
        image, part = bind("image", place.n), bind("part", place.c // plan.word_values)
        row, col = (bind(name, at * plan.workload.stride - plan.workload.pad)
                    for name, at in (("row", place.y), ("col", place.x)))  # fmt: skip
        count = len({_sum_of(plan, j)[0] for j in range(plan.word_values)}) if plan.averages else 2
        found = registers("found", count)
        for i in range(count):
            T.buffer_store(found, T.uint32(0), [i])
        _over_the_window(plan, buffers["A"], (image, row, col, part), found)
        word = _averages(plan, found, row, col) if plan.averages else _signed(plan, found[0] | _up(plan, found[1]))
        T.buffer_store(buffers["Out"], word, [index])


def _signed(plan: PoolPlan, word: Any) -> Any:
    """A word with the top bit of each value flipped if values are signed: converts signed to unsigned, and back."""
    return word ^ _repeated(1 << plan.bits - 1, plan.bits) if plan.signed else word


def _up(plan: PoolPlan, word: Any) -> Any:
    return word << T.uint32(plan.bits)


def _over_the_window(plan: PoolPlan, words: Any, place: tuple[Any, Any, Any, Any], found: Any) -> None:
    wl, (image, row, col, part) = plan.workload, place
    rows, columns = plan.window
    kind = T.unroll if rows * columns <= _UNROLLED else T.serial
    with loop("r", rows, kind) as r, loop("s", columns, kind) as s:
        y, x = row + r, col + s
        with when(every([y >= 0, y < wl.h, x >= 0, x < wl.w] if plan.touches_border else [])):
            values = bind("values", _signed(plan, words[plan.reads.word(image, y, x, part)]))
            for odd in range(2):
                low = _repeated((1 << plan.bits) - 1, 2 * plan.bits)
                half = values >> T.uint32(plan.bits) & low if odd else values & low
                _take(plan, found, odd, bind(f"half{odd}", half))


def _take(plan: PoolPlan, found: Any, odd: int, half: Any) -> None:
    """Take every second value of one more word, each in a field of double width."""
    width = 2 * plan.bits
    if plan.averages:
        for j in range(odd, plan.word_values, 2):
            register, shift = _sum_of(plan, j)
            if not shift:  # the other values of the same register come with this one
                room = WORD_BITS if plan.apart else 16
                T.buffer_store(found, found[register] + _at(half, j // 2 * width, (1 << plan.bits) - 1, room),
                               [register])  # fmt: skip
        return
    # 2^bits plus one minus the other: the bit above a value tells which is larger, and no value borrows from the next.
    above = _repeated(1 << plan.bits, width)
    larger = bind("larger", ((found[odd] | above) - half) & above)
    keep = bind("keep", larger - (larger >> T.uint32(plan.bits)))
    T.buffer_store(found, half ^ ((found[odd] ^ half) & keep), [odd])


def _at(word: Any, shift: int, mask: int, room: int) -> Any:
    """The value at a bit position, and those at multiples of ``room`` bits above it."""
    moved = word >> T.uint32(shift) if shift else word
    if room == WORD_BITS:
        return moved & T.uint32(mask)
    return moved & _repeated(mask, room)


def _sum_of(plan: PoolPlan, j: int) -> tuple[int, int]:
    """Where the sum of value ``j`` of a word is: the register, and its first bit."""
    if plan.apart:
        return j, 0
    width = 2 * plan.bits
    above, within = divmod(j // 2 * width, 16)
    return j % 2 * (16 // width) + within // width, 16 * above


def _averages(plan: PoolPlan, found: Any, row: Any, col: Any) -> Any:
    """The word of the rounded averages: ``floor(sum / pixels + 1/2)``."""
    wl, (rows, columns), middle = plan.workload, plan.window, 1 << plan.bits - 1
    count: Any = T.uint32(rows * columns)
    if plan.touches_border:
        below = T.min(row + rows, T.int32(wl.h)) - T.max(row, T.int32(0))
        beside = T.min(col + columns, T.int32(wl.w)) - T.max(col, T.int32(0))
        count = bind("count", T.reinterpret("uint32", below * beside))
    divisor = count
    if plan.count_padding:
        high, wide = T.int32(rows), T.int32(columns)
        if plan.over[0]:
            high = T.min(high, T.int32(wl.h + wl.pad) - row)
        if plan.over[1]:
            wide = T.min(wide, T.int32(wl.w + wl.pad) - col)
        divisor = bind("divisor", T.reinterpret("uint32", high * wide)) if any(plan.over) else T.uint32(rows * columns)
    # Counted padding pixels (divisor minus count) hold the code of 0; a half is added for rounding.
    zero = 2 * plan.zero
    rest = bind("rest", divisor * T.uint32(zero + 1) - count * T.uint32(zero) if zero else divisor)
    packed = registers("packed", 1)
    T.buffer_store(packed, T.uint32(0), [0])
    for j in range(plan.word_values):
        register, shift = _sum_of(plan, j)
        total = found[register] if plan.apart else (found[register] >> T.uint32(shift)) & T.uint32(0xFFFF)
        quotient = (total * T.uint32(2) + rest) // (divisor * T.uint32(2))
        code = (quotient ^ T.uint32(middle)) & T.uint32(2 * middle - 1) if plan.signed else quotient
        T.buffer_store(packed, packed[0] | (code << T.uint32(plan.bits * j)), [0])
    return packed[0]

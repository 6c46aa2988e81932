"""The TIRx function of a pooling kernel: one thread for each word of the output, its eight values side by side.

Values are taken as 0..15 (int4: 8 more than they are), so that neither maxima nor sums have signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.kernel.pool.plan import ENTRY, THREADS, PoolPlan
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.tirx.function import named_function

_ALL_EIGHTS, _LOW, _ABOVE, _PAIRS = 0x88888888, 0x0F0F0F0F, 0x10101010, 0x00FF00FF
_UNROLLED = 25
"""Pixels of a window up to which the loops over it are unrolled."""


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
        image, part = bind("image", place.n), bind("part", place.c // WORD_VALUES)
        row, col = (bind(name, at * plan.workload.stride - plan.workload.pad)
                    for name, at in (("row", place.y), ("col", place.x)))  # fmt: skip
        found = registers("found", 4 if plan.averages else 2)
        for i in range(4 if plan.averages else 2):
            T.buffer_store(found, T.uint32(0), [i])
        _over_the_window(plan, buffers["A"], (image, row, col, part), found)
        word = _averages(plan, found, row, col) if plan.averages else _maxima(plan, found)
        T.buffer_store(buffers["Out"], word, [index])


def _over_the_window(plan: PoolPlan, words: Any, place: tuple[Any, Any, Any, Any], found: Any) -> None:
    wl, (image, row, col, part) = plan.workload, place
    kind = T.unroll if wl.r * wl.s <= _UNROLLED else T.serial
    with loop("r", wl.r, kind) as r, loop("s", wl.s, kind) as s:
        y, x = row + r, col + s
        with when(every([y >= 0, y < wl.h, x >= 0, x < wl.w] if plan.touches_border else [])):
            word = words[plan.reads.word(image, y, x, part)]
            values = bind("values", word ^ T.uint32(_ALL_EIGHTS) if plan.signed else word)
            for odd in range(2):
                nibbles = (values >> T.uint32(4)) & T.uint32(_LOW) if odd else values & T.uint32(_LOW)
                _take(plan, found, odd, bind(f"nibbles{odd}", nibbles))


def _take(plan: PoolPlan, found: Any, odd: int, nibbles: Any) -> None:
    """Four values, a byte each, more."""
    if plan.averages:
        for high in range(2):
            pairs = (nibbles >> T.uint32(8)) & T.uint32(_PAIRS) if high else nibbles & T.uint32(_PAIRS)
            T.buffer_store(found, found[2 * odd + high] + pairs, [2 * odd + high])
        return
    # 16 more than one minus the other: bit 4 of a byte says which is larger, and no byte borrows from the next.
    larger = bind("larger", ((found[odd] | T.uint32(_ABOVE)) - nibbles) & T.uint32(_ABOVE))
    keep = bind("keep", larger - (larger >> T.uint32(4)))
    T.buffer_store(found, nibbles ^ ((found[odd] ^ nibbles) & keep), [odd])


def _maxima(plan: PoolPlan, found: Any) -> Any:
    word = found[0] | (found[1] << T.uint32(4))
    return word ^ T.uint32(_ALL_EIGHTS) if plan.signed else word


def _averages(plan: PoolPlan, found: Any, row: Any, col: Any) -> Any:
    """The word of the rounded averages: ``floor(sum / pixels + 1/2)``."""
    wl, area = plan.workload, plan.workload.r * plan.workload.s
    count: Any = T.uint32(area)
    if plan.touches_border:
        rows = T.min(row + wl.r, T.int32(wl.h)) - T.max(row, T.int32(0))
        cols = T.min(col + wl.s, T.int32(wl.w)) - T.max(col, T.int32(0))
        count = bind("count", T.cast(rows * cols, "uint32"))
    divisor = T.uint32(area) if plan.count_padding else count
    # Of int4 a sum has 8 too many for each pixel that is there; 16 halves of a divisor more keep the quotient positive.
    rest = bind("rest", divisor * T.uint32(17) - count * T.uint32(16) if plan.signed else divisor)
    packed = registers("packed", 1)
    T.buffer_store(packed, T.uint32(0), [0])
    for j in range(WORD_VALUES):
        byte, odd = divmod(j, 2)
        total = (found[2 * odd + byte % 2] >> T.uint32(16 * (byte // 2))) & T.uint32(0xFFFF)
        quotient = (total * T.uint32(2) + rest) // (divisor * T.uint32(2))
        code = (quotient ^ T.uint32(8)) & T.uint32(15) if plan.signed else quotient
        T.buffer_store(packed, packed[0] | (code << T.uint32(4 * j)), [0])
    return packed[0]

"""The kernel in TIRx: a thread adds up all products of its output words, then stores them."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.tirx.function import kernel_function
from subbyte.tirx.requantize import UNBOUNDED, requantize
from subbyte.workload.precision import SUMS
from toy_family.plan import ToyPlan
from toy_family.types import BITS, PER_WORD, WORDS


def conv_kernel(plan: ToyPlan) -> Any:
    """The TIRx function of a plan."""
    return kernel_function(plan, 1, _body)


def _body(plan: ToyPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
    w, config = plan.workload, plan.config
    block, _ = T.cta_id([plan.launch.grid[0], 1])
    thread = T.thread_id([config.threads])
    for name, value in (("block", block), ("thread", thread)):
        IRBuilder.name(name, value)
    index = bind("index", block * config.threads + thread)
    group, pixel = bind("group", index % plan.groups), bind("pixel", index // plan.groups)
    at = bind("image", pixel // (w.p * w.q)), bind("p", pixel // w.q % w.p), bind("q", pixel % w.q)
    with when(index < plan.work):
        sums = registers("sums", plan.columns, "int32")
        with loop("i", plan.columns) as i:
            T.buffer_store(sums, T.int32(0), [i])
        _add_up(plan, activations, weights, sums, at, group)
        for word in range(config.words):
            _store(plan, output, parameters, sums, at, group * config.words + word, word * PER_WORD)


def _add_up(plan: ToyPlan, activations: Any, weights: Any, sums: Any, at: tuple[Any, Any, Any], group: Any) -> None:
    w, (image, p, q) = plan.workload, at
    words = w.channel_blocks * WORDS
    with loop("r", w.r, T.serial) as r, loop("s", w.s, T.serial) as s:
        y = bind("y", p * w.stride + r * w.dilation - w.pad)
        x = bind("x", q * w.stride + s * w.dilation - w.pad)
        inside = T.And(T.And(y >= 0, y < w.h), T.And(x >= 0, x < w.w))
        with when(inside), loop("c", words, T.serial) as c:
            left = bind("left", activations[plan.word(w.h, w.w, w.channel_blocks, image, y, x, c)])
            with loop("f", plan.columns) as f:
                filter_ = group * plan.columns + f
                right = bind("right", weights[((filter_ * w.r + r) * w.s + s) * words + c])
                with loop("e", PER_WORD, T.unroll if plan.config.unroll else T.serial) as e:
                    shift = T.cast(e * BITS, "uint32")
                    power = (T.uint32(1) << ((right >> shift) & T.uint32(3))) >> T.uint32(1)
                    product = T.cast(((left >> shift) & T.uint32(3)) * power, "int32")
                    T.buffer_store(sums, sums[f] + product, [f])


def _store(
    plan: ToyPlan, output: Any, parameters: Any, sums: Any, at: tuple[Any, Any, Any], word: Any, first: int
) -> None:
    w, (image, p, q) = plan.workload, at
    if plan.output == SUMS:
        for i in range(PER_WORD):
            T.buffer_store(output, sums[first + i], [plan.sum_place(image, p, q, word, i)])
        return
    packed = registers("packed", 1)
    T.buffer_store(packed, T.uint32(0), [0])
    for i in range(PER_WORD):
        rows = [parameters[row * w.padded_filters + word * PER_WORD + i] for row in range(3)]
        value = bind("value", requantize(plan, sums[first + i], rows, UNBOUNDED))
        T.buffer_store(packed, packed[0] | (T.cast(value, "uint32") << T.uint32(BITS * i)), [0])
    T.buffer_store(output, packed[0], [plan.word(w.p, w.q, w.filter_blocks, image, p, q, word)])

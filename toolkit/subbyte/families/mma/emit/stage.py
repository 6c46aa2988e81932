"""Global to shared memory: one stage of activations and weights, and the requantization parameters.

With ``duplicate_aware`` the staged tile has one slot per genuine input pixel, so a datum is copied once per block
(Algorithm 1, lines 4 to 6, of Choi et al. 2022); without, one slot per lowered entry, as im2col would lay it out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T

from subbyte.families.mma.emit.block import Block
from subbyte.families.mma.plan import COPY_WORDS
from subbyte.tirx.copies import each_copy
from subbyte.tirx.emit import bind, loop
from subbyte.workload.precision import SUMS


def load_stage(block: Block, buffer: Any, iteration: Any) -> None:
    """Emit the copies of iteration ``iteration`` into stage buffer ``buffer``."""
    plan = block.plan
    kernel_row, chunk = plan.step(iteration)
    base = buffer * plan.stage_words
    all_threads = partial(each_copy, plan.config.threads, block.thread)
    all_threads(plan.activation_copies, lambda i: _activation(block, base, kernel_row, chunk, i))
    all_threads(plan.weight_copies, lambda i: _weight(block, base + plan.activation_words, kernel_row, chunk, i))


def load_parameters(block: Block) -> None:
    """Emit the copies of the parameters of each of the block's output channels."""
    plan = block.plan
    if plan.output == SUMS:
        return
    run = plan.config.columns // COPY_WORDS
    padded = plan.filters

    def copy(i: Any) -> None:
        source = i // run * padded + block.column_block * plan.config.columns + i % run * COPY_WORDS
        _copy16(block, plan.parameter_base + i * COPY_WORDS, block.parameters, source, None)

    each_copy(plan.config.threads, block.thread, plan.parameter_rows * run, copy)


def _activation(block: Block, base: Any, kernel_row: Any, chunk: Any, index: Any) -> None:
    plan, w = block.plan, block.plan.workload
    slot, channel_block, piece = plan.activation_copy(index)
    down, right = plan.slot_pixel(slot)
    y = bind("y", block.row0 * w.stride + kernel_row * w.dilation + down - w.pad)
    x = bind("x", block.col0 * w.stride + right - w.pad)
    inside = bind("inside", T.And(T.And(y >= 0, y < w.h), T.And(x >= 0, x < w.w)))
    source = plan.activation_word(block.group, y, x, chunk * plan.config.chunk + channel_block, piece)
    _copy16(block, base + index * COPY_WORDS, block.activations, source, inside)


def _weight(block: Block, base: Any, kernel_row: Any, chunk: Any, index: Any) -> None:
    plan = block.plan
    channel_block, tap, word = plan.weight_copy(index)
    tap = kernel_row * plan.workload.s + tap
    source = plan.weight_word(chunk * plan.config.chunk + channel_block, tap, block.column_block) + word
    _copy16(block, base + index * COPY_WORDS, block.weights, source, None)


def _copy16(block: Block, target: Any, buffer: Any, source: Any, inside: Any) -> None:
    """Copy four words to shared memory; if ``inside`` is false, write the code of 0 and read nothing."""
    if inside is not None and block.plan.fill:
        with T.If(inside):
            with T.Then():
                _copy16(block, target, buffer, source, None)
            with T.Else(), loop("v", COPY_WORDS, T.vectorized) as v:
                T.buffer_store(block.shared, T.uint32(block.plan.fill), [target + v])
    elif block.plan.arch.async_copy:
        # Lowered tiles read each datum several times: let the L1 serve the repeats. Otherwise bypass it.
        cache = "ca" if block.plan.lowered else "cg"
        operands = [block.shared.ptr_to([target]), buffer.ptr_to([source]), 16]
        if inside is not None:
            operands.append(T.Select(inside, T.uint32(16), T.uint32(0)))
        T.evaluate(T.ptx[f"cp.async.{cache}.shared.global"](*operands))
    elif inside is None:
        _copy_words(block, target, buffer, source)
    else:
        with T.If(inside):
            with T.Then():
                _copy_words(block, target, buffer, source)
            with T.Else(), loop("v", COPY_WORDS, T.vectorized) as v:
                T.buffer_store(block.shared, T.uint32(0), [target + v])


def _copy_words(block: Block, target: Any, buffer: Any, source: Any) -> None:
    with loop("v", COPY_WORDS, T.vectorized) as v:
        T.buffer_store(block.shared, T.cast(buffer[source + v], "uint32"), [target + v])

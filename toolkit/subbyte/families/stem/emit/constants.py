"""Copying weights and parameters to shared memory, and the weights of constants, which provide the initial sums."""

from __future__ import annotations

from itertools import product
from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.emit.block import Block
from subbyte.families.stem.plan import LINES
from subbyte.families.stem.strings import LARGEST_BYTE, WORD_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when

STEP_WORDS = 8
"""Words of K per instruction."""


def set_up(block: Block) -> None:
    """One thread starts copying weights and parameters, which no launch writes."""
    plan = block.plan
    op.barrier_init(block.barrier, 1)
    op.barrier_init_fence()
    op.barrier_expect(block.barrier, T.uint32(plan.weight_bytes + plan.parameter_bytes))
    source = block.weights.ptr_to([block.slice_ * plan.slice_words])
    op.bulk_copy(block.base, source, plan.weight_bytes, block.barrier)
    for line in range(LINES if plan.parameter_bytes else 0):
        source = block.parameters.ptr_to([line * plan.workload.padded_filters + block.slice_ * plan.config.filters])
        target = block.base + T.uint32(plan.parameter_base + 4 * line * plan.config.filters)
        op.bulk_copy(target, source, 4 * plan.config.filters, block.barrier)


def begin_sums(block: Block) -> None:
    """Write the weights of constants once parameters have arrived: one thread per output channel. The initial sum
    is 127 times the sum of some bytes, as few as necessary, plus one last byte, -63 to 63."""
    plan, filters = block.plan, block.plan.config.filters
    with when(block.thread < filters):
        channel = block.thread
        begun = bind("begun", T.cast(block.shared[plan.parameter_base // 4 + channel], "int32"))
        left = registers("left", 1, "int32")
        T.buffer_store(left, T.truncdiv(begun + LARGEST_BYTE // 2, T.int32(LARGEST_BYTE)), [0])
        rest = bind("rest", begun - left[0] * LARGEST_BYTE)
        quad, pair = channel // (filters // 4), channel % (filters // 4) // 2
        column = bind("column", _row(channel) if plan.config.held_weights else pair * 8 + quad * 2 + channel % 2)
        at = bind("constant_at", block.base + T.cast(column // 8 * 256 + column % 8 * 16, "uint32"))
        taken = [rest]
        for _ in range(len(plan.strings.constants(0)) - 1):
            taken.append(bind("taken", T.min(left[0], T.int32(LARGEST_BYTE))))
            T.buffer_store(left, left[0] - taken[-1], [0])
        for phase in range(plan.strings.phases):
            words: dict[int, Any] = {}
            for place, value in zip(plan.strings.constants(phase), taken, strict=True):
                byte = (T.cast(value, "uint32") & T.uint32(0xFF)) << T.uint32(8 * (place % WORD_BYTES))
                words[place // WORD_BYTES] = words.get(place // WORD_BYTES, T.uint32(0)) | byte
            for place, more in words.items():
                word, target = registers("word", 1), at + T.uint32(_offset(block, phase, place))
                op.load_shared4(word, 0, target)
                op.store_shared4(target, word[0] | more)


def _row(channel: Any) -> Any:
    """The row of an instruction that an output channel is, where weights stay in registers."""
    return channel // 16 * 16 + channel % 2 * 8 + channel % 16 // 2


def held_weights(block: Block) -> Any:
    """All weights of a thread's two rows, in registers: [phase][step][word of the operand]."""
    plan, steps = block.plan, block.plan.strings.steps
    held = registers("weight", 4 * steps * plan.strings.phases)
    place = block.warp % 4 * 512 + block.lane * 4
    at = bind("weight_at", block.base + T.cast(place, "uint32"))
    for phase, step, word in product(range(plan.strings.phases), range(steps), range(4)):
        offset = phase * plan.phase_bytes + step * plan.step_bytes + word % 2 * 256 + word // 2 * 128
        op.load_shared4(held, 4 * (phase * steps + step) + word, at + T.uint32(offset))
    return held


def _offset(block: Block, phase: int, place: int) -> int:
    """Byte offset from a column's first weights to those of a word of the window."""
    plan = block.plan
    step, word = divmod(place, STEP_WORDS)
    half, word = divmod(word, STEP_WORDS // 2)
    return phase * plan.phase_bytes + step * plan.step_bytes + half * 128 + word * WORD_BYTES


def held_parameters(block: Block, first_channel: Any) -> Any:
    """Factors, then offsets of a thread's channels, kept in registers: [line][channel]."""
    plan, count = block.plan, block.plan.config.filters // 4
    held = registers("held", 2 * count)
    at = bind("held_at", block.base + T.uint32(plan.parameter_base) + T.cast(first_channel, "uint32") * T.uint32(4))
    for line in range(2):
        for first in range(0, count, 4):
            offset = T.uint32(4 * ((line + 1) * plan.config.filters + first))
            op.load_shared16(held, at + offset, line * count + first)
    return held

"""Loading the weights into registers, and all multiplications of a warpgroup."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.image.emit.block import Block
from subbyte.families.image.plan import FRAGMENT_WORDS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers

WINDOW = 0x3FFFF
"""The bits of a shared-memory address that a descriptor holds; higher bits contain the block's rank in its cluster."""


def load_weights(block: Block) -> Any:
    """Start reading all of a warpgroup's weights: no launch writes them."""
    plan = block.plan
    held = registers("weights", 4 * plan.fragments)
    first = (block.tile * plan.config.ways + block.way) * (plan.fragments * FRAGMENT_WORDS) + block.member * 4
    first = bind("first_weight", first)
    for fragment in range(plan.fragments):
        op.load16(held, 4 * fragment, block.weights.ptr_to([first + fragment * FRAGMENT_WORDS]), "weights")
    return held


def unpack(block: Block, held: Any, fragment: int) -> list[Any]:
    """The operands of a fragment: one for each of its blocks of channels."""
    operands = []
    for half in range(block.plan.halves):
        operand = registers("operand", 4)
        for i in range(4):
            word = held[4 * fragment + i]
            op.mask(operand[i], word << T.uint32(4) if half == 0 else word, LOW_NIBBLES)
        operands.append(operand)
    return operands


def multiply(block: Block, held: Any, begun: list[list[Any]]) -> Any:
    """The sums of a warpgroup; ``begun`` holds the first fragments' operands."""
    plan, w = block.plan, block.plan.workload
    sums = registers("acc", plan.config.pixels // 2)
    started = registers("started", 1)
    T.buffer_store(started, T.uint32(0), [0])
    part = T.cast(block.part * (plan.part_channels * 2 * plan.plane_bytes), "uint32")
    low = bind("low", ((block.base + part & T.uint32(WINDOW)) >> T.uint32(4)) + T.uint32(plan.descriptor_low))
    high = T.cast(T.uint32(plan.descriptor_high), "uint64") << T.uint64(32)
    mine = [sums[i] for i in range(plan.config.pixels // 2)]
    for fragment in range(plan.fragments):
        row, rest = divmod(fragment, plan.steps * w.s)
        step, column = divmod(rest, w.s)
        phase, place = plan.tap_place(row, column)
        operands = begun[fragment] if fragment < len(begun) else unpack(block, held, fragment)
        op.wgmma_fence()
        for half, operand in enumerate(operands):
            plane = (phase * plan.block_channels + step * plan.halves + half) * 2
            at = low + T.uint32(plane * plan.staged + place)
            words = [operand[i] for i in range(4)]
            op.emit(T.ptx[plan.atom.ptx](*mine, *words, high | T.cast(at, "uint64"), T.ptx.pred(started[0])))
            T.buffer_store(started, T.uint32(1), [0])
        op.wgmma_commit()
        if fragment < plan.fragments - 1:
            op.wgmma_wait(plan.config.in_flight)
    op.wgmma_wait(0)
    return sums

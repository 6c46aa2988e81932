"""A tile's sums: words of its windows from shared memory, split in registers, by weights in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.stem.emit.block import Block
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.strips import LANES, WORD_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when

CORE = 128
"""Bytes of a core matrix: 8 output channels by 16 bytes of K. Both of a step's K lie behind each other, then the next 8
channels (PTX ISA, shared-memory matrix layout, no swizzle)."""
LOADED_AHEAD = 2
"""Operands whose words are read while an earlier one is multiplied."""
IN_FLIGHT = 1
"""Groups of instructions that may be unfinished while the next operand is split."""


BEGUN_BYTES = 64
"""What the sums of a quad's lanes in 8 columns begin with."""


@dataclass
class Places:
    """Of a lane, whatever the tile: byte offsets of its word, for each step of the period, in the window of the warp's
    first pixel; the weights' descriptor; the byte address of what its sums begin with."""

    words: list[Any]
    weights: Any
    begun: Any


def places(block: Block) -> Places:
    """What a lane computes once."""
    plan, lay = block.plan, block.plan.strips
    quad = bind("quad", block.lane % LANES)
    found = []
    for step in range(lay.period):
        at = step * LANES + quad
        word = (
            at if lay.period == 1 and lay.row_words == LANES else at // lay.row_words * plan.pitch + at % lay.row_words
        )
        found.append(bind("word", T.cast(word * WORD_BYTES + block.image * 4, "uint32")))
    descriptor = registers("descriptor", 1)
    op.describe(descriptor[0], block.base, CORE // 16 << 16)
    begun = bind("begun_at", block.base + T.cast(plan.begun_base + quad * (BEGUN_BYTES // LANES), "uint32"))
    return Places(found, bind("weights_at", descriptor[0]), begun)


def begin_sums(block: Block) -> None:
    """Write what sums begin with, once parameters are there: a thread for each two channels."""
    plan = block.plan
    filters = plan.config.filters
    with when(block.thread < filters // 2):
        quad, pair = block.thread // (filters // 8), block.thread % (filters // 8)
        first = plan.parameter_base // 4 + quad * (filters // 4) + pair * 2
        added = [bind("added", block.shared[first + parity]) for parity in range(2)]
        for row in range(plan.config.tile_rows):
            place = plan.begun_base + row * plan.begun_bytes + pair * BEGUN_BYTES + quad * (BEGUN_BYTES // LANES)
            op.store_shared16(block.base + T.cast(place, "uint32"), [*added, *added])
    T.evaluate(T.cuda.cta_sync())


def multiply(block: Block, where: Places, buffer: Any, tile: Any) -> Any:
    """Emit all products of a tile of each of the turn's output rows; its sums, those of a row behind each other."""
    plan, lay = block.plan, block.plan.strips
    sums = registers("sums", plan.config.tile_rows * plan.row_sums)
    started = registers("started", plan.config.tile_rows)
    for row in range(plan.config.tile_rows):
        T.buffer_store(started, T.uint32(int(plan.begun)), [row])
        for first in range(0, plan.row_sums if plan.begun else 0, 4):
            place = row * plan.begun_bytes + first // 4 * BEGUN_BYTES
            op.load_shared16(sums, where.begun + T.uint32(place), row * plan.row_sums + first)
    phase, unit = tile % lay.phases, tile // lay.phases
    first = (unit * 8 + block.warp % 4 * 2) * lay.pixel_words + phase * lay.advance // 8
    pixel = bind("pixel", block.buffer_address(buffer) + T.cast(first * WORD_BYTES, "uint32"))
    lanes = [bind("lane_at", pixel + word) for word in where.words]
    weights = where.weights
    if lay.phases > 1:
        weights = bind("phase_at", weights + T.cast(phase * (plan.phase_bytes // 16), "uint32"))
    held: list[Any] = []
    fragments = plan.fragments
    for number, one in enumerate(fragments):
        ahead = fragments[len(held) : number + LOADED_AHEAD + 1]
        held.extend(_load(plan, lanes[later.place], later.row) for later in ahead)
        operand = _split(held[number])
        op.wgmma_fence()
        for row, step in one.users:
            _wgmma(plan, sums, operand, weights + T.uint32(step * plan.step_bytes // 16), started, row)
        op.wgmma_commit()
        op.wgmma_wait(IN_FLIGHT)
    op.wgmma_wait(0)
    return sums


def _load(plan: StemPlan, address: Any, row: int) -> Any:
    """The lane's word of either pixel of the warp."""
    word = registers("words", 2)
    for pixel in range(2):
        offset = (row * plan.pitch + pixel * plan.strips.pixel_words) * WORD_BYTES
        op.load_shared4(word, pixel, address + T.uint32(offset))
    return word


def _split(word: Any) -> Any:
    """Four registers: even values of both pixels, times 16, then odd ones."""
    operand = registers("operand", 4)
    for pixel in range(2):
        op.mask(operand[pixel], word[pixel] << T.uint32(4), LOW_NIBBLES)
        op.mask(operand[2 + pixel], word[pixel], LOW_NIBBLES)
    return operand


def _wgmma(plan: StemPlan, sums: Any, operand: Any, weights: Any, started: Any, row: int) -> None:
    mine = [sums[row * plan.row_sums + i] for i in range(plan.row_sums)]
    high = T.uint64(2 * CORE // 16 << 32)
    words, adds = [operand[i] for i in range(4)], T.ptx.pred(started[row])
    op.emit(T.ptx[plan.atom.ptx](*mine, *words, high | T.cast(weights, "uint64"), adds))
    T.buffer_store(started, T.uint32(1), [row])

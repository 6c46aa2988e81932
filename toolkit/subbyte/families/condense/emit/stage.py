"""Global to shared memory, and activations from rows of channels to rows of images."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.condense.config import ROW_PIXELS
from subbyte.families.condense.emit.block import Block
from subbyte.families.condense.plan import BLOCK_WORDS, PIXEL_WORDS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers

COPY_WORDS = 4
EVEN, ODD = 0x0F0F0F0F, 0xF0F0F0F0
FIRST, SECOND = 0x6240, 0x7351
"""Byte selectors for two words: bytes 0 and 2 of each, interleaved; bytes 1 and 3."""


def load_activations(block: Block, chunk: Any) -> None:
    """Start copying a chunk of the block's pixels; positions outside pixels or channels become 0."""
    plan = block.plan
    run = plan.config.chunk * PIXEL_WORDS // COPY_WORDS

    def copy(index: Any) -> None:
        pixel = bind("pixel", block.first_pixel + index // run)
        channels = bind("channels", chunk * plan.config.chunk + index % run // (PIXEL_WORDS // COPY_WORDS))
        piece = index % (PIXEL_WORDS // COPY_WORDS) * COPY_WORDS
        inside = [pixel < plan.pixels] if plan.pixels % plan.block_pixels else []
        inside += _channels(block, channels)
        source = plan.activation_word(pixel, channels) + piece
        _copy16(block, index * COPY_WORDS, block.activations, source, every(inside))

    block.by_threads(plan.raw_words // COPY_WORDS, copy)


def load_weights(block: Block, chunk: Any, buffer: Any) -> None:
    """Start copying a chunk of the block's panels of weights."""
    plan = block.plan
    run = plan.panel_words // COPY_WORDS
    base = plan.weights_base + buffer * plan.buffer_words + BLOCK_WORDS

    def copy(index: Any) -> None:
        panel = bind("panel", block.first_panel + index // run)
        channels = bind("channels", chunk * plan.config.chunk + index % run // (BLOCK_WORDS // COPY_WORDS))
        inside = [panel < plan.workload.filter_blocks] if plan.workload.filter_blocks % plan.block_panels else []
        inside += _channels(block, channels)
        source = plan.weight_word(panel, channels) + index % (BLOCK_WORDS // COPY_WORDS) * COPY_WORDS
        _copy16(block, base + index * COPY_WORDS, block.weights, source, every(inside))

    block.by_threads(plan.block_panels * run, copy)


def _channels(block: Block, channels: Any) -> list[Any]:
    """Whether a block of channels exists, if the last chunk may be smaller."""
    blocks = block.plan.workload.channel_blocks
    return [channels < blocks] if blocks % block.plan.config.chunk else []


def _copy16(block: Block, target: Any, buffer: Any, source: Any, inside: Any) -> None:
    operands = [block.shared.ptr_to([target]), buffer.ptr_to([source]), 16]
    if inside is not True:
        operands.append(T.Select(inside, T.uint32(16), T.uint32(0)))
    T.evaluate(T.ptx["cp.async.cg.shared.global"](*operands))


def clear(block: Block) -> None:
    """Write the zeros read by lanes without remaining positions, for both operands."""
    plan = block.plan
    rows = plan.config.row_warps

    def store(index: Any) -> None:
        panel, piece = index // (BLOCK_WORDS // COPY_WORDS), index % (BLOCK_WORDS // COPY_WORDS) * COPY_WORDS
        ours = plan.rows_base + panel * plan.row_panel_words
        other = plan.weights_base + (panel - rows) * plan.buffer_words
        place = bind("place", T.Select(panel < rows, ours, other) + piece)
        op.store_shared16(block.address(place), [T.uint32(0)] * COPY_WORDS)

    block.by_threads((rows + plan.buffers) * BLOCK_WORDS // COPY_WORDS, store)


def transpose(block: Block) -> None:
    """From the staged chunk, 32 positions of an image in 16 bytes, to panels: 32 rows of a position in 16 bytes.

    ldmatrix gives lane ``4 g + q`` positions ``4 g`` to ``4 g + 3`` of images ``2 q`` and ``2 q + 1``, a register for
    each of four pixels. The lane assembles a word for each position: byte ``i`` of the half of an image has pixels
    ``2 i`` and ``2 i + 1``. Position ``4 g + i`` is stored at ``8 i + g``, so that the lanes of a store write 128
    contiguous bytes.
    """
    plan = block.plan
    chunk, lane = plan.config.chunk, block.lane

    def unit(index: Any) -> None:
        panel, piece = index // chunk, index % chunk
        pixel = panel * ROW_PIXELS + lane // 8
        found = registers("found", 4)
        address = block.address((pixel * chunk + piece) * PIXEL_WORDS + lane % 8 * 4)
        op.load_transposed(found, address)
        pairs = []
        for first in (0, 2):
            one, two = found[first], found[first + 1]
            low = bind("low", (one & T.uint32(EVEN)) | ((two << T.uint32(4)) & T.uint32(ODD)))
            high = bind("high", ((one >> T.uint32(4)) & T.uint32(EVEN)) | (two & T.uint32(ODD)))
            pairs.append((low, high))
        words = registers("words", 4)
        for i in range(4):
            op.permute_bytes(words[i], pairs[0][i % 2], pairs[1][i % 2], T.uint32((FIRST, SECOND)[i // 2]))
        place = plan.rows_base + panel * plan.row_panel_words + (piece + 1) * BLOCK_WORDS + lane
        for i in range(4):
            T.buffer_store(block.shared, words[i], [place + 32 * i])

    block.by_warps(plan.config.row_warps * chunk, unit)

"""The products of a stage: a lane compares the 128 bits of its image with those of its two channels of each tile."""

from __future__ import annotations

from typing import Any, cast

from tvm.script import tirx as T

from subbyte.families.popc.config import PopcConfig
from subbyte.families.popc.plan import PopcPlan
from subbyte.families.shared.planes.emit.block import Block
from subbyte.families.shared.planes.emit.kernel import plane_kernel
from subbyte.families.shared.planes.emit.stage import Direct, Staged
from subbyte.families.shared.planes.geometry import GROUP_TILES, IMAGE_WORDS
from subbyte.numerics.bit_products import AND
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers

LANE_COLUMNS = 2
"""Channels of a lane in a tile of 8."""
TILE_COLUMNS = 8


def popc_kernel(plan: PopcPlan) -> Any:
    """The TIRx function of a plan."""
    return plane_kernel(plan, multiply, lambda block, pixel: block.ones[pixel])


def multiply(block: Block, source: Staged | Direct) -> None:
    """All products of a stage: a row of the kernel after the other, 128 channels of a tap and a plane at a time."""
    plan = cast(PopcPlan, block.plan)
    pixels = plan.config.warp_row_tiles
    with loop("r", plan.rows_staged, T.serial) as r:
        for s, channels in plan.pieces:
            for plane in range(plan.planes):
                x = registers("x", IMAGE_WORDS * pixels)
                with loop("m", pixels) as pixel:
                    source.image_row(x, pixel * IMAGE_WORDS, pixel, (r, s), (channels, plane))
                    if plan.ones_registers:
                        words = [x[pixel * IMAGE_WORDS + i] for i in range(IMAGE_WORDS)]
                        _add(block.ones, pixel, _count(plan, words), plan.ones_factor(plane))
                with loop("n", plan.config.warp_col_tiles) as column:
                    for weight_plane in range(plan.weight_planes):
                        _tile(block, source, x, column, (r, s, channels), weight_plane, plane)


def _tile(
    block: Block, source: Staged | Direct, x: Any, column: Any, tap: tuple[Any, int, int], weight_plane: int, plane: int
) -> None:
    """A pair of planes in a tile of 8 channels, of all pixels of the warp."""
    plan = cast(PopcPlan, block.plan)
    r, s, channels = tap
    group = block.warp_col * plan.warp_words + column // GROUP_TILES
    place = plan.weight_place(r, s, channels, weight_plane, group)
    first = column % GROUP_TILES * TILE_COLUMNS + block.lane % 4 * LANE_COLUMNS
    w = registers("w", IMAGE_WORDS * LANE_COLUMNS)
    for e in range(LANE_COLUMNS):
        source.weights(w, e * IMAGE_WORDS, place, (first + e) * IMAGE_WORDS)
    factor = plan.factor(weight_plane, plane)
    with loop("m", plan.config.warp_row_tiles) as pixel:
        for e in range(LANE_COLUMNS):
            pairs = [(x[pixel * IMAGE_WORDS + i], w[e * IMAGE_WORDS + i]) for i in range(IMAGE_WORDS)]
            words = [one & other if plan.operation == AND else one ^ other for one, other in pairs]
            _add(block.counts, plan.count(0, pixel, column, e), _count(plan, words), factor)


def _add(into: Any, at: Any, count: Any, factor: int) -> None:
    term = count if factor == 1 else count * T.uint32(factor & 0xFFFFFFFF)
    T.buffer_store(into, into[at] + term, [at])


def _count(plan: PopcPlan, words: list[Any]) -> Any:
    """Bits of four words. With carry_save the first three become a word of sums and one of carries, which count two."""
    if not cast(PopcConfig, plan.config).carry_save:
        return _bits(words[0]) + _bits(words[1]) + _bits(words[2]) + _bits(words[3])
    a, b, c, rest = (bind("word", word) for word in words)
    carries = (a & b) | (c & (a | b))
    return _bits(a ^ b ^ c) + _bits(carries) * T.uint32(2) + _bits(rest)


def _bits(word: Any) -> Any:
    found = registers("bits", 1)
    op.emit(T.ptx.popc.b32(found[0], word))
    return found[0]

"""The products of a stage: a lane combines the 128 bits of its image with those of its two channels of each tile."""

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
    """All products of a stage: tap by tap, 128 channels and one pair of planes at a time.

    These loops are not unrolled: otherwise the compiler loads too far ahead and spills registers."""
    plan = cast(PopcPlan, block.plan)
    with (
        loop("r", plan.rows_staged, T.serial) as r,
        loop("s", plan.view.s, T.serial) as s,
        loop("channels", plan.config.chunk, T.serial) as channels,
        loop("plane", plan.planes, T.serial) as plane,
    ):
        _plane(block, source, (r, s, channels), plane)


def _plane(block: Block, source: Staged | Direct, tap: tuple[Any, Any, Any], plane: Any) -> None:
    """A plane of the activations for 128 channels of a tap."""
    plan = cast(PopcPlan, block.plan)
    pixels, (r, s, channels) = plan.config.warp_row_tiles, tap
    x = registers("x", IMAGE_WORDS * pixels)
    of_ones = _chosen([plan.ones_factor(t) for t in range(plan.planes)], plane) if plan.ones_registers else None
    with loop("m", pixels) as pixel:
        source.image_row(x, pixel * IMAGE_WORDS, pixel, (r, s), (channels, plane))
        if plan.ones_registers:
            words = [x[pixel * IMAGE_WORDS + i] for i in range(IMAGE_WORDS)]
            _add(block.ones, pixel, _count(plan, words), of_ones)
    with loop("weight_plane", plan.weight_planes, T.serial) as weight_plane:
        factors = [plan.factor(s, t) for s in range(plan.weight_planes) for t in range(plan.planes)]
        factor = _chosen(factors, weight_plane * plan.planes + plane)
        with loop("n", plan.config.warp_col_tiles) as column:
            _tile(block, source, x, column, tap, weight_plane, factor)


def _chosen(factors: list[int], index: Any) -> Any:
    """Select one of several factors."""
    words = [T.uint32(factor & 0xFFFFFFFF) for factor in factors]
    found: Any = words[-1]
    for place in reversed(range(len(words) - 1)):
        if factors[place] != factors[-1]:
            found = T.Select(index == place, words[place], found)
    return found if len(set(factors)) == 1 else bind("factor", found)


def _tile(
    block: Block, source: Staged | Direct, x: Any, column: Any, tap: tuple[Any, Any, Any], weight_plane: Any,
    factor: Any,
) -> None:  # fmt: skip
    """One pair of planes for a tile of 8 channels and all pixels of the warp."""
    plan = cast(PopcPlan, block.plan)
    r, s, channels = tap
    group = block.warp_col * plan.warp_words + column // GROUP_TILES
    place = plan.weight_place(r, s, channels, weight_plane, group)
    first = column % GROUP_TILES * TILE_COLUMNS + block.lane % 4 * LANE_COLUMNS
    w = registers("w", IMAGE_WORDS * LANE_COLUMNS)
    for e in range(LANE_COLUMNS):
        source.weights(w, e * IMAGE_WORDS, place, (first + e) * IMAGE_WORDS)
    with loop("m", plan.config.warp_row_tiles) as pixel:
        for e in range(LANE_COLUMNS):
            pairs = [(x[pixel * IMAGE_WORDS + i], w[e * IMAGE_WORDS + i]) for i in range(IMAGE_WORDS)]
            words = [one & other if plan.operation == AND else one ^ other for one, other in pairs]
            _add(block.counts, plan.count(0, pixel, column, e), _count(plan, words), factor)


def _add(into: Any, at: Any, count: Any, factor: Any) -> None:
    T.buffer_store(into, into[at] + count * factor, [at])


def _count(plan: PopcPlan, words: list[Any]) -> Any:
    """Number of bits set in four words. With carry_save the first three become a word of sums and one of carries, which
    count double."""
    if not cast(PopcConfig, plan.config).carry_save:
        return _bits(words[0]) + _bits(words[1]) + _bits(words[2]) + _bits(words[3])
    a, b, c, rest = (bind("word", word) for word in words)
    carries = (a & b) | (c & (a | b))
    return _bits(a ^ b ^ c) + _bits(carries) * T.uint32(2) + _bits(rest)


def _bits(word: Any) -> Any:
    found = registers("bits", 1)
    op.emit(T.ptx.popc.b32(found[0], word))
    return found[0]

"""The products of a stage: fragments to registers, one word per lane, and b1 matrix instructions."""

from __future__ import annotations

from typing import Any, cast

from tvm.script import tirx as T

from subbyte.families.bmma.plan import BmmaPlan
from subbyte.families.shared.planes.emit.block import Block
from subbyte.families.shared.planes.emit.kernel import plane_kernel
from subbyte.families.shared.planes.emit.stage import Direct, Staged
from subbyte.families.shared.planes.geometry import GROUP_TILES
from subbyte.numerics.bit_products import AND
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import loop, registers

_ALL = 0xFFFFFFFF


def bmma_kernel(plan: BmmaPlan) -> Any:
    """The TIRx function of a plan."""
    return plane_kernel(plan, multiply, ones_of)


def multiply(block: Block, source: Staged | Direct) -> None:
    """All products of a stage: one kernel row after the other, two blocks of 128 channels at a time."""
    plan = cast(BmmaPlan, block.plan)
    with loop("r", plan.rows_staged, T.serial) as r:
        for first in range(0, len(plan.pieces), plan.atom.blocks):
            _step(block, source, r, plan.pieces[first : first + plan.atom.blocks])


def _step(block: Block, source: Staged | Direct, r: Any, pieces: tuple[tuple[int, int], ...]) -> None:
    """One instruction for each pair of planes, group of pixels, and tile of columns."""
    plan = cast(BmmaPlan, block.plan)
    config, pixels = plan.config, plan.pairs * plan.atom.pixels
    mine, others_of = plan.warp_planes, (block.split // plan.planes, block.split % plan.planes)
    b = registers("b", mine[0] * len(pieces) * config.warp_col_tiles)
    for weight_plane in range(mine[0]):
        stored = weight_plane if plan.splits == 1 else others_of[0]
        for piece, (s, channels) in enumerate(pieces):
            with loop("c", plan.warp_words) as group:
                place = plan.weight_place(r, s, channels, stored, block.warp_col * plan.warp_words + group)
                at = _column(plan, weight_plane, piece, len(pieces), group * GROUP_TILES)
                source.weights(b, at, place, block.lane * GROUP_TILES)
    neither = _inverted("not_b", b, mine[0] * len(pieces) * config.warp_col_tiles) if plan.doubled else None
    for plane in range(mine[1]):
        stored = plane if plan.splits == 1 else others_of[1]
        a = registers("a", len(pieces) * pixels)
        for piece, (s, channels) in enumerate(pieces):
            with loop("m", pixels) as pixel:
                source.activation(a, piece * pixels + pixel, pixel, (r, s), (channels, stored))
        if plan.ones_registers:
            _count_ones(block, a, plane, len(pieces))
        for weight_plane in range(mine[0]):
            _products(block, a, b, weight_plane, plane, len(pieces))
        if plan.doubled:
            others = _inverted("not_a", a, len(pieces) * pixels)
            for weight_plane in range(mine[0]):
                _products(block, others, neither, weight_plane, plane, len(pieces))


def _inverted(name: str, words: Any, count: int) -> Any:
    made = registers(name, count)
    with loop("i", count) as i:
        T.buffer_store(made, words[i] ^ T.uint32(_ALL), [i])
    return made


def _column(plan: BmmaPlan, weight_plane: int, piece: int, pieces: int, column: Any) -> Any:
    """Register for a tile of columns."""
    return (weight_plane * pieces + piece) * plan.config.warp_col_tiles + column


def _rows(plan: BmmaPlan, a: Any, pair: Any, pieces: int) -> list[Any]:
    """A's registers go by channels first, then by pixel (PTX ISA, mma.m16n8k256)."""
    pixels = plan.pairs * plan.atom.pixels
    return [a[piece * pixels + pair + half * plan.pairs] for piece in range(pieces) for half in range(plan.atom.pixels)]


def _instruction(plan: BmmaPlan, pieces: int, sums: list[Any], rows: list[Any], columns: list[Any]) -> None:
    atom = plan.atom if pieces == plan.atom.blocks else plan.last_atom
    op.emit(T.ptx[atom.ptx](*sums, *rows, *columns, *sums))


def _products(block: Block, a: Any, b: Any, weight_plane: int, plane: int, pieces: int) -> None:
    plan = cast(BmmaPlan, block.plan)
    base = plan.set_of(weight_plane, plane)
    with loop("m", plan.pairs) as pair, loop("n", plan.config.warp_col_tiles) as column:
        first = plan.count(base, pair, column, 0)
        sums = [block.counts[first + i] for i in range(plan.atom.accumulators)]
        columns = [b[_column(plan, weight_plane, piece, pieces, column)] for piece in range(pieces)]
        _instruction(plan, pieces, sums, _rows(plan, a, pair, pieces), columns)


def _count_ones(block: Block, a: Any, plane: int, pieces: int) -> None:
    """Count the activation bits: with columns of ones, or of zeros if differing bits are counted."""
    plan = cast(BmmaPlan, block.plan)
    if plan.counted_by_instruction:
        constant = T.uint32(_ALL if plan.operation == AND else 0)
        with loop("m", plan.pairs) as pair:
            first = plan.ones_register(plane, pair)
            sums = [block.ones[first + i] for i in range(plan.atom.accumulators)]
            _instruction(plan, pieces, sums, _rows(plan, a, pair, pieces), [constant] * pieces)
        return
    pixels = plan.pairs * plan.atom.pixels
    with loop("m", pixels) as pixel:
        for piece in range(pieces):
            count = registers("count", 1)
            op.emit(T.ptx.popc.b32(count[0], a[piece * pixels + pixel]))
            at = plan.ones_register(plane, pixel)
            T.buffer_store(block.ones, block.ones[at] + count[0], [at])


def ones_of(block: Block, pixel: Any) -> Any:
    """The contribution of the activation bits alone to every channel of a pixel."""
    plan = cast(BmmaPlan, block.plan)
    total: Any = T.uint32(0)
    for plane in range(plan.warp_planes[1]):
        factor = 1 if plan.splits > 1 else plan.ones_factor(plane)
        total = total + block.ones[plan.ones_register(plane, pixel)] * T.uint32(factor & _ALL)
    if plan.counted_by_instruction:
        return total
    value, other = registers("value", 1), registers("other", 1)
    T.buffer_store(value, total, [0])  # a lane has counted a quarter of the channels of its image
    for lanes in (1, 2):
        mask = T.uint32(op.FULL_WARP)
        op.emit(T.ptx.shfl_sync.bfly.b32(other[0], value[0], T.uint32(lanes), T.uint32(0x1F), mask))
        T.buffer_store(value, value[0] + other[0], [0])
    return value[0]

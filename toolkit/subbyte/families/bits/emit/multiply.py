"""A tile's products: one-bit wgmma directly on the staged rows, and the accumulation of the counts."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block, TilePlace
from subbyte.families.bits.tiles import CORE_BYTES, PIECE_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers

_UNIT = 16
"""Bytes per unit in a descriptor."""
_ROW_BITS = 20
"""More bits than the index of an output row has."""


def multiply(block: Block, place: TilePlace) -> list[list[Any]]:
    """All instructions of a turn, one group per tile in order, so that waiting for all but n groups makes the earlier
    tiles readable. Returns for each tile a register array of counts for each set of sums."""
    plan = block.plan
    first_pixel, variant = place.first_input(block), T.uint32(0)
    tiles = range(plan.config.turn_rows)
    if len(plan.parities) > 1 and len(tiles) == 1:
        parity = T.cast((block.input_row(place.row) + 2 * plan.view.pad) % 2, "uint32")
        variant = parity * T.uint32(plan.variant_bytes // _UNIT)
    names = [[f"counts{index}" + "_below" * tile for index in range(plan.sets)] for tile in tiles]
    counts = [[registers(name, plan.sums) for name in of_tile] for of_tile in names]
    units = T.cast(first_pixel * (plan.pixel_bytes // _UNIT), "uint32")
    a = bind("rows_at", block.units + units)
    b = bind("weights_at", block.units + T.uint32(plan.weight_base // _UNIT) + variant)
    nothing = _nothing(place)
    op.wgmma_fence()
    order = range(plan.planes - 1, -1, -1) if plan.config.doubled else range(plan.planes)
    for number, plane in enumerate(order):
        for tile in tiles:
            into = counts[tile][0 if plan.config.doubled else plane]
            if number and plan.config.doubled:
                _double(into, plan.sums, plan.doubling(plane), len(tiles) - 1)
            for step in range(plan.steps):
                first = step == 0 and not (number and plan.config.doubled)
                _instruction(block, into, (a, b), nothing, step, plane, tile, first)
            if number == len(order) - 1 or plan.config.doubled:
                op.wgmma_commit()
    return counts


def _double(sums: Any, count: int, factor: int, others: int) -> None:
    """Finish a tile's products, while those of the ``others`` continue, and multiply its sums by the weight of a bit of
    the preceding plane: all of them, or the assembler inserts a wait after every instruction."""
    op.wgmma_wait(others)
    for i in range(count):
        T.buffer_store(sums, sums[i] * T.uint32(factor & 0xFFFFFFFF), [i])
    op.wgmma_fence()


def _nothing(place: TilePlace) -> tuple[Any, Any]:
    """0 for the upper words of all descriptors of a turn, of rows and of weights.

    They are constants, but the assembler rewrites constants before every instruction: two of five instructions around a
    product. Values that it cannot know stay in registers, if the two words differ and are computed within the turn. So
    they include bits of the row's index that are known to be 0.
    """
    zero = bind("no_row", T.cast(op.hidden("row_word", place.row), "uint32") >> T.uint32(_ROW_BITS))
    return zero, bind("no_rows", zero + zero)


def _instruction(
    block: Block,
    into: Any,
    at: tuple[Any, Any],
    nothing: tuple[Any, Any],
    step: int,
    plane: int,
    tile: int,
    first: bool,
) -> None:
    plan = block.plan
    start, distance = plan.step(step)
    below, variant = plan.below(tile)
    start += plane * CORE_BYTES + below
    piece = plan.n * PIECE_BYTES
    left = descriptor(at[0], start, distance, plan.view.stride * plan.pixel_bytes, nothing[0])
    right = descriptor(at[1], step * 2 * piece + variant, piece, CORE_BYTES, nothing[1])
    adds = T.ptx.pred(T.uint32(0 if first else 1))
    op.emit(T.ptx[plan.atom.ptx](*[into[i] for i in range(plan.sums)], left, right, adds))


def descriptor(address: Any, offset: int, piece: int, core: int, nothing: Any = None) -> Any:
    """The matrix descriptor of data ``offset`` bytes after an address in units of 16 bytes: no swizzle, ``piece`` bytes
    between consecutive 128 bits of K, ``core`` bytes between consecutive groups of 8 rows (PTX ISA, matrix descriptor).
    ``nothing``: a 0 to be added to the upper word."""
    low = address + T.uint32(offset // _UNIT + (piece // _UNIT << 16))
    high = T.uint64(core // _UNIT) if nothing is None else T.cast(nothing + T.uint32(core // _UNIT), "uint64")
    return (high << T.uint64(32)) | T.cast(low, "uint64")

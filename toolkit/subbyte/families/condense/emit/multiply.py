"""Live positions to Tensor Cores.

A step takes 32 positions, one per lane: ldmatrix gathers the 16 bytes that each lane points at and gives each lane
the values that it multiplies. A lane without remaining positions points at zeros: the highest set bit of 0 is -1, and
the data before a panel of rows is zeros. A tile takes as many steps as its lane with the most live positions.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.condense.emit.block import Block
from subbyte.families.condense.plan import BLOCK_WORDS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers

BYTES = (0x6420, 0x7531)
"""Byte selectors for two words: the lower byte of every half, the upper one."""


def multiply_chunk(block: Block, buffer: Any) -> None:
    """Emit the products of the staged chunk, one of a warp's tiles after the other."""
    plan = block.plan
    rows = bind("rows", block.shared[plan.row_masks + block.warp_row * 32 + block.lane])
    ours = plan.rows_base + block.warp_row * plan.row_panel_words + BLOCK_WORDS
    of_lane = block.lane % plan.classes * 4
    left = bind("left", block.address(ours + of_lane))
    first = block.warp_col * plan.config.panels
    for panel in range(plan.config.panels):
        place = plan.weights_base + buffer * plan.buffer_words + BLOCK_WORDS + (first + panel) * plan.panel_words
        right = bind("right", block.address(place + of_lane))
        for tile in range(plan.panel_tiles):
            columns = block.shared[plan.column_masks + ((first + panel) * plan.panel_tiles + tile) * 32 + block.lane]
            _tile(block, panel, tile, bind("common", rows & columns), left, right)


def _tile(block: Block, panel: int, tile: int, common: Any, left: Any, right: Any) -> None:
    rest, steps = registers("rest", 1), registers("steps", 1)
    T.buffer_store(rest, common if block.plan.config.sharing == 1 else _every_second(block, common), [0])
    op.count_bits(steps[0], rest[0])
    op.most_of_warp(steps[0], steps[0])
    turns = bind("turns", T.cast(steps[0], "int32"))
    a, b = registers("a", 4), registers("b", 4)
    if not block.plan.config.fetch_ahead:
        with loop("step", turns, T.serial):
            _gather(block, rest, left, right, (a, b))
            _multiply_step(block, panel, tile, a, b)
        return
    next_a, next_b = registers("next_a", 4), registers("next_b", 4)
    _gather(block, rest, left, right, (next_a, next_b))
    with loop("step", turns, T.serial):
        for i in range(4):
            T.buffer_store(a, next_a[i], [i])
            T.buffer_store(b, next_b[i], [i])
        _gather(block, rest, left, right, (next_a, next_b))
        _multiply_step(block, panel, tile, a, b)


def _every_second(block: Block, common: Any) -> Any:
    """Of the set bits the first, third and so on for the lower of two lanes that share them, the others for the upper
    one: a bit of the prefix sums modulo 2 decides."""
    odd = common
    for distance in (1, 2, 4, 8, 16):
        odd = bind("odd", odd ^ (odd << T.uint32(distance)))
    return common & T.Select(block.lane < 16, odd, ~odd)


def _gather(block: Block, rest: Any, left: Any, right: Any, into: tuple[Any, Any]) -> None:
    """The last of a lane's remaining positions: its rows and its columns."""
    place, bit = registers("place", 1), registers("bit", 1)
    op.highest_bit(place[0], rest[0])
    op.shift_left(bit[0], T.uint32(1), place[0])
    T.buffer_store(rest, rest[0] ^ bit[0], [0])
    offset = bind("offset", place[0] * T.uint32(block.plan.run_bytes))
    op.load_transposed(into[0], left + offset)
    op.load_transposed(into[1], right + offset)


def _multiply_step(block: Block, panel: int, tile: int, a: Any, b: Any) -> None:
    """Unpack the gathered rows and columns of a step, and multiply them."""
    rows = [_split(_bytes(a, pair, byte)) for pair in range(2) for byte in range(2)]
    tiles = block.plan.config.tile_columns // 8
    for byte in range(2):
        of_byte = [t for t in range(tile * tiles, (tile + 1) * tiles) if t // 2 == byte]
        if not of_byte:
            continue
        columns = [_split(_bytes(b, pair, byte)) for pair in range(2)]
        for t in of_byte:
            for m in range(2):
                fragment = [rows[m][0], rows[m][1], rows[2 + m][0], rows[2 + m][1]]
                _multiply(block, (panel * 4 + t) * 2 + m, fragment, [columns[pair][t % 2] for pair in range(2)])


def _bytes(loaded: Any, pair: int, byte: int) -> Any:
    """A byte of each half of two registers: four positions."""
    word = registers("word", 1)
    op.permute_bytes(word[0], loaded[2 * pair], loaded[2 * pair + 1], T.uint32(BYTES[byte]))
    return word[0]


def _split(word: Any) -> tuple[Any, Any]:
    """The lower and the upper half of every byte, as signed bytes times 16."""
    low = bind("low", (word << T.uint32(4)) & T.uint32(LOW_NIBBLES))
    return low, bind("high", word & T.uint32(LOW_NIBBLES))


def _multiply(block: Block, index: int, rows: list[Any], columns: list[Any]) -> None:
    sums = [block.sums[4 * index + i] for i in range(4)]
    T.evaluate(T.ptx[block.plan.atom.ptx](*sums, *rows, *columns, *sums))

"""Which positions of K are live: a word for each lane, with a bit for each of its positions in the chunk.

Positions are assigned to lanes, not gathered into a common list: lane ``l`` takes position ``l`` of every block, so
the 16-byte reads of eight neighbouring lanes are in different banks, whichever positions are live. If
lanes ``l`` and ``l + 16`` share positions, both have the bits of both: bits ``2 b`` and ``2 b + 1`` of block ``b``.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.condense.emit.block import Block
from subbyte.families.condense.plan import BLOCK_WORDS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers


def find_live(block: Block, buffer: Any) -> None:
    """The live positions of the staged chunk, for every panel of rows and every tile of columns."""
    _of_rows(block)
    _of_columns(block, buffer)


def _of_rows(block: Block) -> None:
    plan = block.plan

    def unit(panel: Any) -> None:
        live = registers("live", 1)
        T.buffer_store(live, T.uint32(0), [0])
        first = plan.rows_base + panel * plan.row_panel_words + BLOCK_WORDS + block.lane * 4
        with loop("b", plan.config.chunk) as b:
            _note(block, live, 0, _any_of(block, first + b * BLOCK_WORDS), b)
        T.buffer_store(block.shared, _shared(block, live, 0), [plan.row_masks + panel * 32 + block.lane])

    block.by_warps(plan.config.row_warps, unit)


def _of_columns(block: Block, buffer: Any) -> None:
    plan = block.plan
    tiles, wide = plan.panel_tiles, plan.config.tile_columns // 2  # 4 bits of every half word are 8 columns
    base = plan.weights_base + buffer * plan.buffer_words + BLOCK_WORDS

    def unit(panel: Any) -> None:
        live = registers("live", tiles)
        for tile in range(tiles):
            T.buffer_store(live, T.uint32(0), [tile])
        with loop("b", plan.config.chunk) as b:
            some = bind("some", _any_of(block, base + panel * plan.panel_words + b * BLOCK_WORDS + block.lane * 4))
            both = bind("both", some | (some >> T.uint32(16)))
            for tile in range(tiles):
                _note(block, live, tile, both & T.uint32(((1 << wide) - 1) << wide * tile), b)
        for tile in range(tiles):
            place = plan.column_masks + (panel * tiles + tile) * 32 + block.lane
            T.buffer_store(block.shared, _shared(block, live, tile), [place])

    block.by_warps(plan.block_panels, unit)


def _any_of(block: Block, place: Any) -> Any:
    """The bits set in any of four words."""
    words = registers("words", 4)
    op.load_shared16(words, block.address(place))
    return words[0] | words[1] | words[2] | words[3]


def _note(block: Block, live: Any, tile: int, some: Any, b: Any) -> None:
    bit = T.uint32(1) << T.cast(block.plan.config.sharing * b, "uint32")
    T.buffer_store(live, live[tile] | T.Select(some != T.uint32(0), bit, T.uint32(0)), [tile])


def _shared(block: Block, live: Any, tile: int) -> Any:
    """A lane's bits combined with those of the lane with which it shares positions."""
    if block.plan.config.sharing == 1:
        return live[tile]
    other = registers("other", 1)
    mine = bind("mine", live[tile] << T.cast(block.lane // 16, "uint32"))
    op.exchange(other[0], mine, 16)
    return mine | other[0]

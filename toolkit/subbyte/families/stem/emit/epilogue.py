"""Sums to memory: requantized and packed, or raw.

For one image a thread holds filters / 4 neighbouring channels of two pixels: sums 4 j and 4 j + 1 are channels 2 j and
2 j + 1 of the first pixel, 4 j + 2 and 4 j + 3 of the second. Nothing is exchanged, and a warp's stores of a pixel are
whole lines.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.config import TILE_PIXELS
from subbyte.families.stem.emit.block import Block, Turn
from subbyte.families.stem.emit.constants import held_parameters
from subbyte.families.stem.plan import LINES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.tirx.requantize import by_float, finished, requantize
from subbyte.workload.precision import SUMS

LANES = 4
"""Lanes that share the output channels of a pixel."""
WORD_CHANNELS = 8


class Epilogue:
    """Destinations of a thread's results of a tile, and the code to store them."""

    def __init__(self, block: Block) -> None:
        self.block = block
        plan = block.plan
        self.words = plan.config.filters // (LANES * WORD_CHANNELS)
        """Words of a thread's channels per pixel."""
        self.first_word = bind("first_word", block.lane % LANES * self.words)
        """The first of them, counted from the block's first channel."""
        self.held: Any = held_parameters(block, self.first_word * WORD_CHANNELS) if plan.begun else None

    def store(self, sums: Any, turn: Turn, tile: Any, first_row: int) -> None:
        """Requantize, pack and store a tile of each output row that was accumulated together."""
        plan, lay = self.block.plan, self.block.plan.strings
        unit = turn.segment * plan.segment_units + tile // lay.phases
        column = bind("column", (unit * TILE_PIXELS + self.block.warp % 4 * 2) * lay.phases + tile % lay.phases)
        first = bind("first_row", turn.rows * plan.config.turn_rows + first_row)
        places = [(row, pixel) for row in range(plan.config.together) for pixel in range(2)]
        packed = None if plan.output == SUMS else self._packed(sums, places)
        for index, (row, pixel) in enumerate(places):
            p, q = first + row, column + pixel * lay.phases
            inside = [p < plan.workload.p] if plan.workload.p % plan.config.turn_rows else []
            inside += [q < plan.workload.q] if plan.workload.q % lay.unit_pixels else []
            with when(every(inside)):
                if packed is None:
                    self._store_sums(sums, row, pixel, turn, p, q)
                else:
                    self._store_words(packed, index * self.words, turn, p, q)

    def _target(self, turn: Turn, p: Any, q: Any, word: int) -> Any:
        """Index of one of the thread's words of a pixel."""
        plan, block = self.block.plan, self.block
        at = self.first_word + word
        channels = block.slice_ * (plan.config.filters // 32) + at // 4
        return plan.output_word(turn.group, p, q, channels, block.image) + at % 4

    # ---- int4 -------------------------------------------------------------------------------------------------------

    def _packed(self, sums: Any, places: list[tuple[int, int]]) -> Any:
        """The words of all pixels, [row][pixel][word]."""
        plan, words = self.block.plan, self.words
        signed = plan.requant != "fixed"
        packed = registers("packed", len(places) * words)
        for word in range(words):
            parameters = self._general(word) if signed else None
            for index, (row, pixel) in enumerate(places):
                place = index * words + word
                T.buffer_store(packed, T.uint32(0), [place])
                for channel in (6, 4, 2, 0):
                    low, high = (
                        bind("value", self._requantized(sums, row, pixel, word, channel + more, parameters))
                        for more in range(2)
                    )
                    op.pack_int4(packed[place], high, low, signed)
                if not signed:
                    T.buffer_store(packed, finished(plan, packed[place]), [place])
        return packed

    def _general(self, word: int) -> Any:
        """Bias, multiplier and shift of each of 8 channels, [line][channel]."""
        plan = self.block.plan
        held = registers("parameters", LINES * WORD_CHANNELS)
        channel = T.cast((self.first_word + word) * WORD_CHANNELS, "uint32")
        at = bind("parameters_at", self.block.base + T.uint32(plan.parameter_base) + channel * T.uint32(4))
        for line in range(LINES):
            for half in range(2):
                address = at + T.uint32(4 * (line * plan.config.filters + 4 * half))
                op.load_shared16(held, address, line * WORD_CHANNELS + 4 * half)
        return held

    def _requantized(self, sums: Any, row: int, pixel: int, word: int, channel: int, parameters: Any) -> Any:
        plan, value = self.block.plan, self._sum(sums, row, pixel, word * WORD_CHANNELS + channel)
        if parameters is not None:
            three = [T.cast(parameters[line * WORD_CHANNELS + channel], "int32") for line in range(LINES)]
            return requantize(plan, value, three)
        place, count = word * WORD_CHANNELS + channel, plan.config.filters // 4
        factor, offset = (T.reinterpret("float32", self.held[line * count + place]) for line in range(2))
        return by_float(plan, value, factor, offset)

    def _store_words(self, packed: Any, first: int, turn: Turn, p: Any, q: Any) -> None:
        if self.words == 3:  # they may belong to two blocks of channels
            for word in range(3):
                T.buffer_store(self.block.output, packed[first + word], [self._target(turn, p, q, word)])
            return
        target = bind("target", self._target(turn, p, q, 0))
        with loop("i", self.words, T.vectorized) as i:
            T.buffer_store(self.block.output, packed[first + i], [target + i])

    # ---- int32 ------------------------------------------------------------------------------------------------------

    def _store_sums(self, sums: Any, row: int, pixel: int, turn: Turn, p: Any, q: Any) -> None:
        scale = T.int32(self.block.plan.atom.scale_log2)
        for word in range(self.words):
            target = bind("target", self._target(turn, p, q, word) * WORD_CHANNELS)
            for half in (0, 4):
                values = [self._sum(sums, row, pixel, word * WORD_CHANNELS + half + i) >> scale for i in range(4)]
                found = [T.cast(value, "uint32") for value in values]
                op.store16(self.block.output.ptr_to([target + half]), found)

    def _sum(self, sums: Any, row: int, pixel: int, channel: int) -> Any:
        """One of a thread's sums, still scaled by the atom."""
        place = row * self.block.plan.row_sums + channel // 2 * 4 + pixel * 2 + channel % 2
        return T.cast(sums[place], "int32")

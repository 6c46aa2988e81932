"""Sums whose rows are output channels to memory: requantized and packed, or as they are.

A thread has rows ``g`` and ``g + 8`` (``g = lane // 4``), neighbouring channels, of images ``2 q`` and ``2 q + 1``
(``q = lane % 4``) of all eight pixels of a tile. As in the wgmma family two sums are a byte and two pixels a register,
``stmatrix.trans`` turns four of these from channels by images to images by channels, and a lane then reads all 16
channels of two pixels of an image.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.config import TILE_PIXELS
from subbyte.families.stem.emit.block import Block, Turn
from subbyte.families.stem.plan import EXCHANGED, LINES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.tirx.requantize import by_float, finished, requantize
from subbyte.workload.precision import SUMS

WORD_CHANNELS = 8
HALF = 4 * TILE_PIXELS
"""Sums of a thread of 8 pixels."""
PAIRS = TILE_PIXELS // 2
"""Registers of a thread's packed results of a tile, two pixels each."""


class ChannelRows:
    """Where a thread's results of a tile go, and how."""

    def __init__(self, block: Block) -> None:
        self.block = block
        plan = block.plan
        self.warp = bind("warp_place", block.warp % 4)
        self.signed = plan.requant != "fixed"
        if plan.output == SUMS:
            return
        place = block.warp * plan.exchange_bytes + block.lane * 16 + plan.exchange_base
        self.place = bind("exchange_at", block.base + T.cast(place, "uint32"))
        self.lines = range(LINES) if self.signed else range(1, LINES)
        self.held = registers("held", 2 * len(self.lines))
        channel = T.cast(self.warp * 16 + block.lane // 4 * 2, "uint32")
        at = bind("held_at", block.base + T.uint32(plan.parameter_base) + channel * T.uint32(4))
        for index, line in enumerate(self.lines):
            for parity in range(2):
                op.load_shared4(self.held, 2 * index + parity, at + T.uint32(4 * (line * plan.config.filters + parity)))

    def store(self, sums: Any, turn: Turn, tile: Any, first_row: int) -> None:
        """Requantize, pack and store a tile of each of the output rows that were summed up together."""
        plan, lay = self.block.plan, self.block.plan.strings
        unit = turn.segment * plan.segment_units + tile // lay.phases * (1 + plan.config.wide)
        column = bind("column", unit * TILE_PIXELS * lay.phases + tile % lay.phases)
        first = bind("first_row", turn.rows * plan.config.turn_rows + first_row)
        halves = range(1 + plan.config.wide)
        for own in [halves] if plan.halves_together else [(half,) for half in halves]:
            name = "other_half" if len(own) > 1 else "half_column"
            columns = {half: bind(name, column + TILE_PIXELS * lay.phases) if half else column for half in own}
            self._store_parts(sums, turn, first, columns)

    def _store_parts(self, sums: Any, turn: Turn, first: Any, columns: dict[int, Any]) -> None:
        """Store halves of an instruction's pixels, by the column where each begins, in each of the output rows."""
        plan = self.block.plan
        parts = [(row, half) for row in range(plan.config.together) for half in columns]
        mine = [sums[row * plan.row_sums + half * HALF + i] for row, half in parts for i in range(HALF)]
        if plan.output == SUMS:
            for part, (row, half) in enumerate(parts):
                self._store_sums(mine, part, turn, first + row, columns[half])
            return
        for part in range(len(parts)):
            packed = registers("packed", PAIRS)
            for pair in range(PAIRS):
                self._pack(packed, pair, mine, part)
            op.store_transposed(self.place + T.uint32(part * EXCHANGED), [packed[pair] for pair in range(PAIRS)])
        op.emit(T.cuda.warp_sync())
        read = registers("read", 4 * len(parts))
        for part in range(len(parts)):
            op.load_shared16(read, self.place + T.uint32(part * EXCHANGED), 4 * part)
        op.emit(T.cuda.warp_sync())  # all have read: the next tile may write
        for part, (row, half) in enumerate(parts):
            self._store_words([read[4 * part + i] for i in range(4)], turn, first + row, columns[half])

    def _inside(self, p: Any, q: Any) -> Any:
        """The output has this pixel."""
        plan = self.block.plan
        inside = [p < plan.workload.p] if plan.workload.p % plan.config.turn_rows else []
        inside += [q < plan.workload.q] if plan.workload.q % plan.strings.unit_pixels else []
        return every(inside)

    def _word(self, turn: Turn, p: Any, q: Any, image: Any) -> Any:
        """First of the words with the warp's 16 channels of an image's pixel."""
        plan, block = self.block.plan, self.block
        channels = block.slice_ * (plan.config.filters // 32) + self.warp // 2
        return plan.output_word(turn.group, p, q, channels, image) + self.warp % 2 * 2

    # ---- int4 -------------------------------------------------------------------------------------------------------

    def _pack(self, packed: Any, pair: int, sums: Any, part: int) -> None:
        """Two pixels of the thread's two channels and two images."""
        T.buffer_store(packed, T.uint32(0), [pair])
        for image in (1, 0):
            for odd in (1, 0):
                low, high = (
                    bind("value", self._requantized(self._sum(sums, part, 2 * pair + odd, parity, image), parity))
                    for parity in range(2)
                )
                op.pack_int4(packed[pair], high, low, self.signed)

    def _requantized(self, value: Any, parity: int) -> Any:
        plan, own = self.block.plan, [self.held[2 * index + parity] for index in range(len(self.lines))]
        if self.signed:
            return requantize(plan, value, [T.cast(one, "int32") for one in own])
        factor, offset = (T.reinterpret("float32", one) for one in own)
        return by_float(plan, value, factor, offset)

    def _store_words(self, read: list[Any], turn: Turn, p: Any, column: Any) -> None:
        """Two pixels of a lane's image: their bytes take turns in what it read."""
        plan, lane = self.block.plan, self.block.lane
        words = registers("words", 2)
        for odd, selector in enumerate((0x6420, 0x7531)):
            q = bind("q", column + (lane // 8 * 2 + odd) * plan.strings.phases)
            with when(self._inside(p, q)):
                for half in range(2):
                    op.permute_bytes(words[half], read[2 * half], read[2 * half + 1], T.uint32(selector))
                    if not self.signed:
                        T.buffer_store(words, finished(plan, words[half]), [half])
                target = bind("target", self._word(turn, p, q, lane % 8))
                if plan.config.streamed:
                    op.store8_streamed(self.block.output.ptr_to([target]), [words[half] for half in range(2)])
                    continue
                with loop("i", 2, T.vectorized) as i:
                    T.buffer_store(self.block.output, words[i], [target + i])

    # ---- int32 ------------------------------------------------------------------------------------------------------

    def _store_sums(self, sums: Any, part: int, turn: Turn, p: Any, column: Any) -> None:
        plan, lane, scale = self.block.plan, self.block.lane, T.int32(self.block.plan.atom.scale_log2)
        first = bind("first_sum", self._word(turn, p, column, lane % 4 * 2) * WORD_CHANNELS + lane // 4 * 2)
        apart = [plan.output_word(0, 0, *at) * WORD_CHANNELS for at in ((plan.strings.phases, 0, 0), (0, 0, 1))]
        for pixel in range(TILE_PIXELS):
            with when(self._inside(p, column + pixel * plan.strings.phases)):
                for image in range(2):
                    at = first + (pixel * apart[0] + image * apart[1])
                    pair = [self._sum(sums, part, pixel, parity, image) >> scale for parity in range(2)]
                    store = op.store8_streamed if plan.config.streamed else op.store8
                    store(self.block.output.ptr_to([at]), [T.cast(one, "uint32") for one in pair])

    def _sum(self, sums: Any, part: int, pixel: int, parity: int, image: int) -> Any:
        """One of a thread's sums, still scaled by the atom."""
        return T.cast(sums[part * HALF + pixel * 4 + parity * 2 + image], "int32")

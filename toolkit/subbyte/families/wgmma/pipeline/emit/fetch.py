"""A consumer warpgroup's weights: fetched from global memory into registers some fragments before they are multiplied,
without a pause between tile iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.memory import SPARSE_VALUES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when


@dataclass
class Fetch:
    """The source of the weights: the fragments in flight, and the position of the next one."""

    block: Block
    held: Any
    """Registers of the fragments in flight."""
    cursor: Any
    """This thread's word in the next fragment; 64 bits, because computing a 64-bit product for each address would be
    slow while wgmma runs."""
    left: Any
    row: Any
    m_iteration: Any

    @classmethod
    def begin(cls, block: Block) -> Fetch:
        """Allocate registers and state, which ``start`` sets."""
        names = ("fragments_left", "fetch_row", "fetch_pass")
        state = [registers("cursor", 1, "int64"), *(registers(name, 1, "int32") for name in names)]
        return cls(block, registers("fetched", block.plan.held_words), *state)

    def start(self) -> None:
        """Fetch the first fragments of the first tile iteration."""
        config = self.block.plan.knobs
        T.buffer_store(self.row, self.block.first_row + self.block.y * config.tile_rows, [0])
        T.buffer_store(self.m_iteration, T.int32(0), [0])
        self._enter_run()
        for place in range(self.block.plan.held_fragments):
            self._load(place)
        self.end_body()

    def end_fragment(self, held: int) -> None:
        """The fragment in registers ``held`` is unpacked: fetch another one in its place, unless it stays."""
        if not self.block.plan.knobs.resident:
            self._load(held)

    def end_body(self) -> None:
        """Advance at the end of a loop body. Tile iterations end there too: they are whole numbers of loop bodies."""
        if not self.block.plan.knobs.resident:
            self._step(self.block.plan.ahead)

    def _load(self, place: int) -> None:
        if not self.block.plan.knobs.sparse:
            op.load16(self.held, 4 * place, self._pointer(place), "weights")
            return
        op.load8(self.held, 3 * place, self._pointer(place))
        behind = T.cast(SPARSE_VALUES - self.block.member, "int64")
        op.load4(self.held, 3 * place + 2, self._pointer(place, behind))

    def _pointer(self, place: int, behind: Any = None) -> Any:
        plan = self.block.plan
        step, tile = divmod(place, plan.knobs.tiles_m)
        words = step * plan.fragment_words + tile * plan.knobs.consumers_m * plan.fragment_word(1, 0)
        word = self.cursor[0] + T.int64(words)
        return self.block.weights.ptr_to([word if behind is None else word + behind])

    def _step(self, fragments: int) -> None:
        """Advance by some fragments; at the end of a tile iteration go to the first one of the following iteration."""
        T.buffer_store(self.cursor, self.cursor[0] + T.int64(fragments * self.block.plan.fragment_words), [0])
        T.buffer_store(self.left, self.left[0] - fragments, [0])
        with when(self.left[0] == 0):
            self._advance()
            self._enter_run()

    def _advance(self) -> None:
        """The next tile iteration; after the last one the first again, whose fragments nobody waits for."""
        config = self.block.plan.knobs
        step = config.tile_rows * config.consumers_rows

        def next_rows() -> None:
            T.buffer_store(self.row, self.row[0] + step, [0])
            with when(self.row[0] >= self.block.end_row):
                T.buffer_store(self.row, self.block.first_row, [0])

        if config.m_iterations == 1:
            next_rows()
            return
        T.buffer_store(self.m_iteration, self.m_iteration[0] + 1, [0])
        with when(self.m_iteration[0] == config.m_iterations):
            T.buffer_store(self.m_iteration, T.int32(0), [0])
            next_rows()

    def _enter_run(self) -> None:
        plan = self.block.plan
        first, together = self.m_iteration[0], plan.knobs.tiles_m
        tile = self.block.tile(first if together == 1 else first * together)
        start = plan.fragment_word(tile, self.block.rank) + self.block.member * plan.thread_words
        taps = plan.tap_rows
        if not plan.taps_skipped or plan.knobs.resident:
            T.buffer_store(self.cursor, T.cast(start, "int64"), [0])
            T.buffer_store(self.left, T.int32(taps * plan.run), [0])
            return
        count = T.min(T.int32(plan.knobs.tile_rows), self.block.end_row - self.row[0])
        first, end = plan.tap_range(self.row[0], count, T.max, T.min)
        first = bind("first_tap", first)
        T.buffer_store(self.cursor, T.cast(start + first * (plan.run * plan.fragment_words), "int64"), [0])
        T.buffer_store(self.left, (end - first) * plan.run, [0])

"""Fetching a consumer warpgroup's live blocks from global memory into registers, with their places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.listed import HEAD_WORDS, VALUE_WORDS
from subbyte.families.wgmma.pipeline.emit.fetch import Fetch
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


@dataclass
class ListedFetch(Fetch):
    """The same as for dense weights; a tile iteration takes the loop bodies whose kernel rows meet an input row."""

    head: Any = field(init=False)
    """For the warpgroup's tile: its first fragment, and for each kernel row the live blocks before it, and their
    total."""

    @classmethod
    def begin(cls, block: Block) -> ListedFetch:
        """Allocate registers and state, which ``start`` sets."""
        found = super().begin(block)
        assert isinstance(found, ListedFetch)
        found.head = registers("head", block.plan.tap_rows + 2)
        return found

    def start(self) -> None:
        """Read the tile's head, and fetch the first fragments of the first tile iteration."""
        first = self.block.tile(0) * HEAD_WORDS
        for word in range(self.block.plan.tap_rows + 2):
            op.load4(self.head, word, self.block.weights.ptr_to([first + word]))
        super().start()

    def bodies(self, row: Any, count: Any) -> tuple[Any, Any]:
        """The range of loop bodies in the list for the tile iteration of ``count`` rows from ``row``; at least one.

        Blocks of other kernel rows in the first and last of them read zeros."""
        plan = self.block.plan
        if not plan.taps_skipped:
            return T.int32(0), self._until(plan.tap_rows)
        first, end = plan.tap_range(row, count, T.max, T.min)
        before, until = T.int32(0), self._until(plan.tap_rows)
        for tap in range(1, plan.tap_rows):
            before = T.Select(first == tap, self._live(tap) // (2 * plan.unroll), before)
        for tap in range(1, plan.tap_rows):
            until = T.Select(end == tap, self._until(tap), until)
        until = bind("until", until)
        return T.min(before, until - 1), until

    def _live(self, tap: int) -> Any:
        """Number of live blocks in the kernel rows before this one."""
        return T.cast(self.head[1 + tap], "int32")

    def _until(self, tap: int) -> Any:
        """Number of loop bodies that hold them."""
        size = 2 * self.block.plan.unroll
        return T.max((self._live(tap) + (size - 1)) // size, 1)

    def _load(self, place: int) -> None:
        first = self.block.plan.fragment_registers * place
        op.load16(self.held, first, self._pointer(place), "weights")
        behind = T.cast(VALUE_WORDS - self.block.member * 4, "int64")
        op.load8(self.held, first + 4, self._pointer(place, behind))

    def _enter_run(self) -> None:
        plan = self.block.plan
        count = T.min(T.int32(plan.knobs.tile_rows), self.block.end_row - self.row[0])
        first, end = self.bodies(self.row[0], count)
        first = bind("first_body", first)
        fragment = T.cast(self.head[0], "int32") + first * plan.unroll
        words = fragment * plan.fragment_words + (plan.padded_tiles * HEAD_WORDS + self.block.member * 4)
        T.buffer_store(self.cursor, T.cast(words, "int64"), [0])
        T.buffer_store(self.left, (end - first) * plan.unroll, [0])

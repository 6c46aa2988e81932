"""The tile iterations of a consumer warpgroup over a list of live blocks: one loop for all kernel rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.blocks.emit.fetch import ListedFetch
from subbyte.families.wgmma.emit.multiply import unpacked, wgmma
from subbyte.families.wgmma.listed import ROW_BIT
from subbyte.families.wgmma.pipeline.emit.consume import Iteration
from subbyte.families.wgmma.pipeline.emit.control import first_that_fits
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when

DISTANCE = (1 << ROW_BIT) - 1
"""The bits of a place below its kernel row."""


@dataclass
class ListedIteration(Iteration):
    """One tile iteration: it waits for all its input rows, then processes the list."""

    def multiply(self) -> None:
        """Emit the loop over the list's bodies."""
        plan, fetch = self.block.plan, self.fetch
        assert isinstance(fetch, ListedFetch)
        self._wait_for(bind("needed", self._last_stage()))
        self.starts = registers("row_start", plan.knobs.tile_rows)
        self.lows = registers("low_place", plan.knobs.tile_rows)
        self.spans = registers("places", plan.knobs.tile_rows)
        for row in range(plan.knobs.tile_rows):
            self._enter(row)
        first, end = fetch.bodies(self.row, self.count)
        bodies = bind("bodies", end - first)
        if not plan.meets_edges:
            self._through_list(bodies, at_edge=False)
            return
        first, last = plan.row_range
        highest = self.row * plan.rows.pixel_step
        lowest = (self.row + self.count - 1) * plan.rows.pixel_step + (plan.tap_rows - 1) * plan.rows.tap_step
        with T.If(T.And(highest >= first, lowest <= last)):
            with T.Then():
                self._through_list(bodies, at_edge=False)
            with T.Else():
                self._through_list(bodies, at_edge=True)

    def _through_list(self, bodies: Any, at_edge: bool) -> None:
        """The loop over the list's bodies, for every possible number of fragment rows; ``at_edge``: some kernel rows of
        some fragment rows are outside the image."""
        counts = sorted({(0, count) for _, count in self.block.plan.iterations}, reverse=True)
        first_that_fits(0, self.count, counts, lambda _, rows: self._loop(bodies, rows, at_edge))

    def _loop(self, bodies: Any, rows: int, at_edge: bool) -> None:
        with loop("turn", bodies, T.serial) as turn:
            for pair in range(self.block.plan.unroll):
                self._pair(pair, rows, at_edge)
            self.fetch.end_body()
            self.let_other_start(turn, (bodies - 1) * 2 // 3)
            self._let_other_begin_in(turn, bodies)

    def _last_stage(self) -> Any:
        """The last stage that the iteration reads."""
        plan = self.block.plan
        last = (self.row + self.count - 1) * plan.rows.pixel_step + (plan.tap_rows - 1) * plan.rows.tap_step
        return T.min(last, plan.row_range[1]) - self.block.first_staged

    def _enter(self, row: int) -> None:
        """Where a fragment row's input starts, and the range of kernel rows that are inside the image."""
        plan, block = self.block.plan, self.block
        staged = (self.row + row) * plan.rows.pixel_step - block.first_staged
        above = -(-plan.window // plan.stages) * plan.stages  # rows above the image have separate buffers
        width = plan.knobs.tile_width * plan.cols.pixel_step * plan.column_step
        start = block.buffer(staged + above) * T.uint32(plan.buffer_bytes) + T.cast(block.x * width, "uint32")
        T.buffer_store(self.starts, start >> T.uint32(4), [row])
        if not plan.meets_edges:
            return
        first, end = plan.tap_range(self.row + row, 1, T.max, T.min)
        T.buffer_store(self.lows, T.cast(first, "uint32") << T.uint32(ROW_BIT), [row])
        T.buffer_store(self.spans, T.cast(end - first, "uint32") << T.uint32(ROW_BIT), [row])

    def _pair(self, pair: int, rows: int, at_edge: bool) -> None:
        """A fragment: two live blocks with this many fragment rows."""
        plan, held = self.block.plan, self.fetch.held
        places = [held[plan.fragment_registers * pair + 4 + half] for half in range(2)]
        found = [[self._descriptor(place, row, at_edge) for row in range(rows)] for place in places]
        operands = unpacked(plan, held, pair)
        self.fetch.end_fragment(pair)
        op.wgmma_fence()
        for operand, descriptors in zip(operands, found, strict=True):
            for row, (low, high) in enumerate(descriptors):
                self._listed_wgmma(operand, row, low, high)
        op.wgmma_commit()
        op.wgmma_wait(plan.in_flight)

    def _descriptor(self, place: Any, row: int, at_edge: bool) -> tuple[Any, Any]:
        """Both words of the descriptor for a block's input: stage buffers wrap around, and if the block's row is
        outside the image, a single pixel of zeros is used."""
        plan, block = self.block.plan, self.block
        ring = T.uint32(plan.stages * plan.buffer_bytes // 16)
        far = bind("far", self.starts[row] + (place & T.uint32(DISTANCE)))
        start = T.min(far, far - ring)  # a difference below 0 is a large number
        high: Any = T.uint32(plan.descriptor_high)
        if at_edge:
            inside = bind("inside", place - self.lows[row] < self.spans[row])
            start = T.Select(inside, start, T.uint32(plan.zero_base // 16))
            high = T.Select(inside, high, T.uint32(0))
        base = (block.base >> T.uint32(4)) + T.uint32(plan.descriptor_low)
        return bind("low_word", start + base), bind("high_word", high)

    def _listed_wgmma(self, operand: Any, row: int, low: Any, high: Any) -> None:
        plan, count = self.block.plan, 4 * self.block.plan.row_pixels
        sums = [self.accumulators[row * count + i] for i in range(count)]
        wgmma(plan, plan.atom, sums, operand, low, self.started, row, high)

    def _let_other_begin_in(self, turn: Any, bodies: Any) -> None:
        """In the first iteration, about one epilogue later, let the other warpgroup start."""
        if not self._skewed:
            return
        at = T.min(T.int32(self.block.plan.late_start[2]), bodies - 1)
        with when(every([self.block.warpgroup == 0, *self._first_iteration, turn == at])):
            op.named_barrier(2, 256, wait=False)

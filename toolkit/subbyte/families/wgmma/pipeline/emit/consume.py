"""Shared memory and weights to Tensor Cores: the tile iterations of a consumer warpgroup.

Each 32-bit word of weights is unpacked to two operands; a tap is an address.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.epilogue import epilogue
from subbyte.families.wgmma.emit.loops import loop_over
from subbyte.families.wgmma.emit.multiply import unpacked, unpacked_half, wgmma
from subbyte.families.wgmma.pipeline.emit.control import (
    Counter,
    Sums,
    first_that_fits,
    least,
    most,
    release_unmultiplied,
    release_unread,
)
from subbyte.families.wgmma.pipeline.emit.fetch import Fetch
from subbyte.families.wgmma.pipeline.emit.own_rows import OwnRows
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when

Rows = tuple[int, int, bool]
"""Range of fragment rows, and whether the last one is half a row."""
NOTHING = (0, 0)
"""Fragment rows of a kernel row that meets only padding, if its weights have to be skipped."""


def consume(block: Block, fetch: Fetch, kind: type[Iteration]) -> None:
    """All tile iterations of one consumer warpgroup, with iterations of type ``kind``."""
    plan, config = block.plan, block.plan.knobs
    accumulators = registers("acc", plan.accumulators)
    started = registers("started", config.tile_rows * config.tiles_m)
    ready, released = Counter(block, "ready"), Counter(block, "released")
    stride = config.tile_rows * config.consumers_rows
    mine = bind("my_first_row", block.first_row + block.y * config.tile_rows)
    iterations = bind("passes", T.max(block.end_row - mine + (stride - 1), 0) // stride)
    whole = nullcontext(0) if plan.lone_iteration else loop("row_pass", iterations, T.serial)
    with whole as row_iteration:
        row = bind("row", mine + row_iteration * stride)
        count = bind("rows", T.min(T.int32(config.tile_rows), block.end_row - row))
        with loop("filter_pass", config.m_iterations, T.serial) as m_iteration:
            with loop("i", config.tile_rows * config.tiles_m) as i:
                T.buffer_store(started, T.uint32(0), [i])
            state = kind(
                block, iterations, row_iteration, m_iteration, row, ready, fetch, accumulators, started, released, count
            )
            state.wait_for_other()
            state.multiply()
            op.wgmma_wait(0)
            state.release()
            for tile in range(config.tiles_m):
                sums = accumulators if config.tiles_m == 1 else Sums(accumulators, tile * plan.tile_sums)
                epilogue(
                    block, sums, row, count, m_iteration * config.tiles_m + tile if config.tiles_m > 1 else m_iteration
                )
    if plan.keep_rows and plan.meets_unread_rows:
        release_unread(block, ready, released)


@dataclass
class Iteration(OwnRows):
    """One tile iteration: its coordinates, and its multiplications."""

    fetch: Fetch
    accumulators: Any
    started: Any
    """For every fragment row of every tile: whether its accumulators hold anything yet."""
    released: Counter
    count: Any

    def multiply(self) -> None:
        """Emit the loops over kernel rows and channel groups."""
        plan, config = self.block.plan, self.block.plan.knobs
        if not plan.keep_rows:
            together = plan.groups_together
            if self._in_order:
                self.first_buffer = registers("first_slot", 1)
            with loop("channel_group", plan.groups // together, T.serial) as first:
                for place in range(together):
                    self._group(first * together + place, place)
            return

        rows, taps = config.tile_rows, plan.tap_rows
        here = registers("descriptor", rows)
        ahead = registers("next_descriptor", rows) if config.channel_groups == 1 and taps > 1 else None
        if ahead is not None:
            self._enter_row(0, 0, here)

        def tap_row(tap: Any) -> None:
            if ahead is None:
                loop_over("channel_group", config.channel_groups, lambda group: self._tap_row(tap, group))
            else:
                self._tap_row_ahead(tap, here, ahead)
            self.let_other_start(tap, max(taps - 2, 0))

        if plan.taps_unrolled:
            for tap in range(taps):
                tap_row(tap)
        else:
            loop_over("tap_row", taps, tap_row)

    def _group(self, group: Any, place: int) -> None:
        """One channel group if rows are not kept; ``place`` is its index within a loop body."""
        plan = self.block.plan
        if self._in_order:
            self._enter_group(group)
        if plan.knobs.rows_ahead:
            for tap in range(plan.tap_rows):
                self._tap_row(tap, group, place)
        else:
            loop_over("tap_row", plan.tap_rows, lambda tap: self._tap_row(tap, group, place))
        self.let_other_start(group, plan.groups * 2 // 3)
        if not self._in_order:
            self._release_before(group)

    def release(self) -> None:
        """Release the stages that no later tile iteration reads."""
        plan, config, block = self.block.plan, self.block.plan.knobs, self.block
        if not plan.keep_rows:
            if not plan.lowered:
                self._release_group(plan.groups - 1)
            return
        last = self.row + config.tile_rows * config.consumers_rows >= block.end_row
        until = T.Select(last, block.stage_count, self._next_stage)
        if plan.meets_unread_rows:
            until = T.min(until, self.ready.count[0])  # a stage may be released only when it has arrived
        self._release_up_to(until)

    @property
    def _next_stage(self) -> Any:
        """First stage that this warpgroup's next tile iteration reads."""
        plan, config = self.block.plan, self.block.plan.knobs
        following = (self.row + config.tile_rows * config.consumers_rows) * plan.rows.pixel_step
        return (following - self.block.first_staged) * config.channel_groups

    def _release_up_to(self, until: Any) -> None:
        """Release kept stages, in the last iteration over output channels."""
        block, end = self.block, self.block.plan.knobs.m_iterations - 1
        with when(end == 0 or self.m_iteration == end):
            self.released.up_to(bind("until", until), lambda buffer, _: block.arrive(block.empty(buffer)))

    def _release_multiplied(self, tap: Any, group: Any) -> None:
        """Release the stages before this one, whose multiplications are done, unless the next tile iteration reads
        them."""
        rows, groups = self.block.plan.rows, self.block.plan.knobs.channel_groups
        staged = self.row * rows.pixel_step + tap * rows.tap_step - self.block.first_staged
        self._release_up_to(T.min(staged * groups + group, self._next_stage))

    def _release_before(self, group: Any) -> None:
        """Release the stages of the group before this one, whose multiplications have ended: those in flight belong to
        this group. With a lowered image the pipeline holds few groups: finish this group and release its stages."""
        if self.block.plan.lowered:
            op.wgmma_wait(0)
            self._release_group(group)
        elif self.block.plan.groups > 1:
            with when(group > 0):
                self._release_group(group - 1)

    def _stage(self, fragment_row: Any, tap: Any, group: Any) -> Any:
        """The stage that a fragment row reads for a tap."""
        plan, config, block = self.block.plan, self.block.plan.knobs, self.block
        if not plan.keep_rows:
            row = block.y * config.tile_rows + fragment_row if config.consumers_rows > 1 else fragment_row
            return self._iteration_stage(group) + row * plan.rows.pixel_step + tap * plan.rows.tap_step
        staged = (self.row + fragment_row) * plan.rows.pixel_step + tap * plan.rows.tap_step - block.first_staged
        return T.max(staged, 0) * config.channel_groups + group

    def _tap_row(self, tap: Any, group: Any, place: int = 0) -> None:
        """One kernel row of one channel group: wait for its input rows, then multiply those that exist."""
        low, high = self._rows_of(tap)
        variants, skipped = self._variants(tap)
        if skipped and not self.block.plan.keep_rows:
            variants, skipped = [*variants, NOTHING], False
        with when(not skipped or low < high):
            descriptors = registers("descriptor", self.block.plan.knobs.tile_rows)
            self._enter_row(tap, group, descriptors)
            self._rows(low, high, variants, descriptors, (tap, group, place), None)

    def _tap_row_ahead(self, tap: Any, here: Any, ahead: Any) -> None:
        """One kernel row whose input rows were waited for earlier; those of the next one are waited for while all but
        the last multiplications of this row run. A warpgroup has no time for it between two rows: a wgmma with operands
        in registers is issued only when the one before it has begun."""
        taps = self.block.plan.tap_rows

        def enter_next() -> None:
            if isinstance(tap, int):
                if tap + 1 < taps:
                    self._enter_row(tap + 1, 0, ahead)
                return
            with when(tap + 1 < taps):
                self._enter_row(tap + 1, 0, ahead)

        low, high = self._rows_of(tap)
        variants, skipped = self._variants(tap)

        def rows() -> None:
            self._rows(low, high, variants, here, (tap, 0, 0), enter_next)

        if skipped:
            with T.If(low < high):
                with T.Then():
                    rows()
                with T.Else():
                    enter_next()
        else:
            rows()
        with loop("i", self.block.plan.knobs.tile_rows) as i:
            T.buffer_store(here, ahead[i], [i])

    def _rows(
        self, low: Any, high: Any, variants: list[tuple[int, int]], descriptors: Any, here: tuple[Any, Any, int],
        before_last: Callable[[], None] | None,
    ) -> None:  # fmt: skip
        """The multiplications for fragment rows ``low`` to ``high``, one of ``variants``; see ``_steps``."""

        def whole() -> None:
            first_that_fits(low, high, variants, lambda a, b: self._steps(descriptors, a, b, here, before_last))

        if not self.block.plan.knobs.half_rows:
            whole()
            return
        with T.If(self.block.narrow):
            with T.Then():
                self._steps(descriptors, 0, self.block.plan.knobs.tile_rows, here, before_last, narrow=True)
            with T.Else():
                whole()

    def _rows_of(self, tap: Any) -> tuple[Any, Any]:
        """Range of fragment rows whose input row for this kernel row is inside the image."""
        low, high = self.block.plan.tap_rows_at(self.row, self.count, tap, most, least)
        return bind("low", T.cast(low, "int32")), bind("high", T.cast(high, "int32"))

    def _variants(self, tap: Any) -> tuple[list[tuple[int, int]], bool]:
        plan = self.block.plan
        variants, skipped = plan.tap_variants(range(plan.tap_rows) if not isinstance(tap, int) else [tap])
        return list(variants), skipped

    def _enter_row(self, tap: Any, group: Any, descriptors: Any) -> None:
        """Wait for the input rows of a kernel row, if it has any, and set the descriptors to them."""
        plan, block = self.block.plan, self.block
        if not self._in_order:
            low, high = self._rows_of(tap)
            with when(True if not self._variants(tap)[1] else low < high):
                self._wait_for(bind("needed", self._stage(high - 1, tap, group)))
        width = plan.knobs.tile_width * plan.cols.pixel_step * plan.column_step
        for i in range(plan.knobs.tile_rows):
            row = block.fragment_place(i)
            if self._in_order:
                address = self._row_address(row, tap)
            else:
                address = block.buffer_address(block.buffer(self._stage(row, tap, group)))
            start = address + T.cast(block.x * width, "uint32")
            if plan.knobs.half_rows and i == plan.knobs.tile_rows - 1:
                right = (plan.knobs.tile_width - plan.narrow_columns) * plan.cols.pixel_step * plan.column_step
                start = start + T.Select(block.swapped, T.uint32(right), T.uint32(0))
            op.describe(descriptors[i], start, plan.descriptor_low)

    def _wait_for(self, stage: Any) -> None:
        block, config = self.block, self.block.plan.knobs
        if block.plan.keep_rows:
            self.ready.up_to(stage + 1, lambda buffer, body_index: block.wait(block.full(buffer), body_index))
            if block.plan.meets_unread_rows:  # rows that other warpgroups read, or none
                mine = T.max(self.row * block.plan.rows.pixel_step - block.first_staged, 0) * config.channel_groups
                until = bind("passed", T.min(mine, self.ready.count[0]))
                self.released.up_to(until, lambda buffer, _: release_unmultiplied(block, buffer))
            return
        first = stage // block.plan.window * block.plan.window
        with loop("wait", block.plan.window, T.serial) as i:  # including those that a short iteration only releases
            block.wait(block.full(block.buffer(first + i)), block.phase(first + i))

    def _steps(
        self, descriptors: Any, low: int, high: int, here: tuple[Any, Any, int],
        before_last: Callable[[], None] | None, narrow: bool = False,
    ) -> None:  # fmt: skip
        """The channel steps of one stage (``here``: its kernel row and channel group, and ``place`` as in ``_group``),
        for fragment rows ``low`` to ``high``, the last of them ``narrow`` or not; ``before_last`` is emitted before
        the last fragment."""
        plan = self.block.plan
        bodies, (tap_row, group, place) = plan.steps // plan.unroll, here
        held = tap_row if plan.knobs.holds_rows else place
        per_body = plan.unroll * plan.halves * plan.block_step // 16

        def body(body_index: Any) -> None:
            offset = bind("offset", T.cast(body_index * per_body, "uint32"))
            for step in range(plan.unroll):
                for tap in range(plan.tap_cols):
                    if self._in_order and low < high and step * plan.tap_cols + tap == plan.in_flight:
                        self._release_lane_by_lane(
                            before=True, where=[tap_row == 0, group > 0, *([body_index == 0] if bodies > 1 else [])]
                        )
                    if before_last and (step, tap) == (plan.unroll - 1, plan.tap_cols - 1):
                        with when(True if bodies == 1 else body_index == bodies - 1):
                            before_last()
                    self._fragment(descriptors, offset, step, tap, (low, high, narrow), held)
            if place == plan.groups_together - 1 and (not plan.knobs.rows_ahead or tap_row == plan.tap_rows - 1):
                self.fetch.end_body()
            self.let_other_begin(tap_row, group, body_index)

        loop_over("turn", bodies, body)
        if low == high:
            op.wgmma_wait(0)
            self._release_lane_by_lane(before=True, where=[tap_row == 0, group > 0])
        if plan.knobs.early_release:
            self._release_multiplied(tap_row, group)

    def _fragment(self, descriptors: Any, offset: Any, step: int, tap: int, rows: Rows, place: int) -> None:
        """One weight fragment of every tile of output channels; ``place`` is the index of the loop body whose weights
        are held."""
        plan, tiles = self.block.plan, self.block.plan.knobs.tiles_m
        number = (place * plan.unroll + step) * plan.tap_cols + tap
        for tile in range(tiles):
            self._multiply_fragment(descriptors, offset, (step, tap, tile), rows, number * tiles + tile)

    def _multiply_fragment(
        self, descriptors: Any, offset: Any, which: tuple[int, int, int], rows: Rows, number: int
    ) -> None:
        """Unpack the fragment ``which`` (step, tap, tile), fetch another in its place, and multiply it with every
        fragment row."""
        plan, (step, tap, tile) = self.block.plan, which
        low, high, narrow = rows
        if low == high:
            self.fetch.end_fragment(number)
            return
        apart = plan.knobs.operands_apart
        held = self.fetch.held
        operands = [] if apart else unpacked(plan, held, number)
        if not apart:
            self.fetch.end_fragment(number)
            op.wgmma_fence()
        for half in range(plan.operands):
            if apart:
                operand = unpacked_half(plan, held, number, half)
                if half == plan.operands - 1:
                    self.fetch.end_fragment(number)
                op.wgmma_fence()
            else:
                operand = operands[half]
            place = (step * plan.halves + half) * plan.block_step + tap * plan.cols.tap_step * plan.column_step
            for row in range(low, high):
                descriptor = descriptors[row] + offset + T.uint32(place // 16)
                thin = narrow and row == plan.knobs.tile_rows - 1
                self._wgmma(operand, tile * plan.knobs.tile_rows + row, descriptor, thin)
            if apart or half == plan.operands - 1:
                op.wgmma_commit()
                op.wgmma_wait(plan.in_flight)

    def _wgmma(self, operand: Any, row: int, descriptor: Any, narrow: bool) -> None:
        plan = self.block.plan
        atom, count = plan.atom_of(plan.narrow_pixels) if narrow else plan.atom, 4 * plan.row_pixels
        sums = [self.accumulators[row * count + i] for i in range(4 * plan.narrow_pixels if narrow else count)]
        wgmma(plan, atom, sums, operand, descriptor, self.started, row)

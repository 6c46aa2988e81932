"""Shared memory and weights to Tensor Cores: the passes of a consumer warpgroup.

Each 32-bit word of weights is unpacked to two operands; a tap is an address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.tirx.emit import bind, every, loop, registers, when
from subbyte.kernel.tirx.multiply import LOW_NIBBLES
from subbyte.kernel.tirx.warpgroup import instructions as op
from subbyte.kernel.tirx.warpgroup.block import Block
from subbyte.kernel.tirx.warpgroup.control import Counter, first_that_fits, least, most, turns_of
from subbyte.kernel.tirx.warpgroup.epilogue import epilogue
from subbyte.kernel.tirx.warpgroup.fetch import Fetch
from subbyte.schedule.warpgroup_plan import PIXEL_BYTES

TURNS, LATE = 1, 2
"""Values of ``stagger``."""
DESCRIPTOR = 0x000F3FFF
"""The bits used of a descriptor's lower word: 14 of an address, 4 of ``descriptor_low``. From bit 20 on a sixteenth of
a shared address holds the block's rank in its cluster, which must not get in."""


def consume(block: Block, fetch: Fetch) -> None:
    """All passes of one consumer warpgroup."""
    plan, config = block.plan, block.plan.config
    accumulators = registers("acc", plan.accumulators)
    started = registers("started", config.tile_rows)
    ready, released = Counter(block, "ready"), Counter(block, "released")
    stride = config.tile_rows * config.groups_y
    mine = bind("my_first_row", block.first_row + block.y * config.tile_rows)
    passes = bind("passes", T.max(block.end_row - mine + (stride - 1), 0) // stride)
    with loop("row_pass", passes, T.serial) as row_pass:
        row = bind("row", mine + row_pass * stride)
        count = bind("rows", T.min(T.int32(config.tile_rows), block.end_row - row))
        with loop("filter_pass", config.filter_passes, T.serial) as filter_pass:
            with loop("i", config.tile_rows) as i:
                T.buffer_store(started, T.uint32(0), [i])
            state = Pass(
                block, fetch, accumulators, started, ready, released, passes, row_pass, row, count, filter_pass
            )
            state.wait_for_other()
            state.multiply()
            op.wgmma_wait(0)
            state.release()
            epilogue(block, accumulators, row, count, filter_pass)
    if plan.keep_rows and config.groups_y > 1:
        _pass_by(block, ready, released)


@dataclass
class Pass:
    """One pass: its coordinates, and the multiplications that make it up."""

    block: Block
    fetch: Fetch
    accumulators: Any
    started: Any
    """For every fragment row: whether its accumulators hold anything yet."""
    ready: Counter
    released: Counter
    passes: Any
    row_pass: Any
    row: Any
    count: Any
    filter_pass: Any

    def multiply(self) -> None:
        """Emit the loops over kernel rows and channel groups."""
        plan, config = self.block.plan, self.block.plan.config
        if not plan.keep_rows:
            together = plan.groups_together
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
                turns_of("channel_group", config.channel_groups, lambda group: self._tap_row(tap, group))
            else:
                self._tap_row_ahead(tap, here, ahead)
            self._let_other_start(tap, max(taps - 2, 0))

        if plan.taps_unrolled:
            for tap in range(taps):
                tap_row(tap)
        else:
            turns_of("tap_row", taps, tap_row)

    def _group(self, group: Any, place: int) -> None:
        """One channel group where rows are not kept; ``place`` counts those of one loop body."""
        plan = self.block.plan
        turns_of("tap_row", plan.tap_rows, lambda tap: self._tap_row(tap, group, place))
        self._let_other_start(group, plan.groups * 2 // 3)
        self._release_before(group)

    def release(self) -> None:
        """Give back the slots whose parts no later pass reads."""
        plan, config, block = self.block.plan, self.block.plan.config, self.block
        if not plan.keep_rows:
            if not plan.lowered:
                self._release_group(plan.groups - 1)
            return
        following = (self.row + config.tile_rows * config.groups_y) * plan.rows.pixel_step - block.first_staged
        last = self.row + config.tile_rows * config.groups_y >= block.end_row
        until = T.Select(last, block.parts, following * config.channel_groups)
        if config.groups_y > 1:
            until = T.min(until, self.ready.count[0])  # a part may be given back only when it has come
        with when(config.filter_passes == 1 or self.filter_pass == config.filter_passes - 1):
            self.released.up_to(bind("until", until), lambda slot, _: block.arrive(block.empty(slot)))

    def _release_before(self, group: Any) -> None:
        """Give back the parts of the group before this one, whose multiplications have ended: those in flight are of
        this group. Of a lowered image the ring holds few groups: end those of this one and give its parts back."""
        if self.block.plan.lowered:
            op.wgmma_wait(0)
            self._release_group(group)
        elif self.block.plan.groups > 1:
            with when(group > 0):
                self._release_group(group - 1)

    def _release_group(self, group: Any) -> None:
        first = bind("group_part", self._pass_part(group))
        with loop("part", self.block.plan.window) as part:
            self.block.arrive(self.block.empty(self.block.slot(first + part)))

    def _pass_part(self, group: Any) -> Any:
        """First part of this pass's channel group, where every pass loads its own rows."""
        plan, config = self.block.plan, self.block.plan.config
        row_pass = self.row_pass * config.groups_y + self.block.y
        return ((row_pass * config.filter_passes + self.filter_pass) * plan.groups + group) * plan.window

    def _part(self, fragment_row: Any, tap: Any, group: Any) -> Any:
        """Part that a fragment row reads for a tap."""
        plan, config, block = self.block.plan, self.block.plan.config, self.block
        if not plan.keep_rows:
            return self._pass_part(group) + fragment_row * plan.rows.pixel_step + tap * plan.rows.tap_step
        staged = (self.row + fragment_row) * plan.rows.pixel_step + tap * plan.rows.tap_step - block.first_staged
        return T.max(staged, 0) * config.channel_groups + group

    def _tap_row(self, tap: Any, group: Any, place: int = 0) -> None:
        """One kernel row of one channel group: wait for its input rows, then multiply those that exist."""
        low, high = self._rows_of(tap)
        variants, skipped = self._variants(tap)
        with when(not skipped or low < high):
            descriptors = registers("descriptor", self.block.plan.config.tile_rows)
            self._enter_row(tap, group, descriptors)
            first_that_fits(low, high, variants, lambda a, b: self._steps(descriptors, a, b, (tap, group, place), None))

    def _tap_row_ahead(self, tap: Any, here: Any, ahead: Any) -> None:
        """One kernel row whose input rows were waited for before; the next one's are, while the last multiplications
        but one of this row are under way. A warpgroup has no time for it between two rows: a wgmma with operands in
        registers is issued only when the one before it has begun."""
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
            first_that_fits(low, high, variants, lambda a, b: self._steps(here, a, b, (tap, 0, 0), enter_next))

        if skipped:
            with T.If(low < high):
                with T.Then():
                    rows()
                with T.Else():
                    enter_next()
        else:
            rows()
        with loop("i", self.block.plan.config.tile_rows) as i:
            T.buffer_store(here, ahead[i], [i])

    def _rows_of(self, tap: Any) -> tuple[Any, Any]:
        """From and to: the fragment rows whose input row for this kernel row is in the image."""
        low, high = self.block.plan.tap_rows_at(self.row, self.count, tap, most, least)
        return bind("low", T.cast(low, "int32")), bind("high", T.cast(high, "int32"))

    def _variants(self, tap: Any) -> tuple[list[tuple[int, int]], bool]:
        plan = self.block.plan
        variants, skipped = plan.tap_variants(range(plan.tap_rows) if not isinstance(tap, int) else [tap])
        return list(variants), skipped

    def _enter_row(self, tap: Any, group: Any, descriptors: Any) -> None:
        """Wait for the input rows of a kernel row, if it has any, and point at them."""
        plan, block = self.block.plan, self.block
        low, high = self._rows_of(tap)
        with when(True if not self._variants(tap)[1] else low < high):
            self._wait_for(bind("needed", self._part(high - 1, tap, group)))
        width = plan.config.tile_width * plan.cols.pixel_step * PIXEL_BYTES
        for i in range(plan.config.tile_rows):
            slot = block.slot(self._part(i, tap, group))
            start = block.slot_address(slot) + T.cast(block.x * width, "uint32")
            op.mask(descriptors[i], (start >> T.uint32(4)) + T.uint32(plan.descriptor_low), DESCRIPTOR)

    def _wait_for(self, part: Any) -> None:
        block, config = self.block, self.block.plan.config
        if block.plan.keep_rows:
            self.ready.up_to(part + 1, lambda slot, turn: block.wait(block.full(slot), turn))
            if config.groups_y > 1:  # rows that only the other warpgroups read
                mine = T.max(self.row * block.plan.rows.pixel_step - block.first_staged, 0) * config.channel_groups
                until = bind("passed", T.min(mine, self.ready.count[0]))
                self.released.up_to(until, lambda slot, _: block.arrive(block.empty(slot)))
            return
        first = part // block.plan.window * block.plan.window
        with loop("wait", block.plan.window, T.serial) as i:  # those too that a short pass only gives back
            block.wait(block.full(block.slot(first + i)), block.turn(first + i))

    def _steps(
        self, descriptors: Any, low: int, high: int, here: tuple[Any, Any, int], before_last: Callable[[], None] | None
    ) -> None:
        """The channel steps of one part (``here``: its kernel row and channel group, and ``place`` as in ``_group``),
        for fragment rows ``low`` to ``high``; ``before_last`` is emitted before the last fragment."""
        plan = self.block.plan
        turns, (tap_row, group, place) = plan.steps // plan.unroll, here
        per_turn = plan.unroll * plan.halves * plan.pitch * (PIXEL_BYTES // 16)

        def body(turn: Any) -> None:
            offset = bind("offset", T.cast(turn * per_turn, "uint32"))
            for step in range(plan.unroll):
                for tap in range(plan.tap_cols):
                    if before_last and (step, tap) == (plan.unroll - 1, plan.tap_cols - 1):
                        with when(True if turns == 1 else turn == turns - 1):
                            before_last()
                    self._fragment(descriptors, offset, step, tap, low, high, place)
            if place == plan.groups_together - 1:
                self.fetch.end_turn()
            self._let_other_begin(tap_row, group, turn)

        turns_of("turn", turns, body)

    def _fragment(self, descriptors: Any, offset: Any, step: int, tap: int, low: int, high: int, place: int) -> None:
        """Unpack one weight fragment, fetch another in its place, multiply it with every fragment row."""
        plan = self.block.plan
        held = self.fetch.begin_fragment((place * plan.unroll + step) * plan.tap_cols + tap)
        operands = []
        for half in range(plan.halves):
            operand = registers("operand", 4)
            for i in range(4):
                word = self.fetch.held[4 * held + i]
                op.mask(operand[i], word << T.uint32(4) if half == 0 else word, LOW_NIBBLES)
            operands.append(operand)
        self.fetch.end_fragment(held)
        op.wgmma_fence()
        for half, operand in enumerate(operands):
            columns = (step * plan.halves + half) * plan.pitch + tap * plan.cols.tap_step
            for row in range(low, high):
                self._wgmma(operand, row, descriptors[row] + offset + T.uint32(columns * (PIXEL_BYTES // 16)))
        op.wgmma_commit()
        op.wgmma_wait(plan.in_flight)

    def _wgmma(self, operand: Any, row: int, descriptor: Any) -> None:
        plan = self.block.plan
        count = 4 * plan.config.tile_width
        sums = [self.accumulators[row * count + i] for i in range(count)]
        high = T.cast(T.uint32(plan.descriptor_high), "uint64") << T.uint64(32)
        accumulate = T.ptx.pred(self.started[row])
        words = [operand[i] for i in range(4)]
        op.emit(T.ptx[plan.atom.ptx](*sums, *words, high | T.cast(descriptor, "uint64"), accumulate))
        T.buffer_store(self.started, T.uint32(1), [row])

    # ---- taking turns -------------------------------------------------------------------------------------------

    @property
    def _in_turns(self) -> bool:
        config = self.block.plan.config
        return config.stagger == TURNS and config.consumers == 2

    @property
    def _late_once(self) -> bool:
        config = self.block.plan.config
        return config.stagger == LATE and config.consumers == 2

    def _passes_of(self, warpgroup: int) -> Any:
        """Passes over rows of one of the two warpgroups."""
        block, config = self.block, self.block.plan.config
        if config.groups_y == 1:
            return self.passes
        first = block.first_row + warpgroup * config.tile_rows
        return (block.end_row - first + (2 * config.tile_rows - 1)) // (2 * config.tile_rows)

    def wait_for_other(self) -> None:
        """Begin a pass only when the other warpgroup is well into its own, so that epilogues do not coincide; or only
        the first one, by about an epilogue."""
        if self._late_once:
            first = [self.block.warpgroup == 1, *self._first_pass]
            with when(every(first)):
                op.named_barrier(2, 256, wait=True)
        if not self._in_turns:
            return
        per_row = self.block.plan.config.filter_passes
        number = self.row_pass * per_row + self.filter_pass
        after_other = [number > 0]  # the other's pass before this one, if there is one
        if self.block.plan.config.groups_y > 1:
            after_other.append(number <= self._passes_of(1) * per_row)
        for warpgroup, conditions in ((0, after_other), (1, [])):
            with when(every([self.block.warpgroup == warpgroup, *conditions])):
                op.named_barrier(1 + warpgroup, 256, wait=True)

    @property
    def _first_pass(self) -> list[Any]:
        return [self.row_pass == 0, *([self.filter_pass == 0] if self.block.plan.config.filter_passes > 1 else [])]

    def _let_other_begin(self, tap: Any, group: Any, turn: Any) -> None:
        """In the first pass, behind the turn that takes it about an epilogue further: the other warpgroup may begin."""
        if not self._late_once:
            return
        conditions = [self.block.warpgroup == 0, *self._first_pass]
        for index, at in zip((tap, group, turn), self.block.plan.late_start, strict=True):
            if isinstance(index, int):
                if index != at:
                    return
            else:
                conditions.append(index == at)
        with when(every(conditions)):
            op.named_barrier(2, 256, wait=False)

    def _let_other_start(self, index: Any, at: int) -> None:
        """In the middle of a pass: the other warpgroup may begin its next one, if it has one."""
        config = self.block.plan.config
        if not self._in_turns:
            return
        if isinstance(index, int) and index != at:
            return
        here = [] if isinstance(index, int) else [index == at]
        last = config.filter_passes - 1
        same = [self.row_pass < self._passes_of(1)] if config.groups_y > 1 else []
        following = self.row_pass + 1 < self._passes_of(0)
        if last:
            following = T.Or(self.filter_pass < last, following)
        for warpgroup, conditions in ((0, same), (1, [following])):
            with when(every([self.block.warpgroup == warpgroup, *here, *conditions])):
                op.named_barrier(2 - warpgroup, 256, wait=False)


def _pass_by(block: Block, ready: Counter, released: Counter) -> None:
    """The parts that only the other warpgroups still read: give each back as soon as it has come."""

    def wait_and_release(slot: Any, _: Any) -> None:
        ready.up_to(released.count[0] + 1, lambda here, turn: block.wait(block.full(here), turn))
        block.arrive(block.empty(slot))

    released.up_to(block.parts, wait_and_release)

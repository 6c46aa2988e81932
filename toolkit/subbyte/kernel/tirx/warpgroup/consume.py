"""Shared memory and weights to Tensor Cores: the passes of a consumer warpgroup.

Weights come from global memory straight into registers, ``plan.ahead`` fragments before they are multiplied, and go on
into the next pass without a pause. Each 32-bit word is unpacked to two operands; a tap is an address.
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
from subbyte.kernel.tirx.warpgroup.epilogue import epilogue
from subbyte.schedule.warpgroup_plan import FRAGMENT_WORDS, PIXEL_BYTES

STAGGER_BARRIER = 1


@dataclass
class Fetch:
    """Where the weights come from: registers of the fragments on their way, and the position of the next one."""

    block: Block
    held: Any
    cursor: Any
    left: Any
    row: Any
    filter_pass: Any

    @classmethod
    def begin(cls, block: Block) -> Fetch:
        """Registers and state; ``start`` sets them."""
        names = ("cursor", "fragments_left", "fetch_row", "fetch_pass")
        state = [registers(name, 1, "int32") for name in names]
        return cls(block, registers("fetched", 4 * block.plan.ahead), *state)

    def start(self) -> None:
        """Fetch the first fragments of the first pass."""
        config = self.block.plan.config
        T.buffer_store(self.row, self.block.first_row + self.block.y * config.tile_rows, [0])
        T.buffer_store(self.filter_pass, T.int32(0), [0])
        self._enter_run()
        for place in range(self.block.plan.ahead):
            self.next(place)

    def next(self, place: int) -> None:
        """Fetch the next fragment into the registers of ``place``; at the end of a pass go on with the following."""
        pointer = self.block.weights.ptr_to([self.cursor[0] + self.block.member * 4])
        op.load16(self.held, 4 * place, pointer, "weights")
        T.buffer_store(self.cursor, self.cursor[0] + FRAGMENT_WORDS, [0])
        T.buffer_store(self.left, self.left[0] - 1, [0])
        with when(self.left[0] == 0):
            self._advance()
            self._enter_run()

    def _advance(self) -> None:
        """The pass behind this one; behind the last one the first again, whose fragments nobody waits for."""
        config = self.block.plan.config
        step = config.tile_rows * config.groups_y

        def next_rows() -> None:
            T.buffer_store(self.row, self.row[0] + step, [0])
            with when(self.row[0] >= self.block.end_row):
                T.buffer_store(self.row, self.block.first_row, [0])

        if config.filter_passes == 1:
            next_rows()
            return
        T.buffer_store(self.filter_pass, self.filter_pass[0] + 1, [0])
        with when(self.filter_pass[0] == config.filter_passes):
            T.buffer_store(self.filter_pass, T.int32(0), [0])
            next_rows()

    def _enter_run(self) -> None:
        plan = self.block.plan
        start = plan.fragment_word(self.block.tile(self.filter_pass[0]), self.block.rank)
        taps = plan.workload.r
        if not plan.taps_skipped:
            T.buffer_store(self.cursor, start, [0])
            T.buffer_store(self.left, T.int32(taps * plan.run), [0])
            return
        count = T.min(T.int32(plan.config.tile_rows), self.block.end_row - self.row[0])
        first, end = plan.tap_range(self.row[0], count, T.max, T.min)
        first = bind("first_tap", first)
        T.buffer_store(self.cursor, start + first * (plan.run * FRAGMENT_WORDS), [0])
        T.buffer_store(self.left, (end - first) * plan.run, [0])


class Counter:
    """How many parts this warp has gone past, with the slot and the parity of the next one."""

    def __init__(self, block: Block, name: str) -> None:
        self.ring = block.plan.config.ring
        self.count = registers(name, 1, "int32")
        self.slot, self.turn = (registers(f"{name}_{what}", 1) for what in ("slot", "turn"))
        for state, zero in ((self.count, T.int32(0)), (self.slot, T.uint32(0)), (self.turn, T.uint32(0))):
            T.buffer_store(state, zero, [0])

    def up_to(self, end: Any, each: Callable[[Any, Any], None]) -> None:
        """Go on to ``end``; ``each(slot, turn)`` is emitted for every part on the way."""
        with T.While(self.count[0] < end):
            each(self.slot[0], self.turn[0])
            T.buffer_store(self.count, self.count[0] + 1, [0])
            T.buffer_store(self.slot, self.slot[0] + T.uint32(1), [0])
            with when(self.slot[0] == T.uint32(self.ring)):
                T.buffer_store(self.slot, T.uint32(0), [0])
                T.buffer_store(self.turn, self.turn[0] ^ T.uint32(1), [0])


def consume(block: Block, fetch: Fetch) -> None:
    """All passes of one consumer warpgroup."""
    plan, config = block.plan, block.plan.config
    accumulators = registers("acc", plan.accumulators)
    ready, released = Counter(block, "ready"), Counter(block, "released")
    stride = config.tile_rows * config.groups_y
    mine = bind("my_first_row", block.first_row + block.y * config.tile_rows)
    passes = bind("passes", T.max(block.end_row - mine + (stride - 1), 0) // stride)
    _start_late(block)
    with loop("row_pass", passes, T.serial) as row_pass:
        row = bind("row", mine + row_pass * stride)
        count = bind("rows", T.min(T.int32(config.tile_rows), block.end_row - row))
        with loop("filter_pass", config.filter_passes, T.serial) as filter_pass:
            with loop("i", plan.accumulators) as i:
                T.buffer_store(accumulators, T.uint32(0), [i])
            state = Pass(block, fetch, accumulators, ready, released, row_pass, row, count, filter_pass)
            state.multiply()
            op.wgmma_wait(0)
            state.release()
            epilogue(block, accumulators, row, count, filter_pass)
    if config.keep_rows and config.groups_y > 1:
        with when(passes == 0):
            released.up_to(block.parts, lambda slot, _: block.arrive(block.empty(slot)))


@dataclass
class Pass:
    """One pass: its coordinates, and the multiplications that make it up."""

    block: Block
    fetch: Fetch
    accumulators: Any
    ready: Counter
    released: Counter
    row_pass: Any
    row: Any
    count: Any
    filter_pass: Any

    def multiply(self) -> None:
        """Emit the loops over kernel rows and channel groups."""
        plan, config = self.block.plan, self.block.plan.config
        if not config.keep_rows:
            with loop("channel_group", config.channel_groups, T.serial) as group:
                _loop("tap_row", plan.workload.r, lambda tap: self._tap_row(tap, group))
                self._let_other_start(group, config.channel_groups * 2 // 3)
                if config.channel_groups > 1:
                    with when(group > 0):  # its multiplications have ended: those in flight are of this group
                        self._release_group(group - 1)
            return

        def tap_row(tap: Any) -> None:
            _loop("channel_group", config.channel_groups, lambda group: self._tap_row(tap, group))
            self._let_other_start(tap, max(plan.workload.r - 2, 0))

        _loop("tap_row", plan.workload.r, tap_row)

    def release(self) -> None:
        """Give back the slots whose parts no later pass reads."""
        plan, config, block = self.block.plan, self.block.plan.config, self.block
        if not config.keep_rows:
            self._release_group(config.channel_groups - 1)
            return
        following = (self.row + config.tile_rows * config.groups_y) * plan.rows.pixel_step - block.first_staged
        last = self.row + config.tile_rows * config.groups_y >= block.end_row
        until = T.Select(last, block.parts, following * config.channel_groups)
        with when(config.filter_passes == 1 or self.filter_pass == config.filter_passes - 1):
            self.released.up_to(bind("until", until), lambda slot, _: block.arrive(block.empty(slot)))

    def _release_group(self, group: Any) -> None:
        first = bind("group_part", self._pass_part(group))
        with loop("part", self.block.plan.window) as part:
            self.block.arrive(self.block.empty(self.block.slot(first + part)))

    def _pass_part(self, group: Any) -> Any:
        """First part of this pass's channel group, where every pass loads its own rows."""
        plan, config = self.block.plan, self.block.plan.config
        row_pass = self.row_pass * config.groups_y + self.block.y
        return ((row_pass * config.filter_passes + self.filter_pass) * config.channel_groups + group) * plan.window

    def _part(self, fragment_row: Any, tap: Any, group: Any) -> Any:
        """Part that a fragment row reads for a tap."""
        plan, config, block = self.block.plan, self.block.plan.config, self.block
        if not config.keep_rows:
            return self._pass_part(group) + fragment_row * plan.rows.pixel_step + tap * plan.rows.tap_step
        staged = (self.row + fragment_row) * plan.rows.pixel_step + tap * plan.rows.tap_step - block.first_staged
        return T.max(staged, 0) * config.channel_groups + group

    def _tap_row(self, tap: Any, group: Any) -> None:
        """One kernel row of one channel group: wait for its input rows, then multiply those that exist."""
        plan, block = self.block.plan, self.block
        low, high = plan.tap_rows_at(self.row, self.count, tap, T.max, T.min)
        low, high = (bind(name, T.cast(value, "int32")) for name, value in (("low", low), ("high", high)))
        with when(not plan.taps_skipped or low < high):
            self._wait_for(bind("needed", self._part(high - 1, tap, group)))
            rows = plan.config.tile_rows
            descriptors = registers("descriptor", rows)
            width = plan.config.tile_width * plan.cols.pixel_step * PIXEL_BYTES
            for i in range(rows):
                slot = block.slot(self._part(i, tap, group))
                start = block.slot_address(slot) + T.cast(block.x * width, "uint32")
                T.buffer_store(descriptors, (start >> T.uint32(4)) + T.uint32(plan.descriptor_low), [i])
            _first_that_fits(low, high, list(plan.tap_row_variants), lambda a, b: self._steps(descriptors, a, b))

    def _wait_for(self, part: Any) -> None:
        block, config = self.block, self.block.plan.config
        if config.keep_rows:
            self.ready.up_to(part + 1, lambda slot, turn: block.wait(block.full(slot), turn))
            return
        with loop("wait", block.plan.window, T.serial) as i:
            first = part // block.plan.window * block.plan.window
            with when(first + i <= part):
                block.wait(block.full(block.slot(first + i)), block.turn(first + i))

    def _steps(self, descriptors: Any, low: int, high: int) -> None:
        """The channel steps of one part, for fragment rows ``low`` to ``high``."""
        plan = self.block.plan
        per_turn = plan.unroll * plan.halves * plan.pitch * (PIXEL_BYTES // 16)

        def body(turn: Any) -> None:
            offset = bind("offset", T.cast(turn * per_turn, "uint32"))
            for step in range(plan.unroll):
                for tap in range(plan.workload.s):
                    self._fragment(descriptors, offset, step, tap, low, high)

        _loop("turn", plan.steps // plan.unroll, body)

    def _fragment(self, descriptors: Any, offset: Any, step: int, tap: int, low: int, high: int) -> None:
        """Unpack one weight fragment, fetch another in its place, multiply it with every fragment row."""
        plan = self.block.plan
        place = step * plan.workload.s + tap
        operands = []
        for half in range(plan.halves):
            operand = registers("operand", 4)
            for i in range(4):
                word = self.fetch.held[4 * place + i]
                op.mask(operand[i], word << T.uint32(4) if half == 0 else word, LOW_NIBBLES)
            operands.append(operand)
        self.fetch.next(place)
        op.wgmma_fence()
        for half, operand in enumerate(operands):
            columns = (step * plan.halves + half) * plan.pitch + tap * plan.cols.tap_step
            for row in range(low, high):
                self._wgmma(operand, row, descriptors[row] + offset + T.uint32(columns * (PIXEL_BYTES // 16)))
        op.wgmma_commit()
        op.wgmma_wait(plan.config.in_flight)

    def _wgmma(self, operand: Any, row: int, descriptor: Any) -> None:
        plan = self.block.plan
        count = 4 * plan.config.tile_width
        sums = [self.accumulators[row * count + i] for i in range(count)]
        high = T.cast(T.uint32(plan.descriptor_high), "uint64") << T.uint64(32)
        op.emit(T.ptx[plan.atom.ptx](*sums, *[operand[i] for i in range(4)], high | T.cast(descriptor, "uint64"), True))

    def _let_other_start(self, index: Any, at: int) -> None:
        """Tell the second warpgroup, in the first pass, that it may begin."""
        block, config = self.block, self.block.plan.config
        if not (config.stagger and config.consumers == 2):
            return
        here = [block.warpgroup == 0, self.row_pass == 0]
        if config.filter_passes > 1:
            here.append(self.filter_pass == 0)
        if not isinstance(index, int):
            here.append(index == at)
        with when(every(here)):
            op.named_barrier(STAGGER_BARRIER, 256, wait=False)


def _start_late(block: Block) -> None:
    config = block.plan.config
    if config.stagger and config.consumers == 2:
        with when(block.warpgroup == 1):
            op.named_barrier(STAGGER_BARRIER, 256, wait=True)


def _loop(name: str, extent: int, emit: Callable[[Any], None]) -> None:
    """A serial loop; without one where there is only one turn."""
    if extent == 1:
        emit(0)
        return
    with loop(name, extent, T.serial) as variable:
        emit(variable)


def _first_that_fits(low: Any, high: Any, variants: list[tuple[int, int]], emit: Callable[[int, int], None]) -> None:
    """The body of the variant (low, high) that holds now; the last one needs no test."""
    here, *others = variants
    if not others:
        emit(*here)
        return
    with T.If(T.And(low == here[0], high == here[1])):
        with T.Then():
            emit(*here)
        with T.Else():
            _first_that_fits(low, high, others, emit)

"""Weights of a consumer warpgroup: from global memory, some fragments before they are multiplied, without a pause
between passes.

They wait in registers, or (``weight_ring``) in shared memory: there every thread copies and reads its own 16 bytes of a
fragment, so that nothing but its own copies has to be waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit import instructions as op
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.memory import FRAGMENT_BYTES, FRAGMENT_WORDS
from subbyte.tirx.emit import bind, registers, when


@dataclass
class Fetch:
    """Where the weights come from: the fragments on their way, and the position of the next one."""

    block: Block
    held: Any
    """Registers of fragments: all that are on their way, or the one that came last out of the ring."""
    slot: Any
    """Byte offset in the ring of the next fragment that this thread takes out; its place is filled again at once."""
    cursor: Any
    """Word of this thread in the next fragment; 64 bits, because a product of 64 bits for each address would be slow
    beside wgmma."""
    left: Any
    row: Any
    filter_pass: Any

    @classmethod
    def begin(cls, block: Block) -> Fetch:
        """Registers and state; ``start`` sets them."""
        names = ("fragments_left", "fetch_row", "fetch_pass")
        state = [registers("cursor", 1, "int64"), *(registers(name, 1, "int32") for name in names)]
        slot = registers("weight_slot", 1) if block.plan.config.weight_ring else None
        return cls(block, registers("fetched", 4 * block.plan.held_fragments), slot, *state)

    def start(self) -> None:
        """Fetch the first fragments of the first pass."""
        config = self.block.plan.config
        T.buffer_store(self.row, self.block.first_row + self.block.y * config.tile_rows, [0])
        T.buffer_store(self.filter_pass, T.int32(0), [0])
        self._enter_run()
        ring = self.block.plan.config.weight_ring
        if not ring:
            for place in range(self.block.plan.held_fragments):
                self._load(place)
            self.end_turn()
            return
        T.buffer_store(self.slot, T.uint32(0), [0])
        for place in range(ring):
            self._copy(self._address + T.uint32(place * FRAGMENT_BYTES))
        self._take_out()

    def begin_fragment(self, place: int) -> int:
        """The registers of the next fragment; its number in the loop body is ``place``."""
        return 0 if self.block.plan.config.weight_ring else place

    def end_fragment(self, held: int) -> None:
        """The fragment in registers ``held`` is unpacked: fetch another one in its place."""
        if not self.block.plan.config.weight_ring:
            self._load(held)
            return
        self._copy(self._address)
        ring = self.block.plan.config.weight_ring * FRAGMENT_BYTES
        T.buffer_store(self.slot, self.slot[0] + T.uint32(FRAGMENT_BYTES), [0])
        with when(self.slot[0] == T.uint32(ring)):
            T.buffer_store(self.slot, T.uint32(0), [0])
        self._take_out()

    @property
    def _address(self) -> Any:
        """Byte address of this thread's 16 bytes of the next fragment in the ring."""
        block, plan = self.block, self.block.plan
        rings = block.warpgroup * (plan.config.weight_ring * FRAGMENT_BYTES) + block.member * 16
        return block.base + T.cast(plan.weight_base + rings, "uint32") + self.slot[0]

    def _take_out(self) -> None:
        op.copies_wait(self.block.plan.config.weight_ring - 1)
        op.load_shared16(self.held, self._address)

    def end_turn(self) -> None:
        """At the end of a loop body: go on. Passes end there too, since they are whole numbers of loop bodies."""
        if not self.block.plan.config.weight_ring:
            self._step(self.block.plan.ahead)

    def _copy(self, address: Any) -> None:
        op.copy16(address, self._pointer(0))
        op.copies_commit()
        self._step(1)

    def _load(self, place: int) -> None:
        op.load16(self.held, 4 * place, self._pointer(place), "weights")

    def _pointer(self, place: int) -> Any:
        plan = self.block.plan
        step, tile = divmod(place, plan.config.tiles_m)
        words = step * FRAGMENT_WORDS + tile * plan.config.groups_m * plan.fragment_word(1, 0)
        return self.block.weights.ptr_to([self.cursor[0] + T.int64(words)])

    def _step(self, fragments: int) -> None:
        """Go on by some fragments; at the end of a pass to the first one of the following pass."""
        T.buffer_store(self.cursor, self.cursor[0] + T.int64(fragments * FRAGMENT_WORDS), [0])
        T.buffer_store(self.left, self.left[0] - fragments, [0])
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
        first, together = self.filter_pass[0], plan.config.tiles_m
        tile = self.block.tile(first if together == 1 else first * together)
        start = plan.fragment_word(tile, self.block.rank) + self.block.member * 4
        taps = plan.tap_rows
        if not plan.taps_skipped:
            T.buffer_store(self.cursor, T.cast(start, "int64"), [0])
            T.buffer_store(self.left, T.int32(taps * plan.run), [0])
            return
        count = T.min(T.int32(plan.config.tile_rows), self.block.end_row - self.row[0])
        first, end = plan.tap_range(self.row[0], count, T.max, T.min)
        first = bind("first_tap", first)
        T.buffer_store(self.cursor, T.cast(start + first * (plan.run * FRAGMENT_WORDS), "int64"), [0])
        T.buffer_store(self.left, (end - first) * plan.run, [0])

"""Passes that load their own rows: the parts of a channel group come and go together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit import instructions as op
from subbyte.families.wgmma.pipeline.emit.control import Counter
from subbyte.families.wgmma.pipeline.emit.stagger import Stagger
from subbyte.tirx.emit import bind, every, loop, when


@dataclass
class OwnRows(Stagger):
    """A pass of a consumer warpgroup, as far as it counts the parts that were brought for it alone."""

    row: Any
    ready: Counter
    first_slot: Any = field(init=False, default=None)
    """Slot of the first part of a channel group."""

    @property
    def _in_order(self) -> bool:
        """Several kernel rows read the parts of a channel group, which come and go together. They go as soon as the
        next group's multiplications are under way alone: the producer needs the time."""
        plan = self.block.plan
        return not plan.keep_rows and not plan.lowered and plan.tap_rows > 1

    def _enter_group(self, group: Any) -> None:
        """Remember the slot of a channel group's first part, and wait for all its parts."""
        block = self.block
        T.buffer_store(self.first_slot, self.ready.slot[0], [0])
        until = bind("until", self._pass_part(group) + block.plan.group_parts)
        self.ready.up_to(until, lambda slot, turn: block.wait(block.full(slot), turn))

    def _give_back_group(self, before: bool, where: list[Any]) -> None:
        """Give back the slots of the channel group, or of the one before it: each lane of a warp one of them, because
        a loop between multiplications would make ptxas serialize them."""
        block, plan = self.block, self.block.plan
        ring, back = T.uint32(plan.stages), T.uint32(plan.stages - plan.group_parts if before else 0)
        place = bind("place", self.first_slot[0] + back + T.cast(block.lane, "uint32"))
        with when(every([block.lane < plan.group_parts, *where])):
            op.barrier_arrive(block.empty(T.Select(place >= ring, place - ring, place)))

    def _release_group(self, group: Any) -> None:
        if self._in_order:
            self._give_back_group(before=False, where=[])
            return
        first = bind("group_part", self._pass_part(group))
        with loop("part", self.block.plan.group_parts) as part:
            self.block.arrive(self.block.empty(self.block.slot(first + part)))

    def _pass_part(self, group: Any) -> Any:
        """First part of this pass's channel group, where every pass loads its own rows."""
        plan, config = self.block.plan, self.block.plan.knobs
        row_pass = self.row_pass if config.consumers_rows > 1 else self.row_pass + self.block.y  # y is 0 there
        return ((row_pass * config.m_iterations + self.filter_pass) * plan.groups + group) * plan.group_parts

    def _row_address(self, fragment_row: Any, tap: Any) -> Any:
        """Byte address of the input row that a fragment row reads for a tap, in the parts of the channel group."""
        plan, config, block = self.block.plan, self.block.plan.knobs, self.block
        if config.pass_parts:
            begin = self.row - block.y * config.tile_rows if config.consumers_rows > 1 else self.row
            first = T.max(begin * plan.rows.pixel_step, plan.row_range[0])  # rows above the image are in no part
            row = (self.row + fragment_row) * plan.rows.pixel_step + tap * plan.rows.tap_step - first
            return block.slot_address(self.first_slot[0]) + T.cast(row * plan.row_bytes, "uint32")
        row = block.y * config.tile_rows + fragment_row if config.consumers_rows > 1 else fragment_row
        place = self.first_slot[0] + T.cast(row * plan.rows.pixel_step + tap * plan.rows.tap_step, "uint32")
        slot, ring = bind("slot", place), T.uint32(plan.stages)
        return block.slot_address(bind("wrapped", T.Select(slot >= ring, slot - ring, slot)))

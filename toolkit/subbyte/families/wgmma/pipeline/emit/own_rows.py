"""Tile iterations that load their own rows: the stages of a channel group are filled and released together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.pipeline.emit.control import Counter
from subbyte.families.wgmma.pipeline.emit.stagger import Stagger
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, when


@dataclass
class OwnRows(Stagger):
    """A tile iteration of a consumer warpgroup: the part that tracks the stages loaded for it alone."""

    row: Any
    ready: Counter
    first_buffer: Any = field(init=False, default=None)
    """Stage buffer of the first stage of a channel group."""

    @property
    def _in_order(self) -> bool:
        """Whether several kernel rows read the stages of a channel group, which are then filled and released together,
        as soon as only the next group's multiplications are in flight: the producer needs the time."""
        plan = self.block.plan
        return not plan.keep_rows and not plan.lowered and plan.tap_rows > 1

    def _enter_group(self, group: Any) -> None:
        """Record the buffer of a channel group's first stage, and wait for all its stages."""
        block = self.block
        T.buffer_store(self.first_buffer, self.ready.buffer[0], [0])
        until = bind("until", self._iteration_stage(group) + block.plan.group_stages)
        self.ready.up_to(until, lambda buffer, phase: block.wait(block.full(buffer), phase))

    def _release_lane_by_lane(self, before: bool, where: list[Any]) -> None:
        """Release the stages of the channel group, or of the one before it: each lane of a warp releases one, because
        a loop between multiplications would make ptxas serialize them."""
        block, plan = self.block, self.block.plan
        depth, back = T.uint32(plan.stages), T.uint32(plan.stages - plan.group_stages if before else 0)
        place = bind("place", self.first_buffer[0] + back + T.cast(block.lane, "uint32"))
        with when(every([block.lane < plan.group_stages, *where])):
            op.barrier_arrive(block.empty(T.Select(place >= depth, place - depth, place)))

    def _release_group(self, group: Any) -> None:
        if self._in_order:
            self._release_lane_by_lane(before=False, where=[])
            return
        first = bind("group_part", self._iteration_stage(group))
        with loop("part", self.block.plan.group_stages) as stage:
            self.block.arrive(self.block.empty(self.block.buffer(first + stage)))

    def _iteration_stage(self, group: Any) -> Any:
        """First stage of this iteration's channel group, if every tile iteration loads its own rows."""
        plan, config = self.block.plan, self.block.plan.knobs
        row_iteration = (
            self.row_iteration if config.consumers_rows > 1 else self.row_iteration + self.block.y
        )  # y is 0 there
        return ((row_iteration * config.m_iterations + self.m_iteration) * plan.groups + group) * plan.group_stages

    def _row_address(self, fragment_row: Any, tap: Any) -> Any:
        """Byte address of the input row that a fragment row reads for a tap, in the stages of the channel group."""
        plan, config, block = self.block.plan, self.block.plan.knobs, self.block
        if config.stage_per_iteration:
            begin = self.row - block.y * config.tile_rows if config.consumers_rows > 1 else self.row
            first = T.max(begin * plan.rows.pixel_step, plan.row_range[0])  # rows above the image have no stage
            row = (self.row + fragment_row) * plan.rows.pixel_step + tap * plan.rows.tap_step - first
            return block.buffer_address(self.first_buffer[0]) + T.cast(row * plan.row_bytes, "uint32")
        row = block.y * config.tile_rows + fragment_row if config.consumers_rows > 1 else fragment_row
        place = self.first_buffer[0] + T.cast(row * plan.rows.pixel_step + tap * plan.rows.tap_step, "uint32")
        buffer, depth = bind("slot", place), T.uint32(plan.stages)
        return block.buffer_address(bind("wrapped", T.Select(buffer >= depth, buffer - depth, buffer)))

"""When a consumer warpgroup starts a tile iteration: at once, alternating with the other (ping-pong), or late
(skewed)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import every, when

PING_PONG, SKEWED = 1, 2
"""Values of ``stagger``."""


@dataclass
class Stagger:
    """A tile iteration of one of two warpgroups: the part in which they wait for each other."""

    block: Block
    iterations: Any
    row_iteration: Any
    m_iteration: Any

    @property
    def _ping_pong(self) -> bool:
        config = self.block.plan.knobs
        return config.stagger == PING_PONG and config.consumers == 2

    @property
    def _skewed(self) -> bool:
        config = self.block.plan.knobs
        return config.stagger == SKEWED and config.consumers == 2

    def _iterations_of(self, warpgroup: int) -> Any:
        """Iterations over rows of one of the two warpgroups."""
        block, config = self.block, self.block.plan.knobs
        if config.consumers_rows == 1:
            return self.iterations
        first = block.first_row + warpgroup * config.tile_rows
        return (block.end_row - first + (2 * config.tile_rows - 1)) // (2 * config.tile_rows)

    def wait_for_other(self) -> None:
        """Start an iteration only when the other warpgroup is well into its own, so that epilogues do not coincide; or
        delay only the first one, by about an epilogue."""
        if self._skewed:
            first = [self.block.warpgroup == 1, *self._first_iteration]
            with when(every(first)):
                op.named_barrier(2, 256, wait=True)
        if not self._ping_pong:
            return
        per_row = self.block.plan.knobs.m_iterations
        number = self.row_iteration * per_row + self.m_iteration
        after_other = [number > 0]  # the other's iteration before this one, if there is one
        if self.block.plan.knobs.consumers_rows > 1:
            after_other.append(number <= self._iterations_of(1) * per_row)
        for warpgroup, conditions in ((0, after_other), (1, [])):
            with when(every([self.block.warpgroup == warpgroup, *conditions])):
                op.named_barrier(1 + warpgroup, 256, wait=True)

    @property
    def _first_iteration(self) -> list[Any]:
        return [self.row_iteration == 0, *([self.m_iteration == 0] if self.block.plan.knobs.m_iterations > 1 else [])]

    def let_other_begin(self, tap: Any, group: Any, body: Any) -> None:
        """In the first iteration, after the loop body at which it is about an epilogue ahead: let the other start."""
        if not self._skewed:
            return
        conditions = [self.block.warpgroup == 0, *self._first_iteration]
        for index, at in zip((tap, group, body), self.block.plan.late_start, strict=True):
            if isinstance(index, int):
                if index != at:
                    return
            else:
                conditions.append(index == at)
        with when(every(conditions)):
            op.named_barrier(2, 256, wait=False)

    def let_other_start(self, index: Any, at: int) -> None:
        """In the middle of an iteration: let the other warpgroup start its next one, if it has one."""
        config = self.block.plan.knobs
        if not self._ping_pong:
            return
        if isinstance(index, int) and index != at:
            return
        here = [] if isinstance(index, int) else [index == at]
        last = config.m_iterations - 1
        same = [self.row_iteration < self._iterations_of(1)] if config.consumers_rows > 1 else []
        following = self.row_iteration + 1 < self._iterations_of(0)
        if last:
            following = T.Or(self.m_iteration < last, following)
        for warpgroup, conditions in ((0, same), (1, [following])):
            with when(every([self.block.warpgroup == warpgroup, *here, *conditions])):
                op.named_barrier(2 - warpgroup, 256, wait=False)

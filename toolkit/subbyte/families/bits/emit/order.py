"""The order in which warpgroups multiply: without it, warpgroups that started together multiply and compare together,
and the Tensor Cores are idle while all compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.plan import BitsPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, when

_FIRST = 1
"""Index of the first warpgroup's named barrier; 0 is the block's."""
READY, COUNTED_BORDER, COUNTED_ROW = 15, 14, 13
"""Indices of the barriers: the other barriers are initialized and everything outside the image is written; the copying
warp, which does not wait at the former, waits for the latter; a staged row's bits are counted."""
COUNTERS = 128
"""Number of threads that count."""
_BOTH = 256
"""Threads at a barrier: the waiting warpgroup, and the one that releases it."""


@dataclass
class Stagger:
    """The turn order of a warpgroup. ``stagger`` of them multiply at a time; each releases the one that many places
    after it.

    Since that number divides the number of warpgroups, they form cycles, and no warpgroup arrives at a barrier again
    before the one waiting there has left it.
    """

    plan: BitsPlan
    turns: int
    turn: Any
    warpgroup: Any

    def wait(self) -> None:
        """Wait for this warpgroup's turn; the first ones start at once."""
        at_once = self.plan.config.stagger
        if at_once:
            with when(T.Or(self.turn > 0, self.warpgroup >= at_once)):
                op.named_barrier(_FIRST + self.warpgroup, _BOTH, wait=True)

    def arrive(self) -> None:
        """Release the next warpgroup, if it has another turn."""
        at_once, consumers = self.plan.config.stagger, self.plan.config.consumers
        if at_once:
            behind = self.warpgroup + at_once
            wraps = bind("wraps", behind >= consumers)
            following = T.Select(wraps, behind - consumers, behind)
            with when(T.Or(T.Not(wraps), self.turn < self.turns - 1)):
                op.named_barrier(_FIRST + following, _BOTH, wait=False)

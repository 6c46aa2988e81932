"""Whose turn it is to multiply: without an order, warpgroups that began together multiply and compare together, and the
Tensor Cores idle while all compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.plan import BitsPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, when

_FIRST = 1
"""Number of the first warpgroup's named barrier; 0 is the block's."""
READY, COUNTED_BORDER, COUNTED_ROW = 15, 14, 13
"""Numbers of the barriers at which the others' barriers are set up and what lies beyond the image is written, at which
the warp that copies, which does not wait there, waits for the latter, and at which a staged row's bits are counted."""
COUNTERS = 128
"""Threads that count."""
_BOTH = 256
"""Threads at a barrier: the warpgroup that waits, and the one that lets it go on."""


@dataclass
class Stagger:
    """A turn of a warpgroup. ``stagger`` of them multiply at a time; each lets the one so many places behind go on.

    As that number divides the warpgroups, they form rings, and nobody arrives at a barrier again before the one who
    waits there has left it.
    """

    plan: BitsPlan
    turns: int
    turn: Any
    warpgroup: Any

    def wait(self) -> None:
        """Until it is this warpgroup's turn; the first ones begin at once."""
        at_once = self.plan.config.stagger
        if at_once:
            with when(T.Or(self.turn > 0, self.warpgroup >= at_once)):
                op.named_barrier(_FIRST + self.warpgroup, _BOTH, wait=True)

    def arrive(self) -> None:
        """The next one may multiply, if it has another turn."""
        at_once, consumers = self.plan.config.stagger, self.plan.config.consumers
        if at_once:
            behind = self.warpgroup + at_once
            wraps = bind("wraps", behind >= consumers)
            following = T.Select(wraps, behind - consumers, behind)
            with when(T.Or(T.Not(wraps), self.turn < self.turns - 1)):
                op.named_barrier(_FIRST + following, _BOTH, wait=False)

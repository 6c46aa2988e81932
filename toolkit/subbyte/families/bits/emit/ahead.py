"""Loading the residual of later turns while a turn multiplies and compares.

If registers allow, individual residuals are loaded while the preceding turn runs, and prefetched into the L2 cache
during the turn before that. Otherwise they are prefetched one turn ahead and loaded before their own turn's products;
window maxima, which take more registers, are loaded while the products run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import TilePlace
from subbyte.families.bits.emit.shortcut import Shortcut
from subbyte.families.bits.plan import BitsPlan
from subbyte.tirx.emit import registers, when


@dataclass
class Ahead:
    """Loads for a warpgroup; its first turn has the warpgroup's own number."""

    plan: BitsPlan
    shortcut: Shortcut
    warpgroup: Any
    held: list[Any] = field(default_factory=list)
    """The residual for each tile of a turn."""
    following: list[Any] = field(default_factory=list)

    def _place(self, tile: Any) -> TilePlace:
        return TilePlace.of(self.plan, tile, self.shortcut.stores.block.first_column)

    @property
    def _single(self) -> bool:
        return self.plan.fusion.residual > 0 and self.plan.fusion.residual_pool == 1

    def begin(self) -> None:
        """Allocate registers, load the residual of the first turn and prefetch that of the next one."""
        plan, rows = self.plan, range(self.plan.config.turn_rows)
        if not self._single:
            return
        self.held = [registers("residual", plan.residual_registers) for _ in rows]
        if plan.loads_ahead:
            self.following = [registers("following", plan.residual_registers) for _ in rows]
            self._load(self._place(self.warpgroup), self.held)
            self._fetch(self.warpgroup, 1)

    def before(self, place: TilePlace, tile: Any) -> None:
        """If nothing for turn ``tile`` is loaded yet, load it, and prefetch for the next one."""
        if self.plan.fusion.residual and not self.plan.loads_ahead:
            self._fetch(tile, 1)
            self._load(place, self.held)

    def during(self, tile: Any) -> None:
        """Load for later turns while the products of turn ``tile`` run."""
        if self.plan.loads_ahead:
            beyond = tile + self.plan.config.consumers
            with when(beyond < self.plan.turns):
                self._load(self._place(beyond), self.following)
            self._fetch(tile, 2)

    def added(self, place: TilePlace, further: int) -> Any:
        """The residual of a tile of this turn."""
        return self.held[further] if self._single else self.shortcut.load(place)

    def end(self) -> None:
        """Advance to this turn's successor."""
        for now, later in zip(self.held, self.following, strict=False):
            for i in range(self.plan.residual_registers):
                T.buffer_store(now, later[i], [i])

    def _load(self, place: TilePlace, into: list[Any]) -> None:
        for further, held in enumerate(into):
            self.shortcut.load(place.below(further), held)

    def _fetch(self, tile: Any, turns: int) -> None:
        plan = self.plan
        if plan.turns > turns * plan.config.consumers:
            beyond = tile + turns * plan.config.consumers
            with when(beyond < plan.turns):
                place = self._place(beyond)
                for further in range(plan.config.turn_rows):
                    self.shortcut.fetch(place.below(further))

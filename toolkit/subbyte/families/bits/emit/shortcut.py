"""Sums of other layers and for other layers: 16 bits each, 8 neighbouring channels of a thread in 16 bytes
(subbyte.numerics.residual)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.stores import Pixel, Stores
from subbyte.families.bits.plan import BitsPlan
from subbyte.numerics.residual import GROUP_CHANNELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when
from subbyte.workload.conv import BATCH_GROUP, ceil_div

_PER_GROUP = GROUP_CHANNELS // 2
"""Words of 32 channels of an image."""
_SIGNED = (0x9910, 0xBB32)
"""prmt: the lower or the upper half of a word, its sign spread over the rest."""
_BOTH = 0x5410
"""prmt: the lower halves of two words."""


@dataclass
class Shortcut:
    """Reads what is added to the sums of a tile, and writes what is kept of them."""

    stores: Stores
    residual: Any
    sums: Any

    @property
    def _plan(self) -> BitsPlan:
        return self.stores.plan

    def wait(self) -> None:
        """Nothing is read before the launches that wrote it have ended."""
        if self._plan.fusion.residual and self._plan.config.dependent_launch:
            op.wait_for_previous_launch()

    def load(self, pixels: list[Pixel]) -> Any:
        """What is added to a tile's sums, [halves][words][4 pairs of channels]; None where nothing is. Issued before
        the products are waited for, which take as long."""
        plan, by = self._plan, self._plan.fusion.residual_pool
        if not plan.fusion.residual:
            return None
        held = registers("residual", plan.residual_registers)
        for i in range(plan.residual_registers):
            T.buffer_store(held, T.uint32(0), [i])
        groups = plan.fusion.residual // GROUP_CHANNELS
        for pixel in pixels:
            with self.stores.in_map(pixel.row, pixel.column):
                for word in range(plan.words):
                    group = bind("group", self.stores.block.slice_ * plan.words + word)
                    first = (pixel.half * plan.words + word) * 4
                    with when(True if plan.slices * plan.words <= groups else group < groups):
                        if by == 1:
                            self._load(held, first, self.stores.place(pixel.row, pixel.column), groups, group)
                        else:
                            self._load_largest(held, first, pixel, groups, group)
        return held

    def _load(self, into: Any, first: int, place: Any, groups: int, group: Any) -> None:
        at = ((place * groups + group) * BATCH_GROUP + self.stores.image) * _PER_GROUP + self.stores.q * 4
        op.load16(into, first, self.residual.ptr_to([at]), "activations")

    def _load_largest(self, into: Any, first: int, pixel: Pixel, groups: int, group: Any) -> None:
        """The largest of each window's sums."""
        w, by = self._plan.view, self._plan.fusion.residual_pool
        row = (self.stores.block.group * w.p + self.stores.block.first_row + pixel.row) * by
        window = [registers("window", 4) for _ in range(by * by)]
        for index, one in enumerate(window):
            place = (row + index // by) * (w.q * by) + pixel.column * by + index % by
            self._load(one, 0, bind("place", place), groups, group)
        for pair in range(4):
            halves = []
            for selector in _SIGNED:
                values = [self._half(one[pair], selector) for one in window]
                largest = values[0]
                for value in values[1:]:
                    largest = T.max(largest, value)
                halves.append(T.cast(bind("largest", largest), "uint32"))
            both = registers("both", 1)
            op.permute_bytes(both[0], halves[0], halves[1], T.uint32(_BOTH))
            T.buffer_store(into, both[0], [first + pair])

    @staticmethod
    def _half(word: Any, selector: int) -> Any:
        half = registers("half", 1)
        op.permute_bytes(half[0], word, word, T.uint32(selector))
        return T.cast(half[0], "int32")

    def added(self, held: Any, half: int, word: int, k: int) -> Any:
        """What is added to the sum of channel 8 q + k of a word."""
        pair = held[(half * self._plan.words + word) * 4 + k // 2]
        return T.cast(self._half(pair, _SIGNED[k % 2]), "uint32")

    def keep(self, sums: list[Any], pixel: Pixel, word: int) -> None:
        """Write the 8 sums of a pixel and a word."""
        plan = self._plan
        groups = ceil_div(plan.view.k, GROUP_CHANNELS)
        group = self.stores.block.slice_ * plan.words + word
        pairs = registers("pairs", 4)
        for pair in range(4):
            op.permute_bytes(pairs[pair], sums[2 * pair], sums[2 * pair + 1], T.uint32(_BOTH))
        with (
            self.stores.in_map(pixel.row, pixel.column),
            when(True if plan.slices * plan.words <= groups else group < groups),
        ):
            place = self.stores.place(pixel.row, pixel.column)
            at = ((place * groups + group) * BATCH_GROUP + self.stores.image) * _PER_GROUP + self.stores.q * 4
            op.store16(self.sums.ptr_to([at]), [pairs[i] for i in range(4)])

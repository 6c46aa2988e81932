"""Sums of other layers and for other layers: 16 bits each, 8 neighbouring channels of a thread in 16 bytes
(subbyte.numerics.residual)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import TilePlace
from subbyte.families.bits.emit.stores import Pixel, Stores
from subbyte.families.bits.plan import BitsPlan
from subbyte.numerics.residual import GROUP_CHANNELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when
from subbyte.workload.conv import BATCH_GROUP, ceil_div

_PER_GROUP = GROUP_CHANNELS // 2
"""Words of 32 channels of an image."""
_AT_ONCE = 2
"""Words of a pixel whose windows are loaded together: that many registers times 16 wait for memory."""
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

    def ahead(self, place: TilePlace) -> None:
        """Bring what is added to the sums of a later tile into the L2 cache: two lanes of a warp, a pixel each."""
        plan, block, by = self._plan, self.stores.block, self._plan.fusion.residual_pool
        if not plan.fusion.residual:
            return
        groups = plan.fusion.residual // GROUP_CHANNELS
        with when(block.lane < 2):
            pixel = place.pixel(plan, block.warp % 4 * 2 + block.lane)
            neighbours = 1 if plan.spread else plan.words
            with self.stores.in_map(pixel.row, pixel.column):
                for own in range(0, plan.words, neighbours):
                    first = bind("first_group", plan.output_word(block.slice_, own))
                    with when(first < groups):
                        there = T.min(groups - first, neighbours) * (GROUP_CHANNELS * BATCH_GROUP * 2)
                        for index in range(by * by):
                            at = (self._window_place(pixel, index) * groups + first) * BATCH_GROUP * _PER_GROUP
                            op.prefetch(self.residual.ptr_to([at]), there)

    def load(self, pixels: list[Pixel]) -> Any:
        """What is added to a tile's sums, [halves][words][4 pairs of channels]; None where nothing is."""
        plan, by = self._plan, self._plan.fusion.residual_pool
        if not plan.fusion.residual:
            return None
        held = registers("residual", plan.residual_registers)
        for i in range(plan.residual_registers):
            T.buffer_store(held, T.uint32(0), [i])
        for pixel in pixels:
            with self.stores.in_map(pixel.row, pixel.column):
                for first in range(0, plan.words, _AT_ONCE):
                    words = range(first, min(first + _AT_ONCE, plan.words))
                    if by == 1:
                        for word in words:
                            with self._there(word) as group:
                                self._load(held, self._first(pixel, word), pixel, 0, group)
                    else:
                        self._load_largest(held, pixel, words)
        return held

    def _first(self, pixel: Pixel, word: int) -> int:
        """The first register of a pixel's word."""
        return (pixel.half * self._plan.words + word) * 4

    @contextmanager
    def _there(self, word: int) -> Iterator[Any]:
        """Only where something is added to a word's channels: their group."""
        plan, groups = self._plan, self._plan.fusion.residual // GROUP_CHANNELS
        group = bind("group", plan.output_word(self.stores.block.slice_, word))
        with when(True if plan.slices * plan.words <= groups else group < groups):
            yield group

    def _window_place(self, pixel: Pixel | TilePlace, index: int) -> Any:
        """Index of a pixel of the window whose largest sums are added."""
        w, by = self._plan.view, self._plan.fusion.residual_pool
        row = (self.stores.block.group * w.p + self.stores.block.first_row + pixel.row) * by
        return (row + index // by) * (w.q * by) + pixel.column * by + index % by

    def _load(self, into: Any, first: int, pixel: Pixel, index: int, group: Any) -> None:
        groups = self._plan.fusion.residual // GROUP_CHANNELS
        place = self._window_place(pixel, index)
        at = ((place * groups + group) * BATCH_GROUP + self.stores.image) * _PER_GROUP + self.stores.q * 4
        op.load16(into, first, self.residual.ptr_to([at]), "activations")

    def _load_largest(self, into: Any, pixel: Pixel, words: range) -> None:
        """The largest of each window's sums: all loads of some words, then the comparisons."""
        windows = self._plan.fusion.residual_pool**2
        found = registers("window", len(words) * windows * 4)
        for place, word in enumerate(words):
            with self._there(word) as group:
                for index in range(windows):
                    self._load(found, (place * windows + index) * 4, pixel, index, group)
        for place, word in enumerate(words):
            with self._there(word):
                for pair in range(4):
                    largest = found[place * windows * 4 + pair]
                    for index in range(1, windows):
                        larger = registers("larger", 1)
                        op.largest_halves(larger[0], largest, found[(place * windows + index) * 4 + pair])
                        largest = larger[0]
                    T.buffer_store(into, largest, [self._first(pixel, word) + pair])

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
        group = plan.output_word(self.stores.block.slice_, word)
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

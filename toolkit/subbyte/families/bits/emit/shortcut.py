"""Sums from earlier layers and for later ones: 8 neighbouring channels of a thread in 16 bytes, or with 32 bits each in
two times 16 bytes (subbyte.numerics.residual)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import TilePlace
from subbyte.families.bits.emit.stores import Pixel, Stores
from subbyte.families.bits.plan import BitsPlan
from subbyte.numerics.residual import GROUP_CHANNELS, WIDE
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when
from subbyte.workload.conv import BATCH_GROUP, ceil_div

_HALF_WORDS = BATCH_GROUP * GROUP_CHANNELS // 2
"""Distance from a thread's first four 32-bit sums to the others."""
_AT_ONCE = 2
"""Words of a pixel whose windows are loaded together: 16 times as many registers wait for memory."""
_SIGNED = (0x9910, 0xBB32)
"""prmt: the lower or the upper half of a word, sign-extended."""
_BOTH = 0x5410
"""prmt: the lower halves of two words."""


@dataclass
class Shortcut:
    """Reads the residual of a tile, and writes the sums that are kept."""

    stores: Stores
    residual: Any
    sums: Any
    windows: Any = None
    """For a turn's upper tile, the largest sums of each window's upper row, [words][registers]."""

    @property
    def _plan(self) -> BitsPlan:
        return self.stores.plan

    @property
    def _wide(self) -> bool:
        """Whether a register holds one residual value, not two."""
        return self._plan.fusion.residual_bits == WIDE

    @property
    def _held(self) -> int:
        """Registers for the residual of a thread's 8 sums."""
        return 8 if self._wide else 4

    def _at(self, place: Any, groups: int, group: Any, bits: int) -> Any:
        """Index of the first word of a thread's sums in 32 channels of a pixel; with 32 bits the other four sums are 8
        images further on."""
        first = ((place * groups + group) * (bits // 16 * BATCH_GROUP) + self.stores.image) * (GROUP_CHANNELS // 2)
        return first + self.stores.q * 4

    def wait(self) -> None:
        """Read nothing before the launches that wrote it have ended."""
        if self._plan.fusion.residual and self._plan.config.dependent_launch:
            op.wait_for_previous_launch()

    def fetch(self, place: TilePlace) -> None:
        """Prefetch the residual of a later tile into the L2 cache: two lanes per warp, one pixel each."""
        plan, block, by = self._plan, self.stores.block, self._plan.fusion.residual_pool
        groups = plan.fusion.residual // GROUP_CHANNELS
        with when(block.lane < 2):
            pixel = place.pixel(plan, block.warp % 4 * 2 + block.lane)
            neighbours = 1 if plan.spread else plan.words
            with self.stores.in_map(pixel.row, pixel.column):
                for own in range(0, plan.words, neighbours):
                    first = bind("first_group", plan.output_word(block.slice_, own))
                    with when(first < groups):
                        group_bytes = GROUP_CHANNELS * BATCH_GROUP * plan.fusion.residual_bits // 8
                        there = T.min(groups - first, neighbours) * group_bytes
                        for index in range(by * by):
                            at = (self._window_place(pixel, index) * groups + first) * BATCH_GROUP * (group_bytes // 32)
                            op.prefetch(self.residual.ptr_to([at]), there)

    def load(self, place: TilePlace, into: Any = None) -> Any:
        """The residual of a tile, [halves][words][4 pairs of channels], or with 32 bits 8 channels, in new
        registers or those given; None if there is none."""
        plan, by = self._plan, self._plan.fusion.residual_pool
        if not plan.fusion.residual:
            return None
        held = registers("residual", plan.residual_registers) if into is None else into
        for i in range(plan.residual_registers):
            T.buffer_store(held, T.uint32(0), [i])
        for half in range(2):
            pixel = place.pixel(plan, self.stores.block.warp % 4 * 2 + half)
            with self.stores.in_map(pixel.row, pixel.column):
                for first in range(0, plan.words, _AT_ONCE):
                    words = range(first, min(first + _AT_ONCE, plan.words))
                    if by == 1:
                        for word in words:
                            with self._there(word) as group:
                                self._load(held, self._first(half, word), pixel, 0, group)
                    else:
                        self._load_largest(held, half, pixel, words)
        return held

    def _first(self, half: int, word: int) -> int:
        """The first register for a word of one of the two pixels."""
        return (half * self._plan.words + word) * self._held

    @contextmanager
    def _there(self, word: int) -> Iterator[Any]:
        """Restrict to words whose channels have a residual: their channel group."""
        plan, groups = self._plan, self._plan.fusion.residual // GROUP_CHANNELS
        group = bind("group", plan.output_word(self.stores.block.slice_, word))
        with when(True if plan.slices * plan.words <= groups else group < groups):
            yield group

    def _window_place(self, pixel: TilePlace, index: int) -> Any:
        """Index of a pixel in the window whose largest sum is added."""
        w, by = self._plan.view, self._plan.fusion.residual_pool
        row = (self.stores.block.group * w.p + self.stores.block.first_row + pixel.row) * by
        return (row + index // by) * (w.q * by) + pixel.column * by + index % by

    def _load(self, into: Any, first: int, pixel: TilePlace, index: int, group: Any) -> None:
        groups = self._plan.fusion.residual // GROUP_CHANNELS
        at = self._at(self._window_place(pixel, index), groups, group, self._plan.fusion.residual_bits)
        op.load16(into, first, self.residual.ptr_to([at]), "activations")
        if self._wide:
            op.load16(into, first + 4, self.residual.ptr_to([at + _HALF_WORDS]), "activations")

    def _load_largest(self, into: Any, half: int, pixel: TilePlace, words: range) -> None:
        """The largest sums of each window: all loads for some words, then the comparisons."""
        windows, held = self._plan.fusion.residual_pool**2, self._held
        found = registers("window", len(words) * windows * held)
        for place, word in enumerate(words):
            with self._there(word) as group:
                for index in range(windows):
                    self._load(found, (place * windows + index) * held, pixel, index, group)
        for place, word in enumerate(words):
            with self._there(word):
                for own in range(held):
                    largest = found[place * windows * held + own]
                    for index in range(1, windows):
                        largest = self._larger(largest, found[(place * windows + index) * held + own], self._wide)
                    T.buffer_store(into, largest, [self._first(half, word) + own])

    @staticmethod
    def _larger(one: Any, other: Any, wide: bool) -> Any:
        """The larger sum, or the larger of each pair in a register."""
        larger = registers("larger", 1)
        if wide:
            T.buffer_store(larger, T.cast(T.max(T.cast(one, "int32"), T.cast(other, "int32")), "uint32"), [0])
        else:
            op.largest_halves(larger[0], one, other)
        return larger[0]

    @staticmethod
    def _half(word: Any, selector: int) -> Any:
        half = registers("half", 1)
        op.permute_bytes(half[0], word, word, T.uint32(selector))
        return T.cast(half[0], "int32")

    def added(self, held: Any, half: int, word: int, k: int) -> Any:
        """The residual for channel 8 q + k of a word."""
        first = (half * self._plan.words + word) * self._held
        if self._wide:
            return held[first + k]
        pair = held[first + k // 2]
        return T.cast(self._half(pair, _SIGNED[k % 2]), "uint32")

    def begin_windows(self) -> None:
        """Registers for the windows of a turn."""
        if self._plan.kept_windows:
            self.windows = registers("windows", self._plan.kept_windows)

    def keep(self, sums: list[list[Any]], pixels: list[Pixel], word: int, lower: bool) -> None:
        """Write the 8 sums of a word for both pixels; with windows the largest, once their ``lower`` row is
        complete."""
        held = [self._as_kept(one) for one in sums]
        if self.windows is None:
            for pixel, words in zip(pixels, held, strict=True):
                with self.stores.in_map(pixel.row, pixel.column):
                    self._write(words, self.stores.place(pixel.row, pixel.column), word)
            return
        first, wide = word * len(held[0]), self._plan.fusion.keep_bits == WIDE
        largest = [self._larger(one, other, wide) for one, other in zip(held[0], held[1], strict=True)]
        if not lower:
            for i, one in enumerate(largest):
                T.buffer_store(self.windows, one, [first + i])
            return
        largest = [self._larger(self.windows[first + i], one, wide) for i, one in enumerate(largest)]
        with self.stores.in_windows(pixels[0].row, pixels[0].column) as place:
            self._write(largest, place, word)

    def _as_kept(self, sums: list[Any]) -> list[Any]:
        """Eight sums in their stored form."""
        return sums if self._plan.fusion.keep_bits == WIDE else self._pairs(sums)

    def _write(self, words: list[Any], place: Any, word: int) -> None:
        plan = self._plan
        groups = ceil_div(plan.view.k, GROUP_CHANNELS)
        group = plan.output_word(self.stores.block.slice_, word)
        with when(True if plan.slices * plan.words <= groups else group < groups):
            at = self._at(place, groups, group, plan.fusion.keep_bits)
            for number in range(0, len(words), 4):
                there = at + _HALF_WORDS if number else at
                op.store16(self.sums.ptr_to([there]), words[number : number + 4])

    @staticmethod
    def _pairs(sums: list[Any]) -> list[Any]:
        """Eight sums of 16 bits in four registers."""
        pairs = registers("pairs", 4)
        for pair in range(4):
            op.permute_bytes(pairs[pair], sums[2 * pair], sums[2 * pair + 1], T.uint32(_BOTH))
        return [pairs[i] for i in range(4)]

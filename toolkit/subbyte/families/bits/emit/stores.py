"""Where outputs go: words of bits, each whole in one lane, to the pixels of the output as it lies in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.tiles import TILE_PIXELS
from subbyte.tirx.emit import bind, every, when
from subbyte.workload.conv import BATCH_GROUP


@dataclass
class Pixel:
    """One of a thread's two output pixels: ``half`` is its row of the accumulators, g or g + 8."""

    half: int
    row: Any
    """Output row of the block."""
    column: Any
    entry: Any
    """First table entry of its border class."""
    table: Any
    """Index of the thread's first word there; None where all is in registers."""


@dataclass
class Stores:
    """Emits the stores of a block. ``q`` is lane % 4, ``image`` lane // 4."""

    block: Block
    q: Any
    image: Any

    @property
    def plan(self) -> BitsPlan:
        """Of the kernel."""
        return self.block.plan

    def own_words(self) -> list[Any]:
        """The output words of the block that this lane has after the exchange, in the order of its registers."""
        plan = self.plan
        if plan.words == 1:
            return [T.int32(0)]
        if plan.words == 2:
            return [self.q % 2]
        return [gather // 2 * 4 + self.q % 2 * 2 + gather % 2 for gather in range(plan.words // 2)]

    @contextmanager
    def in_map(self, row: Any, column: Any) -> Iterator[None]:
        """Only where a pixel of the block is one of the layer's, before pooling."""
        plan, w = self.plan, self.plan.view
        conditions = []
        if plan.pixels_per_row > w.q:
            conditions.append(column < w.q)
        if plan.tiles * TILE_PIXELS > plan.pixels_per_row * plan.config.tile_rows or plan.config.run_on:
            conditions.append(row < plan.config.tile_rows)
        if w.p % plan.config.tile_rows:
            conditions.append(self.block.first_row + row < w.p)
        with when(every(conditions)):
            yield

    @contextmanager
    def in_windows(self, row: Any, column: Any) -> Iterator[Any]:
        """Only where a pixel's window of kept sums is whole: its index among those of all groups of images."""
        plan, w, by = self.plan, self.plan.view, self.plan.fusion.keep_pool
        rows, columns = w.p // by, w.q // by
        y, x = bind("window_row", (self.block.first_row + row) // by), bind("window_column", column // by)
        conditions = []
        if plan.pixels_per_row > columns * by:
            conditions.append(x < columns)
        if w.p % plan.config.tile_rows:
            conditions.append(y < rows)
        with when(every(conditions)):
            yield (self.block.group * rows + y) * columns + x

    @contextmanager
    def _in_output(self, row: Any, column: Any) -> Iterator[None]:
        """Only where a pixel of the output, pooled or not, is there."""
        plan, w, pool = self.plan, self.plan.view, self.plan.fusion.pool
        if pool == 1:
            with self.in_map(row, column):
                yield
            return
        conditions = []
        if plan.pixels_per_row > plan.out_columns * pool:
            conditions.append(column < plan.out_columns)
        if w.p % plan.config.tile_rows:
            conditions.append(self._output_row(row) < plan.out_rows)
        with when(every(conditions)):
            yield

    def _output_row(self, row: Any) -> Any:
        return self.block.first_row // self.plan.fusion.pool + row

    def place(self, row: Any, column: Any) -> Any:
        """Index of a pixel of the layer's map among those of all groups of images."""
        w = self.plan.view
        return (self.block.group * w.p + self.block.first_row + row) * w.q + column

    def _output_place(self, row: Any, column: Any) -> Any:
        """Index of a pixel of the output, or of a pair of them."""
        plan, y = self.plan, self._output_row(row)
        if plan.paired_output:
            return (self.block.group * -(-plan.out_rows // 2) + y // 2) * plan.out_columns + column
        return (self.block.group * plan.out_rows + y) * plan.out_columns + column

    def words(self, words: Any, pixels: list[Pixel]) -> None:
        """Lanes 0 and 1 have words of the first pixel, 2 and 3 of the second; where both are pooled, the same."""
        plan, pool = self.plan, self.plan.fusion.pool
        if pool == 1:
            second = self.q >= 2
            row = bind("out_row", T.Select(second, pixels[1].row, pixels[0].row))
            column = bind("out_column", T.Select(second, pixels[1].column, pixels[0].column))
            exists: Any = (self.q % 2 == 0) if plan.words == 1 else True
        else:
            row = bind("out_row", pixels[0].row // pool)
            column = bind("out_column", pixels[0].column // pool)
            exists = self.q < min(plan.words, 2)
        with self._in_output(row, column), when(exists):
            pixel = bind("out_pixel", self._output_place(row, column))
            upper = bind("upper", self._output_row(row) % 2) if plan.paired_output else 0
            self._clear_missing_images(words, pixel)
            for plane in range(plan.output_planes):
                for index, own in enumerate(self.own_words()):
                    word = plan.output_word(self.block.slice_, own)
                    with when(True if plan.slices * plan.words <= plan.pixel_words else word < plan.pixel_words):
                        T.buffer_store(self.block.output, words[plane * plan.gathers + index],
                                       [self._output_word(pixel, word, plane, upper)])  # fmt: skip
                self._padding(pixel, plane, upper)
                if plan.paired_output and plan.out_rows % 2:  # the row below the last one only fills up
                    last = self._output_row(row) == plan.out_rows - 1
                    with when(T.And(self.block.slice_ == 0, last)):
                        for word in range(plan.pixel_words):
                            self._zero(pixel, word, plane, 1)

    def _clear_missing_images(self, words: Any, pixel: Any) -> None:
        true = self.plan.workload
        if true.n % BATCH_GROUP == 0:
            return
        group = pixel // (true.p * true.q) if self.plan.flattened else self.block.group
        there = group * BATCH_GROUP + self.image < true.n
        for i in range(self.plan.output_planes * self.plan.gathers):
            T.buffer_store(words, T.Select(there, words[i], T.uint32(0)), [i])

    def _padding(self, pixel: Any, plane: int, upper: Any) -> None:
        """The last block of channels also writes the words of channels that only fill up."""
        plan = self.plan
        missing = plan.pixel_words - plan.slices * plan.words
        if missing > 0:
            with when(self.block.slice_ == plan.slices - 1):
                for word in range(plan.slices * plan.words, plan.pixel_words):
                    self._zero(pixel, word, plane, upper)

    def _zero(self, pixel: Any, word: int, plane: int, upper: Any) -> None:
        """Write a word that only fills up, with one of the lanes that have words of the pixel."""
        with when(True if self.plan.words == 1 else self.q % 2 == word % 2):
            T.buffer_store(self.block.output, T.uint32(0), [self._output_word(pixel, T.int32(word), plane, upper)])

    def _output_word(self, pixel: Any, word: Any, plane: int, upper: Any) -> Any:
        """Index of a word; ``upper``: 1 in the second of two paired rows."""
        plan = self.plan
        if plan.paired_output:
            return ((pixel * plan.output_planes + plane) * BATCH_GROUP + self.image) * 4 + upper * 2 + word
        place = (pixel * plan.filter_blocks + word // 4) * plan.output_planes + plane
        return (place * BATCH_GROUP + self.image) * 4 + word % 4

"""Output stores: words of bits, each whole in one lane, to the pixels of the output in its memory layout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block, TilePlace
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.tiles import TILE_PIXELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, when
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS

CORE_WORDS = 32
"""Words of 8 images' 128 channels of a pixel, in one plane."""


@dataclass
class Pixel:
    """One of a thread's two output pixels: ``half`` is its row of the accumulators, g or g + 8."""

    half: int
    tile: TilePlace
    """The tile's position."""
    row: Any
    """Output row of the block."""
    column: Any
    entry: Any = None
    """First table entry of its border class, once known."""
    table: Any = None
    """Index of the thread's first word there."""
    counted: Any = None
    """The bits in its window, if they are counted separately from the products."""


@dataclass
class Stores:
    """Emits the stores of a block. ``q`` is lane % 4, ``image`` lane // 4."""

    block: Block
    q: Any
    image: Any
    column: Any = None
    """Offset from a tile's first pixel to the one whose words the lane stores; None if outputs are pooled."""
    word: Any = None
    """The lane's first word among those of a pixel."""
    pixel: Any = None
    """Index of the output's pixel at the block's first row."""

    def begin(self) -> None:
        """Compute what is the same in every turn. Hidden: the compiler would recompute it in each turn."""
        plan = self.plan
        if plan.output == SUMS or plan.fusion.pool > 1:
            return
        self.column = bind("lane_column", op.hidden("lane_column", self.block.warp % 4 * 2 + self.q // 2))
        if not plan.spread:
            first = plan.output_word(self.block.slice_, self.own_words()[0])
            self.word = bind("lane_word", op.hidden("lane_word", self._output_word(0, first, 0, 0)))
        rows = self.plan.out_rows
        if plan.paired_output:
            first = self.block.group * -(-rows // 2) + (self.block.first_row // 2 if self._even else 0)
        else:
            first = self.block.group * rows + self.block.first_row
        self.pixel = bind("first_pixel", op.hidden("first_pixel", first * plan.out_columns))

    @property
    def _even(self) -> bool:
        """Whether blocks begin at an even row."""
        return self.plan.config.tile_rows % 2 == 0

    @property
    def plan(self) -> BitsPlan:
        """The kernel's plan."""
        return self.block.plan

    def own_words(self) -> list[Any]:
        """The output words of the block that this lane holds after the exchange, in register order."""
        plan = self.plan
        if plan.words == 1:
            return [T.int32(0)]
        if plan.words == 2:
            return [self.q % 2]
        return [gather // 2 * 4 + self.q % 2 * 2 + gather % 2 for gather in range(plan.words // 2)]

    @contextmanager
    def in_map(self, row: Any, column: Any) -> Iterator[None]:
        """Restrict to pixels of the block that exist in the layer, before pooling."""
        plan, w = self.plan, self.plan.view
        conditions = []
        if plan.pixels_per_row * plan.config.row_parts > w.q:
            conditions.append(column < w.q)
        if plan.tiles * TILE_PIXELS > plan.pixels_per_row * plan.config.tile_rows or plan.config.run_on:
            conditions.append(row < plan.config.tile_rows)
        if w.p % plan.config.tile_rows:
            conditions.append(self.block.first_row + row < w.p)
        with when(every(conditions)):
            yield

    @contextmanager
    def in_windows(self, row: Any, column: Any) -> Iterator[Any]:
        """Restrict to pixels whose window of kept sums is complete; gives the window's index over all groups of
        images."""
        plan, w, by = self.plan, self.plan.view, self.plan.fusion.keep_pool
        rows, columns = w.p // by, w.q // by
        y, x = bind("window_row", (self.block.first_row + row) // by), bind("window_column", column // by)
        conditions = []
        if plan.pixels_per_row * plan.config.row_parts > columns * by:
            conditions.append(x < columns)
        if w.p % plan.config.tile_rows:
            conditions.append(y < rows)
        with when(every(conditions)):
            yield (self.block.group * rows + y) * columns + x

    @contextmanager
    def _in_output(self, row: Any, column: Any) -> Iterator[None]:
        """Restrict to pixels that exist in the output, pooled or not."""
        plan, w, pool = self.plan, self.plan.view, self.plan.fusion.pool
        if pool == 1:
            with self.in_map(row, column):
                yield
            return
        conditions = []
        if plan.pixels_per_row * plan.config.row_parts > plan.out_columns * pool:
            conditions.append(column < plan.out_columns)
        if w.p % plan.config.tile_rows:
            conditions.append(self._output_row(row) < plan.out_rows)
        with when(every(conditions)):
            yield

    def _output_row(self, row: Any) -> Any:
        return self.block.first_row // self.plan.fusion.pool + row

    def place(self, row: Any, column: Any) -> Any:
        """Index of a pixel of the layer's map, over all groups of images."""
        w = self.plan.view
        return (self.block.group * w.p + self.block.first_row + row) * w.q + column

    def _output_place(self, row: Any, column: Any) -> Any:
        """Index of an output pixel, or of a pair of them."""
        plan, y = self.plan, self._output_row(row)
        if self.pixel is not None:
            paired = row // 2 if self._even else y // 2
            return self.pixel + (paired if plan.paired_output else row) * plan.out_columns + column
        if plan.paired_output:
            return (self.block.group * -(-plan.out_rows // 2) + y // 2) * plan.out_columns + column
        return (self.block.group * plan.out_rows + y) * plan.out_columns + column

    def words(self, words: Any, pixels: list[Pixel]) -> None:
        """Lanes 0 and 1 have words of the first pixel, 2 and 3 of the second; if both are pooled into one, the same."""
        plan, pool = self.plan, self.plan.fusion.pool
        if pool == 1:
            own = pixels[0].tile.pixel(plan, self.column)
            row, column = own.row, own.column
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
                        at = self._own_word(pixel, index, plane, upper)
                        if at is None:
                            at = self._output_word(pixel, word, plane, upper)
                        T.buffer_store(self.block.output, words[plane * plan.gathers + index], [at])
                self._padding(pixel, plane, upper)
                if plan.paired_output and plan.out_rows % 2:  # the row below the last one is padding
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
        """The last block of channels also writes the words of padding channels."""
        plan = self.plan
        missing = plan.pixel_words - plan.slices * plan.words
        if missing > 0:
            with when(self.block.slice_ == plan.slices - 1):
                for word in range(plan.slices * plan.words, plan.pixel_words):
                    self._zero(pixel, word, plane, upper)

    def _zero(self, pixel: Any, word: int, plane: int, upper: Any) -> None:
        """Write a padding word, with one of the lanes that hold words of the pixel."""
        with when(True if self.plan.words == 1 else self.q % 2 == word % 2):
            T.buffer_store(self.block.output, T.uint32(0), [self._output_word(pixel, T.int32(word), plane, upper)])

    def _own_word(self, pixel: Any, gather: int, plane: int, upper: Any) -> Any:
        """Index of the lane's word in a gather; None if a block's words are not contiguous."""
        plan = self.plan
        if self.word is None:
            return None
        if plan.paired_output:
            return pixel * (plan.output_planes * CORE_WORDS) + self.word + (plane * CORE_WORDS + upper * 2)
        further = (gather // 2 * plan.output_planes + plane) * CORE_WORDS + gather % 2
        return pixel * (plan.filter_blocks * plan.output_planes * CORE_WORDS) + self.word + further

    def _output_word(self, pixel: Any, word: Any, plane: int, upper: Any) -> Any:
        """Index of a word; ``upper`` is 1 in the second of two paired rows."""
        plan = self.plan
        if plan.paired_output:
            return ((pixel * plan.output_planes + plane) * BATCH_GROUP + self.image) * 4 + upper * 2 + word
        place = (pixel * plan.filter_blocks + word // 4) * plan.output_planes + plane
        return (place * BATCH_GROUP + self.image) * 4 + word % 4

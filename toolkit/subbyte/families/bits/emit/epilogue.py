"""Counts to results. A thread holds, of two pixels (rows g and g + 8 of a warp's 16, g = lane // 4 its image), 8 of
every 32 output channels: 8 q + k for k below 8, q = lane % 4.

Bits: a comparison's sign is spread over a byte by ``prmt``, four comparisons at a time; after 8 of them a thread's word
holds a byte for each of (two pixels) x (two words), and the four lanes of an image exchange bytes until each has a
word. Where sums and thresholds are small, two sums share a register.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block, TilePlace
from subbyte.families.bits.geometry import WORD_CHANNELS
from subbyte.families.bits.tiles import TILE_PIXELS
from subbyte.tirx import instructions as op
from subbyte.tirx.bit_words import class_of as _class_of
from subbyte.tirx.bit_words import exchange_bytes, rank_plane
from subbyte.tirx.emit import bind, every, registers, when
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS

_LANE_ENTRIES = 4
_LOW_HALVES = 0x5410
"""prmt: the lower halves of two words."""
_SIGNS_PAIRED = 0xFDB9
"""prmt: the signs of bytes 1 and 3 of two words, each spread over a byte."""
_SIGNS_TOP = 0xFFBB
"""prmt: the signs of two words, each spread over two bytes."""


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


class Epilogue:
    """Emits what stands behind the instructions of a tile."""

    def __init__(self, block: Block) -> None:
        self.block, self.plan = block, block.plan
        plan = block.plan
        self.q = bind("q", block.lane % 4)
        self.image = bind("image", block.lane // 4)
        self.kept: Any = None
        rows, columns = plan.classes
        self.class_entries = plan.thresholds * plan.slots * 32
        self.inner = (rows // 2 * columns + columns // 2) * self.class_entries
        if plan.kept:
            self.kept = registers("kept", plan.kept)
            table = self._table(self.inner)
            for entry in range(plan.kept):
                T.buffer_store(self.kept, self.block.shared[table + entry * _LANE_ENTRIES], [entry])
        self.flips: Any = None
        if plan.output != SUMS:
            self.flips = registers("flips", plan.gathers)
            flip_base = plan.table_base // 4 + plan.table_words - plan.flip_words
            for index, word in enumerate(self._own_words()):
                T.buffer_store(self.flips, block.shared[flip_base + word], [index])

    # ---- places -------------------------------------------------------------------------------------------------

    def tile(self, counts: list[Any], place: TilePlace) -> None:
        """The results of a tile."""
        plan = self.plan
        pixels = [self._pixel(place.pixel(plan, self.block.warp % 4 * 2 + half), half) for half in range(2)]
        if plan.output == SUMS:
            for pixel in pixels:
                self._store_sums(counts, pixel)
            return
        ones = [self._ones(counts, half) for half in range(2)]
        words = registers("words", plan.output_planes * plan.gathers)
        if self.kept is not None and plan.classes != (1, 1):
            inside = T.And(pixels[0].entry == self.inner, pixels[1].entry == self.inner)
            with T.If(bind("interior", inside)):
                with T.Then():
                    self._bits(counts, ones, lambda pixel, entry: self.kept[entry], pixels, words)
                with T.Else():
                    self._bits(counts, ones, self._of_class, pixels, words)
        else:
            read = self._of_class if self.kept is None else lambda pixel, entry: self.kept[entry]
            self._bits(counts, ones, read, pixels, words)
        self._store_words(words, pixels)

    def _pixel(self, place: TilePlace, half: int) -> Pixel:
        """One of the thread's output pixels."""
        plan, row, column = self.plan, place.row, place.column
        rows, columns = plan.border_rows
        entry: Any = 0
        if plan.classes != (1, 1):
            of_row = _class_of(rows, self.block.first_row + row)
            of_column = _class_of(columns, column)
            entry = bind("entry", (of_row * plan.classes[1] + of_column) * self.class_entries)
        at = None if self.kept is not None and plan.classes == (1, 1) else self._table(entry)
        return Pixel(half, row, column, entry, at)

    def _table(self, entry: Any) -> Any:
        """Index of a thread's first word of a class. Hidden: the compiler would compute each entry's address anew."""
        return bind("table", op.hidden("table_at", self.plan.table_base // 4 + entry + self.q))

    def _of_class(self, pixel: Pixel, entry: int) -> Any:
        return self.block.shared[pixel.table + entry * _LANE_ENTRIES]

    # ---- sums -----------------------------------------------------------------------------------------------------

    def _ones(self, counts: list[Any], half: int) -> Any:
        """What the activations' bits alone contribute, for every channel of a pixel; None where nothing."""
        plan = self.plan
        if not plan.form.per_pixel:
            return None
        at = plan.filter_columns // 2 + 2 * half
        total: Any = None
        for plane in range(plan.sets):
            term = counts[plane][at] * _word(plan.ones_factor(plane))
            total = term if total is None else total + term
        return bind("ones", total * T.uint32(0x10001) if plan.paired else total)

    def _count(self, counts: Any, weight_plane: int, word: int, k: int, half: int) -> Any:
        """The count of channel 8 q + k of a word."""
        column = weight_plane * self.plan.config.channels + WORD_CHANNELS * word + 8 * (k // 2)
        return counts[column // 2 + k % 2 + 2 * half]

    def _varying(self, counts: list[Any], words: tuple[int, ...], k: int, half: int) -> Any:
        """What varies with the pixel of a channel, or of two channels in one register."""
        plan = self.plan
        total: Any = None
        for plane in range(plan.sets):
            for weight_plane in range(plan.weight_planes):
                count = self._count(counts[plane], weight_plane, words[0], k, half)
                if plan.paired:
                    count = self._pair(count, self._count(counts[plane], weight_plane, words[1], k, half))
                factor = plan.factor(weight_plane, plane)
                term = count if factor == 1 else count * _word(factor)
                total = term if total is None else total + term
        return total

    def _pair(self, low: Any, high: Any) -> Any:
        """Two sums in one register: by prmt, since integer multiply-adds have a pipe of their own, which is full; sums
        below 0 borrow from the upper half."""
        if self.plan.negative_sums:
            return low + high * T.uint32(1 << 16)
        pair = registers("pair", 1)
        op.permute_bytes(pair[0], low, high, T.uint32(_LOW_HALVES))
        return pair[0]

    # ---- bits -----------------------------------------------------------------------------------------------------

    def _bits(self, counts: list[Any], ones: list[Any], read: Any, pixels: list[Pixel], words: Any) -> None:
        """A thread's output words: [planes][words of the lane]."""
        plan = self.plan
        gathers = plan.gathers
        for gather in range(gathers):
            planes = [registers("plane", 1) for _ in range(plan.output_planes)]
            for k in range(8):
                masks = self._comparisons(counts, ones, read, pixels, gather, k)
                for plane, into in enumerate(planes):
                    found = rank_plane(masks, plane)
                    bits = found & T.uint32(0x01010101 << k)
                    T.buffer_store(into, bits if k == 0 else into[0] | bits, [0])
            for plane, into in enumerate(planes):
                exchange_bytes(into, self.q)
                word = into[0] ^ self.flips[gather]
                T.buffer_store(words, word, [plane * gathers + gather])

    def _comparisons(self, counts: list[Any], ones: list[Any], read: Any, pixels: list[Pixel], gather: int,
                     k: int) -> list[Any]:  # fmt: skip
        """For each threshold a word of four bytes, all ones where it is passed: (first pixel, second) x (two words)."""
        plan = self.plan
        slots = [gather] if plan.paired else list(plan.gather_words(gather))
        varying = [
            [bind("sum", self._with_ones(self._varying(counts, plan.slot_words(slot), k, half), ones[half]))
             for half in range(2)]
            for slot in slots
        ]  # fmt: skip
        masks = []
        for threshold in range(plan.thresholds):
            mask = registers("mask", 1)
            compared = []
            for place, slot in enumerate(slots):
                entry = (threshold * plan.slots + slot) * 8 + k
                for pixel in pixels:
                    against = T.cast(read(pixel, entry), "uint32")
                    value = varying[place][pixel.half]
                    compared.append(against + value if plan.paired else against - value)
            if plan.paired:
                op.permute_bytes(mask[0], compared[0], compared[1], T.uint32(_SIGNS_PAIRED))
            elif len(slots) == 1:
                op.permute_bytes(mask[0], compared[0], compared[1], T.uint32(_SIGNS_TOP))
            else:  # compared: word 0 of both pixels, word 1 of both
                low, high = registers("low", 1), registers("high", 1)
                op.permute_bytes(low[0], compared[0], compared[2], T.uint32(_SIGNS_TOP))
                op.permute_bytes(high[0], compared[1], compared[3], T.uint32(_SIGNS_TOP))
                op.permute_bytes(mask[0], low[0], high[0], T.uint32(0x6420))
            masks.append(mask[0])
        return masks

    @staticmethod
    def _with_ones(value: Any, ones: Any) -> Any:
        return value if ones is None else value + ones

    # ---- stores -----------------------------------------------------------------------------------------------------

    def _own_words(self) -> list[Any]:
        """The output words of the block that this lane has after the exchange, in the order of its registers."""
        plan = self.plan
        if plan.words == 1:
            return [T.int32(0)]
        if plan.words == 2:
            return [self.q % 2]
        return [gather // 2 * 4 + self.q % 2 * 2 + gather % 2 for gather in range(plan.words // 2)]

    @contextmanager
    def _in_image(self, row: Any, column: Any) -> Iterator[None]:
        plan, w = self.plan, self.plan.view
        conditions = []
        if plan.pixels_per_row > w.q:
            conditions.append(column < w.q)
        if plan.tiles * TILE_PIXELS > plan.pixels_per_row * plan.config.tile_rows or plan.config.run_on:
            conditions.append(row < plan.config.tile_rows)
        if w.p % plan.config.tile_rows:
            conditions.append(self.block.first_row + row < w.p)
        with when(every(conditions) if conditions else True):
            yield

    def _place(self, row: Any, column: Any) -> Any:
        """Index of an output pixel, or of a pair of them, among those of all groups of images."""
        w = self.plan.view
        y = self.block.first_row + row
        if self.plan.paired_output:
            return (self.block.group * -(-w.p // 2) + y // 2) * w.q + column
        return (self.block.group * w.p + y) * w.q + column

    def _store_words(self, words: Any, pixels: list[Pixel]) -> None:
        """Lanes 0 and 1 have words of the first pixel, 2 and 3 of the second."""
        plan, w = self.plan, self.plan.view
        second = self.q >= 2
        row = bind("out_row", T.Select(second, pixels[1].row, pixels[0].row))
        column = bind("out_column", T.Select(second, pixels[1].column, pixels[0].column))
        gathers, planes = plan.gathers, plan.output_planes
        exists: Any = (self.q % 2 == 0) if plan.words == 1 else True
        with self._in_image(row, column), when(exists):
            pixel = bind("out_pixel", self._place(row, column))
            upper = bind("upper", (self.block.first_row + row) % 2) if plan.paired_output else 0
            true = plan.workload
            if true.n % BATCH_GROUP:
                group = self.block.group if w is true else pixel // (true.h * true.w)
                there = group * BATCH_GROUP + self.image < true.n
                for i in range(planes * gathers):
                    T.buffer_store(words, T.Select(there, words[i], T.uint32(0)), [i])
            for plane in range(planes):
                for index, own in enumerate(self._own_words()):
                    word = self.block.slice_ * plan.words + own
                    with when(True if plan.slices * plan.words <= plan.pixel_words else word < plan.pixel_words):
                        T.buffer_store(self.block.output, words[plane * gathers + index],
                                       [self._output_word(pixel, word, plane, upper)])  # fmt: skip
                self._store_padding(pixel, plane, upper)
                if plan.paired_output and w.p % 2:
                    with when(
                        T.And(self.block.slice_ == 0, self.block.first_row + row == w.p - 1)
                    ):  # the row below it only fills up
                        for word in range(plan.pixel_words):
                            self._zero(pixel, word, plane, 1)

    def _store_padding(self, pixel: Any, plane: int, upper: Any) -> None:
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

    def _store_sums(self, counts: list[Any], pixel: Pixel) -> None:
        """Raw sums: 8 neighbouring channels of a thread for each word."""
        plan, w = self.plan, self.plan.view
        block_channels = w.precision.output.block
        missing = w.padded_filters - plan.slices * plan.config.channels
        with self._in_image(pixel.row, pixel.column):
            ones = self._ones(counts, pixel.half)
            place = bind("out_pixel", self._place(pixel.row, pixel.column))

            def store(channel: Any, value: Any) -> None:
                at = (place * w.filter_blocks + channel // block_channels) * BATCH_GROUP + self.image
                T.buffer_store(self.block.output, value, [at * block_channels + channel % block_channels])

            for word in range(plan.words):
                channel = self.block.slice_ * plan.config.channels + word * WORD_CHANNELS + self.q * 8
                with when(True if missing >= 0 else channel < w.padded_filters):
                    for k in range(8):
                        value = self._with_ones(self._varying(counts, (word,), k, pixel.half), ones)
                        store(channel + k, T.cast(value + self._of_class(pixel, word * 8 + k), "int32"))
            if missing > 0:  # channels that only fill up
                with when(self.block.slice_ == plan.slices - 1):
                    for more in range(missing // WORD_CHANNELS * 8):
                        first = plan.slices * plan.config.channels + more // 8 * WORD_CHANNELS
                        store(first + self.q * 8 + more % 8, T.int32(0))


def _word(factor: int) -> Any:
    return T.uint32(factor & 0xFFFFFFFF)

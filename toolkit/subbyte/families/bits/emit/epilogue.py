"""Counts to results. For two pixels (rows g and g + 8 of a warp's 16, g = lane // 4 is its image), a thread holds 8 of
every 32 output channels: 8 q + k for k below 8, q = lane % 4.

Bits: ``prmt`` spreads a comparison's sign over a byte, four comparisons at a time; after 8 of them a thread's word
holds a byte for each of (two pixels) x (two words), and the four lanes of an image exchange bytes until each has a
whole word. If sums and thresholds are small, two sums share a register.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block, TilePlace
from subbyte.families.bits.emit.interior import interior
from subbyte.families.bits.emit.line import plane_words
from subbyte.families.bits.emit.shortcut import Shortcut
from subbyte.families.bits.emit.stores import Pixel, Stores
from subbyte.families.bits.geometry import LINE_WORDS, WORD_CHANNELS
from subbyte.families.bits.tiles import TILE_PIXELS
from subbyte.numerics.bit_layer import AFTER
from subbyte.tirx import instructions as op
from subbyte.tirx.bit_words import class_of, exchange_selected, exchange_selectors, rank_plane
from subbyte.tirx.emit import bind, registers, when
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS

_LANE_ENTRIES, _QUAD_WORDS = 4, 16
"""Consecutive table entries of a lane, and words of all four lanes."""
_LOW_HALVES = 0x5410
"""prmt: the lower halves of two words."""
_SIGNS_PAIRED = 0xFDB9
"""prmt: the signs of bytes 1 and 3 of two words, each spread over a byte."""
_SIGNS_TOP = 0xFFBB
"""prmt: the signs of two words, each spread over two bytes."""


class Epilogue:
    """Emits the code after the instructions of a tile."""

    def __init__(self, block: Block) -> None:
        self.block, self.plan = block, block.plan
        plan = block.plan
        self.q = bind("q", block.lane % 4)
        self.image = bind("image", block.lane // 4)
        self.stores = Stores(block, self.q, self.image)
        self.stores.begin()
        self.shortcut = Shortcut(self.stores, block.residual, block.sums)
        self.shortcut.wait()
        chosen = exchange_selectors(self.q)
        self.selectors = [op.hidden("selector", T.cast(one, "int32")) for one in chosen]
        if plan.config.counted:
            own = plan.window_base // 4 + self.block.warp % 4 * (2 * BATCH_GROUP) + self.image
            self.counted = bind("counted_at", op.hidden("counted_at", own))
        self.lower = False
        self.kept: Any = None
        rows, columns = plan.classes
        self.class_entries = plan.entries * plan.slots * 32
        self.inner = (rows // 2 * columns + columns // 2) * self.class_entries
        if plan.kept:
            self.kept = registers("kept", plan.kept)
            table = self._table(self.inner)
            for entry in range(plan.kept):
                at = table + (entry // _LANE_ENTRIES * _QUAD_WORDS + entry % _LANE_ENTRIES)
                T.buffer_store(self.kept, self.block.shared[at], [entry])
        self.flips: Any = None
        if plan.output != SUMS:
            self.flips = registers("flips", plan.gathers)
            flip_base = block.table + plan.table_words - plan.flip_words
            for index, word in enumerate(self.stores.own_words()):
                T.buffer_store(self.flips, block.shared[flip_base + word], [index])

    # ---- places -------------------------------------------------------------------------------------------------

    def pixels(self, place: TilePlace) -> list[Pixel]:
        """The thread's output pixels of a tile."""
        return [self._pixel(place, place.pixel(self.plan, self.block.warp % 4 * 2 + half), half) for half in range(2)]

    def tile(self, counts: list[Any], pixels: list[Pixel], added: Any, further: int) -> None:
        """The results of the tile ``further`` rows below a turn's first; ``added`` comes from :meth:`Shortcut.load`."""
        self.lower = further > 0
        if not further:
            self.shortcut.begin_windows()
        if self.plan.output == SUMS:
            for pixel in pixels:
                self._store_sums(counts, pixel)
            return
        if self.plan.by_line:
            self._store(self._by_line(counts, pixels), pixels)
        else:
            self._store(self._planes(self._passed(counts, pixels, added)), pixels)

    def pooled(self, counts: list[list[Any]], rows: list[list[Pixel]]) -> None:
        """The results of two vertically adjacent tiles: a thread's pixels in both form a window.

        The largest sum passes every threshold that any of them passes; the same holds for the largest code, where a
        flipped channel has passed what its sum has not.
        """
        plan = self.plan
        upper, lower = (self._passed(one, pixels, None) for one, pixels in zip(counts, rows, strict=True))
        turned = self._turned() if plan.fusion.pool_order == AFTER else None
        other = registers("other_column", 1)
        for i in range(plan.thresholds * plan.gathers):
            flip = T.uint32(0) if turned is None else turned[i % plan.gathers]
            T.buffer_store(upper, (upper[i] ^ flip) | (lower[i] ^ flip), [i])
            op.permute_bytes(other[0], upper[i], upper[i], T.uint32(0x1032))
            T.buffer_store(upper, (upper[i] | other[0]) ^ flip, [i])
        self._store(self._planes(upper), rows[0])

    def _turned(self) -> Any:
        """The flips of a thread's channels, for each gather, positioned like the comparisons before the exchange."""
        plan = self.plan
        turned = registers("turned", plan.gathers)
        flip_base = self.block.table + plan.table_words - plan.flip_words
        selector = T.cast(self.q, "uint32") * T.uint32(0x1111) + T.uint32(0x4040)
        for gather in range(plan.gathers):
            words = [self.block.shared[flip_base + word] for word in plan.gather_words(gather)]
            low, high = (T.cast(word, "uint32") for word in (words[0], words[-1]))
            op.permute_bytes(turned[gather], low, high, selector)
        return turned

    def _pixel(self, tile: TilePlace, place: TilePlace, half: int) -> Pixel:
        """One of the thread's output pixels."""
        plan = self.plan
        pixel = Pixel(half, tile, place.row, place.column)
        if plan.config.counted:
            at = (tile.row * (plan.row_tiles * TILE_PIXELS) + tile.column + half) * BATCH_GROUP
            pixel.counted = bind("counted", self.block.shared[self.counted + at])
        if self.kept is None:
            self._locate(pixel)
        return pixel

    def _locate(self, pixel: Pixel) -> None:
        """Find the table for a pixel's border class."""
        plan = self.plan
        rows, columns = plan.border_rows
        pixel.entry = T.int32(0)
        if plan.classes != (1, 1):
            of_row = class_of(rows, self.block.first_row + pixel.row)
            of_column = class_of(columns, pixel.column)
            pixel.entry = bind("entry", (of_row * plan.classes[1] + of_column) * self.class_entries)
        pixel.table = self._table(pixel.entry)

    def _table(self, entry: Any) -> Any:
        """Index of a thread's first word for a class. Hidden: the compiler would recompute each entry's address."""
        return bind("table", op.hidden("table_at", self.block.table + entry + self.q * _LANE_ENTRIES))

    def _of_class(self) -> Any:
        """Reads entries of a pixel's class, four at a time; with a single class, for both pixels at once."""
        held: dict[tuple[int, int], Any] = {}
        alike = self.plan.classes == (1, 1)

        def entry(pixel: Pixel, index: int) -> Any:
            key = 0 if alike else pixel.half, index // _LANE_ENTRIES
            if key not in held:
                held[key] = registers("entries", _LANE_ENTRIES)
                at = (pixel.table + index // _LANE_ENTRIES * _QUAD_WORDS) * 4
                op.load_shared16(held[key], self.block.base + T.cast(at, "uint32"))
            return held[key][index % _LANE_ENTRIES]

        return entry

    # ---- sums -----------------------------------------------------------------------------------------------------

    def _ones(self, counts: list[Any], pixel: Pixel) -> Any:
        """The contribution of the activation bits alone, the same for every channel of a pixel; None if there is
        none."""
        plan, half = self.plan, pixel.half
        if not plan.form.per_pixel:
            return None
        if plan.config.counted:
            return T.cast(pixel.counted, "uint32")
        total: Any = None
        for plane in range(plan.sets):
            term = self._own_bits(counts, plane, half) * _word(plan.ones_factor(plane))
            total = term if total is None else total + term
        return bind("ones", total * T.uint32(0x10001) if plan.paired else total)

    def _own_bits(self, counts: list[Any], plane: int, half: int) -> Any:
        """How many bits of a pixel's plane are 1, as counted by a column of ones."""
        return counts[plane][self.plan.filter_columns // 2 + 2 * half]

    def _count(self, counts: Any, weight_plane: int, word: int, k: int, half: int) -> Any:
        """The count of channel 8 q + k of a word."""
        column = weight_plane * self.plan.config.channels + WORD_CHANNELS * word + 8 * (k // 2)
        return counts[column // 2 + k % 2 + 2 * half]

    def _varying(self, counts: list[Any], words: tuple[int, ...], k: int, half: int) -> Any:
        """The part of a sum that varies with the pixel, for one channel, or for two channels in one register."""
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
        """Two sums in one register: by ``prmt``, since integer multiply-adds use a separate pipe, which is full;
        negative sums borrow from the upper half."""
        if self.plan.negative_sums:
            return low + high * T.uint32(1 << 16)
        pair = registers("pair", 1)
        op.permute_bytes(pair[0], low, high, T.uint32(_LOW_HALVES))
        return pair[0]

    # ---- bits -----------------------------------------------------------------------------------------------------

    def _passed(self, counts: list[Any], pixels: list[Pixel], added: Any) -> Any:
        """The thresholds that a thread's sums pass, [thresholds][gathers]: bit k of a byte is for channel 8 q + k, the
        bytes are (first pixel, second) x (two words)."""
        plan = self.plan
        ones = [self._ones(counts, pixel) for pixel in pixels]
        passed = registers("passed", plan.thresholds * plan.gathers)
        inner = lambda pixel, entry: self.kept[entry]  # noqa: E731
        if self.kept is not None and plan.classes != (1, 1):
            with T.If(bind("interior", interior(self.block, pixels))):
                with T.Then():
                    self._compare(counts, ones, inner, pixels, added, passed)
                with T.Else():
                    for pixel in pixels:
                        self._locate(pixel)
                    self._compare(counts, ones, self._of_class(), pixels, added, passed)
        else:
            self._compare(counts, ones, self._of_class() if self.kept is None else inner, pixels, added, passed)
        return passed

    def _compare(self, counts: list[Any], ones: list[Any], read: Any, pixels: list[Pixel], added: Any,
                 passed: Any) -> None:  # fmt: skip
        plan = self.plan
        for gather in range(plan.gathers):
            whole: dict[tuple[int, int], list[Any]] = {}
            for k in range(8):
                masks = self._comparisons(counts, ones, read, pixels, gather, k, added, whole)
                for threshold, mask in enumerate(masks):
                    at = threshold * plan.gathers + gather
                    before = T.uint32(0x01010101 * ((1 << k) - 1))  # later results overwrite the bits above
                    merged = (passed[at] & before) | (mask & (before ^ T.uint32(0xFFFFFFFF)))
                    T.buffer_store(passed, merged if k else mask, [at])
            for word in dict.fromkeys(word for word, _ in whole):
                self.shortcut.keep([whole[word, half] for half in range(2)], pixels, word, self.lower)

    def _planes(self, passed: Any) -> list[list[Any]]:
        """Codes from the passed thresholds, [gathers][planes]."""
        plan, gathers = self.plan, self.plan.gathers
        masks = [[passed[one * gathers + gather] for one in range(plan.thresholds)] for gather in range(gathers)]
        return [[rank_plane(one, plane) for plane in range(plan.output_planes)] for one in masks]

    def _by_line(self, counts: list[Any], pixels: list[Pixel]) -> list[list[Any]]:
        """The same with one multiplication per sum."""
        plan = self.plan
        ones = [self._ones(counts, pixel) for pixel in pixels]
        found = registers("planes", plan.output_planes * plan.gathers)

        def scaled(word: int, k: int, half: int) -> Any:
            return self._with_ones(self._varying(counts, (word,), k, half), ones[half])

        def emit(entry: Any) -> None:
            for gather in range(plan.gathers):
                planes = plane_words(plan.gather_words(gather), pixels, scaled, entry)
                for plane, word in enumerate(planes):
                    T.buffer_store(found, word[0], [gather * plan.output_planes + plane])

        if plan.classes == (1, 1):
            emit(_shared_entries(self._line))
        else:
            with T.If(bind("alike", pixels[0].entry == pixels[1].entry)):
                with T.Then():
                    emit(_shared_entries(self._line))
                with T.Else():
                    emit(self._line)
        count = plan.output_planes
        return [[found[gather * count + plane] for plane in range(count)] for gather in range(plan.gathers)]

    def _line(self, pixel: Pixel, word: int, k: int) -> Any:
        """A channel's line: addend, factor, offset."""
        held = registers("line", LINE_WORDS)
        at = (pixel.table + (word * 8 + k) * _LANE_ENTRIES * LINE_WORDS) * 4
        op.load_shared16(held, self.block.base + T.cast(at, "uint32"))
        return held

    def _store(self, planes: list[list[Any]], pixels: list[Pixel]) -> None:
        """Store codes [gathers][planes], whole words per lane."""
        plan, gathers = self.plan, self.plan.gathers
        words = registers("words", plan.output_planes * gathers)
        word = registers("word", 1)
        for gather in range(gathers):
            for plane in range(plan.output_planes):
                T.buffer_store(word, planes[gather][plane], [0])
                exchange_selected(word, [T.cast(one, "uint32") for one in self.selectors])
                T.buffer_store(words, word[0] ^ self.flips[gather], [plane * gathers + gather])
        self.stores.words(words, pixels)

    def _comparisons(self, counts: list[Any], ones: list[Any], read: Any, pixels: list[Pixel], gather: int, k: int,
                     added: Any, whole: dict[tuple[int, int], list[Any]]) -> list[Any]:  # fmt: skip
        """For each threshold a word of four bytes, all ones if it is passed: (first pixel, second) x (two words).
        Sums to be kept go into ``whole``, by word and half."""
        plan = self.plan
        slots = [gather] if plan.paired else list(plan.gather_words(gather))
        varying = [
            [bind("sum", self._with_ones(self._varying(counts, plan.slot_words(slot), k, half), ones[half]))
             for half in range(2)]
            for slot in slots
        ]  # fmt: skip
        if plan.fusion.sums:
            for place, slot in enumerate(slots):
                for pixel in pixels:
                    value = self._whole(varying[place][pixel.half], read, pixel, slot, k, added)
                    varying[place][pixel.half] = value
                    if plan.fusion.keep:
                        whole.setdefault((slot, pixel.half), []).append(value)
        masks = []
        for threshold in range(plan.constants, plan.entries):
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

    def _whole(self, value: Any, read: Any, pixel: Pixel, word: int, k: int, added: Any) -> Any:
        """A sum including the residual, and including its constant if the sum itself is needed."""
        plan = self.plan
        if plan.fusion.residual:
            value = value + self.shortcut.added(added, pixel.half, word, k)
        if plan.constants:
            value = value + T.cast(read(pixel, word * 8 + k), "uint32")
        return bind("whole", value)

    @staticmethod
    def _with_ones(value: Any, ones: Any) -> Any:
        return value if ones is None else value + ones

    # ---- raw sums ---------------------------------------------------------------------------------------------------

    def _store_sums(self, counts: list[Any], pixel: Pixel) -> None:
        """Raw sums: 8 neighbouring channels per thread for each word."""
        plan, w = self.plan, self.plan.view
        block_channels = w.precision.output.block
        missing = w.padded_filters - plan.slices * plan.config.channels
        with self.stores.in_map(pixel.row, pixel.column):
            ones, read = self._ones(counts, pixel), self._of_class()
            place = bind("out_pixel", self.stores.place(pixel.row, pixel.column))

            def store(channel: Any, values: list[Any]) -> None:
                at = (place * w.filter_blocks + channel // block_channels) * BATCH_GROUP + self.image
                op.store16(self.block.output.ptr_to([at * block_channels + channel % block_channels]), values)

            for word in range(plan.words):
                channel = self.block.slice_ * plan.config.channels + word * WORD_CHANNELS + self.q * 8
                with when(True if missing >= 0 else channel < w.padded_filters):
                    for first in range(0, 8, 4):
                        sums = []
                        for k in range(first, first + 4):
                            value = self._with_ones(self._varying(counts, (word,), k, pixel.half), ones)
                            sums.append(value + T.cast(read(pixel, word * 8 + k), "uint32"))
                        self._store_four(store, channel, first, sums)
            if missing > 0:  # padding channels
                with when(self.block.slice_ == plan.slices - 1):
                    for more in range(missing // WORD_CHANNELS * 2):
                        first = plan.slices * plan.config.channels + more // 2 * WORD_CHANNELS
                        store(first + self.q * 8 + more % 2 * 4, [T.uint32(0)] * 4)

    def _store_four(self, store: Any, channel: Any, first: int, sums: list[Any]) -> None:
        """Four of a thread's 8 neighbouring channels, starting at ``channel``."""
        store(channel + first, sums)


def _shared_entries(read: Any) -> Any:
    """Reads an entry once for pixels of the same class."""
    kept: dict[tuple[int, int], Any] = {}

    def entry(pixel: Pixel, word: int, k: int) -> Any:
        if (word, k) not in kept:
            kept[word, k] = read(pixel, word, k)
        return kept[word, k]

    return entry


def _word(factor: int) -> Any:
    return T.uint32(factor & 0xFFFFFFFF)

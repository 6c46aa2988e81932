"""Counts to results. For image ``lane // 4`` of each of its warp's pixels, a lane holds 8 of every 32 output channels:
8 t + k for k below 8, t = lane % 4.

Bits: four items, each a word of 32 channels of a pixel, are compared together; a lane's byte of each goes into one
register, and the four lanes of an image exchange bytes until each has the complete word of one item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.shared.planes.emit.block import Block
from subbyte.families.shared.planes.geometry import WORD_BITS
from subbyte.tirx import instructions as op
from subbyte.tirx.bit_words import class_of, exchange_bytes, rank_plane, sign_bytes
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.precision import SUMS

LANES = 4
"""Lanes per image; also items that are compared together."""
LANE_CHANNELS = 8
"""Channels of a lane in a word."""
MOST_HELD = 64
"""The most table entries kept in registers."""


@dataclass
class Item:
    """A word of 32 channels of a pixel of the warp."""

    pixel: Any
    word: Any
    entry: Any
    """First table entry of the pixel's border class."""
    ones: Any
    """The contribution of the activation bits alone, for every channel; None if there is none."""


def epilogue(block: Block) -> None:
    """Everything after the main loop."""
    plan = block.plan
    items = plan.config.warp_row_tiles * plan.warp_words
    with when(True if plan.splits == 1 else block.split == 0):
        if plan.output == SUMS:
            with loop("item", items) as index:
                _store_sums(block, _item(block, index, items))
        else:
            with loop("four", ceil_div(items, LANES)) as turn:
                _bits(block, turn, items)
    _fill_channels(block)


def add_splits(block: Block) -> None:
    """Add up the counts of warps that compute the same outputs, through shared memory, into the first of them."""
    plan, owners = block.plan, block.plan.config.threads
    owner, each = block.thread % owners, plan.kept_registers
    held = [(block.counts, len(plan.factors) * plan.set_registers, [counts for counts, _ in plan.split_factors])]
    if plan.ones_registers:
        held.append((block.ones, plan.ones_registers, [ones for _, ones in plan.split_factors]))
    for kept, count, factors in held:
        factor = bind("factor", _of_split(block, factors))
        with loop("i", count) as i:
            T.buffer_store(kept, kept[i] * factor, [i])
    T.evaluate(T.cuda.cta_sync())
    with when(block.split > 0):
        first = 0
        for kept, count, _ in held:
            with loop("i", count) as i:
                place = ((block.split - 1) * each + first + i) * owners + owner
                T.buffer_store(block.shared, kept[i], [place])
            first += count
    T.evaluate(T.cuda.cta_sync())
    with when(block.split == 0), loop("other", plan.splits - 1, T.serial) as other:
        first = 0
        for kept, count, _ in held:
            with loop("i", count) as i:
                place = (other * each + first + i) * owners + owner
                T.buffer_store(kept, kept[i] + block.shared[place], [i])
            first += count


def _of_split(block: Block, factors: list[int]) -> Any:
    """The factor of the thread's own split."""
    found: Any = T.uint32(factors[-1] & 0xFFFFFFFF)
    for split in range(len(factors) - 1):
        found = T.Select(block.split == split, T.uint32(factors[split] & 0xFFFFFFFF), found)
    return found


def _item(block: Block, index: Any, items: int) -> Item:
    """An item of the warp; if there are fewer than four, the last one again."""
    plan = block.plan
    place = T.min(index, items - 1) if items % LANES and plan.output != SUMS else index
    pixel = place // plan.warp_words
    entry: Any = 0
    if plan.classes != (1, 1):
        row, col = block.tile_pixel(pixel)
        rows, columns = plan.border_rows
        of_row, of_column = class_of(rows, block.row0 + row), class_of(columns, block.col0 + col)
        entry = bind("entry", (of_row * plan.classes[1] + of_column) * plan.class_words)
    ones = None if block.ones is None else bind("of_ones", block.ones_of(block, pixel))
    return Item(pixel, place % plan.warp_words, entry, ones)


def _varying(block: Block, item: Item, k: Any) -> Any:
    """The part of a sum that varies with the pixel, for channel 8 t + k of an item, divided by the common divisor;
    modulo 2^32."""
    plan, column, e = block.plan, item.word * LANES + k // 2, k % 2
    total: Any = None
    for index, factor in enumerate(plan.factors):
        count = block.counts[plan.count(index, item.pixel, column, e)]
        term = count if factor == 1 else count * T.uint32(factor & 0xFFFFFFFF)
        total = term if total is None else total + term
    return total if item.ones is None else total + item.ones


# ---- bits ------------------------------------------------------------------------------------------------------------


def _bits(block: Block, turn: Any, items: int) -> None:
    plan = block.plan
    four = [_item(block, turn * LANES + i, items) for i in range(LANES)]
    planes = [registers("plane", 1) for _ in range(plan.output_planes)]
    for into in planes:
        T.buffer_store(into, T.uint32(0), [0])
    read = _reader(block, four)
    with loop("k", LANE_CHANNELS) as k:
        varying = [bind("sum", _varying(block, item, k)) for item in four]
        masks = [
            sign_bytes([read(i, threshold, k) - value for i, value in enumerate(varying)])
            for threshold in range(plan.thresholds)
        ]
        for plane, into in enumerate(planes):
            bit = T.uint32(0x01010101) << T.cast(k, "uint32")
            T.buffer_store(into, into[0] | (rank_plane(masks, plane) & bit), [0])
    _store_words(block, turn, items, planes)


def _reader(block: Block, four: list[Item]) -> Callable[[int, int, Any], Any]:
    """The thresholds for channel 8 t + k of an item: from registers, or loaded one by one if there are too many."""
    plan = block.plan
    alike = plan.classes == (1, 1) and plan.warp_words == 1
    firsts = [_first_entry(block, item) for item in (four[:1] if alike else four)]

    def place(i: int, threshold: int) -> Any:
        return firsts[0 if alike else i] + threshold * plan.words * WORD_BITS

    if len(firsts) * plan.thresholds * LANE_CHANNELS > MOST_HELD:
        return lambda i, threshold, k: T.cast(block.parameters[place(i, threshold) + k // 4 * 16 + k % 4], "uint32")
    held = registers("against", len(firsts) * plan.thresholds * LANE_CHANNELS)
    for i in range(len(firsts)):
        for threshold in range(plan.thresholds):
            for half in range(2):
                into = (i * plan.thresholds + threshold) * LANE_CHANNELS + half * 4
                op.load16(held, into, block.parameters.ptr_to([place(i, threshold) + half * 16]), "weights")
    return lambda i, threshold, k: held[((0 if alike else i) * plan.thresholds + threshold) * LANE_CHANNELS + k]


def _first_entry(block: Block, item: Item) -> Any:
    """Index of the lane's first word of an item's table."""
    word = block.warp_col * block.plan.warp_words + item.word
    first = block.slice_ * block.plan.table_words + item.entry + word * WORD_BITS + block.lane % LANES * 4
    return bind("first_entry", first)


def _store_words(block: Block, turn: Any, items: int, planes: list[Any]) -> None:
    """Each lane stores the word of one item."""
    plan, w = block.plan, block.plan.view
    mine = bind("mine", turn * LANES + block.lane % LANES)
    own = T.min(mine, items - 1) if items % LANES else mine
    pixel, within = own // plan.warp_words, own % plan.warp_words
    column = bind("column", block.warp_col * plan.warp_words + within)
    flips = block.slice_ * plan.table_words + (plan.table_words - plan.flip_words) + column
    flip = bind("flip", T.cast(block.parameters[flips], "uint32"))
    row, col = block.tile_pixel(pixel)
    p, q = bind("p", block.row0 + row), bind("q", block.col0 + col)
    word = bind("word", block.slice_ * plan.words + column)
    conditions = [p < w.p, q < w.q]
    if items % LANES:
        conditions.append(mine < items)
    if plan.column_blocks * plan.words > plan.pixel_words:
        conditions.append(word < plan.pixel_words)
    there = _there(block, p, q, block.image)
    for into in planes:
        exchange_bytes(into, block.lane % LANES)
    with when(every(conditions)):
        for plane, into in enumerate(planes):
            value = into[0] ^ flip
            found = value if there is True else T.Select(there, value, T.uint32(0))
            T.buffer_store(block.output, found, [plan.output_word(block.group, p, q, word, plane, block.image)])


def _there(block: Block, p: Any, q: Any, image: Any) -> Any:
    """Whether an image exists or is padding of the last group; True if all exist."""
    true, view = block.plan.workload, block.plan.view
    if true.n % BATCH_GROUP == 0:
        return True
    group = block.group if view == true else (p * view.q + q) // (true.h * true.w)
    return bind("there", group * BATCH_GROUP + image < true.n)


# ---- sums ------------------------------------------------------------------------------------------------------------


def _store_sums(block: Block, item: Item) -> None:
    """Raw sums: the lane's 8 neighbouring channels of an item."""
    plan, w = block.plan, block.plan.view
    column = block.warp_col * plan.warp_words + item.word
    channel = bind("channel", (block.slice_ * plan.words + column) * WORD_BITS + block.lane % LANES * LANE_CHANNELS)
    row, col = block.tile_pixel(item.pixel)
    p, q = bind("p", block.row0 + row), bind("q", block.col0 + col)
    conditions = [p < w.p, q < w.q]
    if plan.column_blocks * plan.columns > w.padded_filters:
        conditions.append(channel < w.padded_filters)
    table = registers("table", LANE_CHANNELS)
    first = block.slice_ * plan.slice_words + plan.iterations * plan.weight_words + item.entry
    first = first + column * WORD_BITS + block.lane % LANES * 4
    with when(every(conditions)):
        for half in range(2):
            op.load16(table, half * 4, block.weights.ptr_to([first + half * 16]), "weights")
        out = bind("out", plan.output_sum(block.group, p, q, channel, block.image))
        with loop("k", LANE_CHANNELS) as k:
            total = T.cast(_varying(block, item, k) + table[k], "int32")
            T.buffer_store(block.output, total >> T.int32(1) if plan.counts.scale == 2 else total, [out + k])


# ---- channels that only fill up --------------------------------------------------------------------------------------


def _fill_channels(block: Block) -> None:
    """The last block of channels also writes zeros for channels that no block computes."""
    plan = block.plan
    sums = plan.output == SUMS
    each = plan.missing_sums if sums else plan.missing_words * plan.output_planes
    if not each:
        return
    count = plan.config.pixels * BATCH_GROUP * each
    w, width = plan.view, plan.tile[1]
    turns = ceil_div(count, plan.threads)
    with when(block.slice_ == plan.column_blocks - 1), loop("turn", turns, T.serial) as turn:
        index = bind("index", turn * plan.threads + block.thread)
        which, image, pixel = index % each, index // each % BATCH_GROUP, index // (each * BATCH_GROUP)
        p, q = bind("p", block.row0 + pixel // width), bind("q", block.col0 + pixel % width)
        with when(T.And(index < count, T.And(p < w.p, q < w.q))):
            if sums:
                channel = plan.column_blocks * plan.columns + which
                T.buffer_store(block.output, T.int32(0), [plan.output_sum(block.group, p, q, channel, image)])
            else:
                word = plan.column_blocks * plan.words + which // plan.output_planes
                place = plan.output_word(block.group, p, q, word, which % plan.output_planes, image)
                T.buffer_store(block.output, T.uint32(0), [place])

"""Global memory to the ring: input rows are read once, unpacked to signed bytes and stored for wgmma.

A part is one staged row of one channel group. 16 bytes of memory are 32 channels of one image's pixel; ``w << 4`` and
``w``, masked with 0xF0, are its even and odd channels times 16: the two halves of K. A block of 8 images so becomes
256 bytes of shared memory, two core matrices of 8 rows by 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.tirx.emit import bind, every, loop, registers, when
from subbyte.kernel.tirx.multiply import LOW_NIBBLES
from subbyte.kernel.tirx.warpgroup import instructions as op
from subbyte.kernel.tirx.warpgroup.block import Block
from subbyte.schedule.warpgroup_memory import PIXEL_BYTES
from subbyte.schedule.warpgroup_plan import WarpgroupPlan

PIECE = 16
"""Bytes of one shared-memory store."""


@dataclass
class Columns:
    """Loaded columns of the block: the first staged column of its tile, how many lie left of the image, how many are
    loaded (None: all that the plan counts)."""

    tile: Any
    left: Any
    count: Any


def columns(block: Block) -> Columns:
    """The loaded columns of this block."""
    plan = block.plan
    if plan.x_tiles == 1:
        return Columns(0, plan.left_zeros, None)
    tile = bind("tile_column", block.tile_x * (plan.width_covered * plan.cols.pixel_step))
    left = bind("left", T.Select(block.tile_x == 0, T.int32(plan.left_zeros), T.int32(0)))
    reached = T.min(T.int32(plan.columns_read), plan.col_range[1] + 1 - tile)
    return Columns(tile, left, bind("columns", reached - left))


def row_registers(block: Block, name: str) -> Any:
    """Registers for one producer thread's share of a part."""
    return registers(name, 4 * block.plan.copies)


def load_part(block: Block, where: Columns, held: Any, part: Any, place: int = 0) -> None:
    """Read a part into registers, ``place`` the first of them."""
    plan, w = block.plan, block.plan.workload
    staged, group, inside = part_place(block, part)
    channel_group, tap_row, tap_col = plan.tap_of(group)
    y = bind("y", staged * plan.rows.unit + tap_row * w.dilation - w.pad)
    x0 = bind("x0", (where.tile + where.left) * plan.cols.unit + tap_col * w.dilation - w.pad)
    if plan.lowered:
        inside = bind("inside", T.And(y >= 0, y < w.h))
    channel0 = (block.rank * plan.config.channel_groups + channel_group) * plan.channels
    origin = ((y * plan.input_size[1] + x0) * w.channel_blocks + channel0) * plan.block_words
    pixels = w.h * w.w
    image = block.member % 8 * plan.image_words(pixels, w.channel_blocks)
    source = bind("source", block.group * (pixels * w.channel_blocks * 32) + origin + image)
    count = where.count
    if plan.config.joined:
        inside = None  # in place of pixels behind the last one that one comes: no condition, and so no local memory
    elif plan.flat and plan.flat_pixels % plan.width_covered:
        count = bind("columns", T.min(T.int32(plan.width_covered), plan.flat_pixels - y * plan.width_covered))
    row_words = plan.rows.unit * plan.input_size[1] * w.channel_blocks * plan.block_words
    rows = _rows(block, part)
    for row, turn in product(range(plan.part_rows), range(plan.row_copies)):
        block_index, column = plan.copy_place(turn, block.member // 8)
        offset = _offset(plan, block_index, column)
        if plan.config.flatten or plan.config.joined:
            pixel = y * plan.width_covered + column
            if plan.config.joined:
                pixel = bind("pixel", T.min(pixel, plan.flat_pixels - 1))
            pixel = (strided_pixel(plan, pixel) if plan.config.flatten else pixel) - y * plan.width_covered
            offset = (pixel * w.channel_blocks + block_index) * plan.block_words
        pointer = block.activations.ptr_to([source + offset + rows[row] * row_words if row else source + offset])
        conditions = [] if inside is None else [inside]
        if plan.lowered:
            x = x0 + column * plan.cols.unit
            conditions += [x >= 0, x < w.w]
        if not exact(block, turn, count):
            conditions.append(column < (loaded(plan) if count is None else count))
        first = place + 4 * (row * plan.row_copies + turn)
        if not conditions:
            op.load16(held, first, pointer, "activations")
            continue
        if inside is not None:
            for i in range(4):
                T.buffer_store(held, T.uint32(0), [first + i])
        with when(every(conditions)):
            op.load16(held, first, pointer, "activations")


def strided_pixel(plan: WarpgroupPlan, output: Any) -> Any:
    """Input pixel that a 1 x 1 kernel with a stride reads for an output pixel, both counted through all rows."""
    w = plan.workload
    factor, shift = plan.row_division
    row = T.cast((T.cast(output, "uint32") * T.uint32(factor)) >> T.uint32(shift), "int32") if factor else output // w.q
    return (output + row * (w.w - w.q)) * w.stride


def store_part(block: Block, where: Columns, held: Any, part: Any) -> None:
    """Unpack a part from registers into its slot, and say that it is there."""
    slot = bind("slot", block.slot(part))
    for row in range(block.plan.part_rows):
        unpack_part(block, where, held, slot, row=row)
    op.async_fence()
    op.emit(T.cuda.warp_sync())
    block.arrive(block.full(slot))


def unpack_part(block: Block, where: Columns, held: Any, slot: Any, place: int = 0, row: int = 0) -> None:
    """Unpack a row of a part from registers, ``place`` the part's first, into a slot."""
    plan = block.plan
    image = block.member % 8
    low, high = image * PIECE, image * PIECE + 8 * PIECE
    if plan.config.swizzle:
        swapped = image // 4 * PIECE
        low, high = image * 2 * PIECE + swapped, image * 2 * PIECE + PIECE - swapped
    limit = loaded(plan) if where.count is None else where.count
    start = bind("start", block.slot_address(slot) + T.cast(where.left * plan.column_bytes, "uint32"))
    for turn in range(plan.row_copies):
        block_index, column = plan.copy_place(turn, block.member // 8)
        pixel = (block_index * (plan.pitch * plan.config.image_groups) + column) * PIXEL_BYTES
        pixel = pixel + row * plan.row_bytes if row else pixel
        words = [held[place + 4 * (row * plan.row_copies + turn) + i] for i in range(4)]
        with when(exact(block, turn, where.count) or column < limit):
            even = [(word << T.uint32(4)) & T.uint32(LOW_NIBBLES) for word in words]
            op.store_shared16(start + T.cast(pixel + low, "uint32"), even)
            op.store_shared16(start + T.cast(pixel + high, "uint32"), [word & T.uint32(LOW_NIBBLES) for word in words])


def load_first(block: Block, where: Columns, held: Any, following: Any) -> None:
    """Read the first parts: one by every warpgroup, and another one by every producer, unless it is late."""
    consumers, producers = block.plan.config.consumers, block.plan.config.producers
    late = [block.warpgroup < consumers] if block.plan.config.producer_late else []
    with when(every([block.warpgroup < block.parts, *late])):
        load_part(block, where, held, block.warpgroup)
    if following is None or late:
        return
    if producers == 1:
        with when(T.And(block.warpgroup == consumers, consumers + 1 < block.parts)):
            load_part(block, where, following, consumers + 1)
        return
    with when(T.And(block.warpgroup >= consumers, block.warpgroup + producers < block.parts)):
        load_part(block, where, following, block.warpgroup + producers)


def produce(block: Block, where: Columns, held: Any, other: Any, behind_first: Callable[[], None]) -> None:
    """A producer warpgroup: part after part, the next ones on their way while one is stored; two take the parts in
    turns. ``behind_first`` emits what is less urgent than the first part."""
    consumers, apart = block.plan.config.consumers, block.plan.config.producers
    first = consumers if apart == 1 else block.warpgroup
    late = block.plan.config.producer_late
    waits = late or block.plan.config.ring <= consumers  # for consumers, which may need what is less urgent
    with when(waits or block.parts <= first):
        behind_first()
    if late:
        _load_own(block, where, held, other)
    step = apart if other is None else 2 * apart
    turns = bind("turns", (T.max(block.parts - first, 0) + step - 1) // step)
    with loop("turn", turns, T.serial) as turn:
        part = bind("part", first + turn * step)
        _put(block, where, held, part)
        if not waits:
            with when(turn == 0):
                behind_first()
        with when(part + step < block.parts):
            load_part(block, where, held, part + step)
        if other is not None:
            with when(part + apart < block.parts):
                _put(block, where, other, part + apart)
            with when(part + 3 * apart < block.parts):
                load_part(block, where, other, part + 3 * apart)


def _load_own(block: Block, where: Columns, held: Any, following: Any) -> None:
    """The first parts of a late producer, which it asks for when those of the consumers have come."""
    consumers = block.plan.config.consumers
    for part in range(consumers):
        with when(part < block.parts):
            block.wait(block.full(T.uint32(part)), T.uint32(0))
    for part, words in enumerate([held] if following is None else [held, following], consumers):
        with when(part < block.parts):
            load_part(block, where, words, part)


def zero_padding(block: Block, where: Columns) -> None:
    """Fill the columns of the ring that lie left and right of the image with zeros, for good.

    Every warpgroup does it for the slots that it is the first to fill: the fence and the arrival behind its first part
    say that the zeros are there too.
    """
    config = block.plan.config
    if config.producers > 1:
        _zero_slots(block, where, _first_filled(block))
        return
    first = bind("first_slot", T.min(block.warpgroup, config.consumers))
    slots = T.Select(block.warpgroup < config.consumers, T.int32(1), T.int32(config.ring - config.consumers))
    _zero_slots(
        block, where, Share(block.member, 128, first, slots, block.warpgroup == min(config.ring - 1, config.consumers))
    )


def _first_filled(block: Block) -> Share:
    """The slots that a warpgroup is the first to fill, where producers take turns."""
    config = block.plan.config
    ring, consumers, producers = config.ring, config.consumers, config.producers
    behind = T.max(ring - block.warpgroup + (producers - 1), 0) // producers
    slots = T.Select(block.warpgroup < consumers, T.int32(1), behind)
    last = ring - 1 if ring <= consumers else consumers + (ring - 1 - consumers) % producers
    return Share(block.member, 128, block.warpgroup, slots, block.warpgroup == last, producers)


def zero_columns(block: Block, where: Columns) -> None:
    """The same for all slots, by the loading warpgroups together."""
    config = block.plan.config
    thread = block.thread - 128 * config.consumers
    _zero_slots(block, where, Share(thread, 128 * config.at_once, 0, config.ring, True))


@dataclass
class Share:
    """Who fills what with zeros: the thread among ``threads``, the slots, whether the end of the ring is theirs, and
    how far apart the slots lie."""

    thread: Any
    threads: int
    first: Any
    slots: Any
    last: Any
    apart: int = 1


def _zero_slots(block: Block, where: Columns, share: Share) -> None:
    plan = block.plan
    columns = plan.left_zeros + plan.right_zeros
    if columns:
        pieces = plan.part_rows * plan.channels * columns * (plan.column_bytes // PIECE)
        _each(share, pieces, lambda slot, i: _zero(block, where, slot, i))
    pieces = plan.slack_columns * (plan.column_bytes // PIECE)
    behind = plan.slot_bytes - (plan.slack_columns * plan.column_bytes if plan.separate else 0)

    def zero_behind(slot: Any, piece: Any) -> None:
        _store_zeros(block, slot * plan.slot_bytes + behind + piece * PIECE)

    if pieces and plan.separate:
        _each(share, pieces, zero_behind)
    elif pieces:
        with when(share.last):
            _each(replace(share, first=plan.config.ring - 1, slots=1), pieces, zero_behind)


def part_place(block: Block, part: Any) -> tuple[Any, Any, Any]:
    """Staged row, group of the row's parts, and whether the row is in the image (None: always)."""
    plan, config = block.plan, block.plan.config
    if config.at_once or config.bulk_weights:
        staged = bind("staged", block.first_row * plan.rows.pixel_step + part)
        low, high = plan.row_range
        return staged, 0, bind("inside", T.And(staged >= low, staged <= high))
    if plan.keep_rows:
        return block.first_staged + part // config.channel_groups, part % config.channel_groups, None
    low, high = plan.row_range
    first = _pass_row(block, part) * plan.rows.pixel_step
    if config.pass_parts:
        return bind("staged", T.max(first, low)), part % plan.groups, None
    staged = bind("staged", first + part % plan.window)
    inside = bind("inside", T.And(staged >= low, staged <= high))
    return staged, part // plan.window % plan.groups, inside


def _pass_row(block: Block, part: Any) -> Any:
    """First output row of the pass that a part is brought for, where no rows are kept."""
    plan = block.plan
    row_pass = part // (plan.group_parts * plan.groups * plan.config.filter_passes)
    return block.first_row + row_pass * plan.rows_together


def _rows(block: Block, part: Any) -> list[Any]:
    """What each row of a part is counted from its first one. Where a part has fewer than its slot has room for, its
    last one comes again: no condition, and so no local memory."""
    plan, low, high = block.plan, *block.plan.row_range
    found: list[Any] = list(range(plan.part_rows))
    if plan.part_rows > plan.least_part_rows:
        begin, step = bind("begin", _pass_row(block, part)), plan.rows.pixel_step
        behind = T.min(begin + plan.rows_together, block.end_row)
        last = T.min((behind - 1) * step + (plan.tap_rows - 1) * plan.rows.tap_step, high)
        most = bind("last_row", last - T.max(begin * step, low))
        found[plan.least_part_rows :] = [T.min(row, most) for row in found[plan.least_part_rows :]]
    return found


def loaded(plan: WarpgroupPlan) -> int:
    """Pixels of a part and 32-channel block that come from memory: those of every group of images."""
    return plan.columns_loaded * plan.config.image_groups


def _offset(plan: WarpgroupPlan, block_index: Any, column: Any) -> Any:
    """Words from the first pixel of a part to a loaded one, which the groups of images take in turn."""
    w, groups = plan.workload, plan.config.image_groups
    group = 0
    if groups > 1:
        column, group = column // groups, column % groups * (w.h * w.w * w.channel_blocks * 32)
    return (column * (plan.cols.unit * w.channel_blocks) + block_index) * plan.block_words + group


def exact(block: Block, turn: int, count: Any) -> bool:
    """Every thread has a column to load in this turn."""
    plan = block.plan
    if count is not None:
        return False
    if plan.channels % 16 == 0 or 16 % plan.channels == 0:
        return bool(plan.copy_place(turn, 15)[1] < loaded(plan))
    return (turn + 1) * 16 <= loaded(plan) * plan.channels


def _put(block: Block, where: Columns, held: Any, part: Any) -> None:
    with when(part >= block.plan.config.ring):
        block.wait(block.empty(block.slot(part)), block.turn(part) ^ T.uint32(1))
    store_part(block, where, held, part)


def _each(share: Share, pieces: int, emit: Callable[[Any, Any], None]) -> None:
    """``emit(slot, piece)`` for all pieces of the slots of a share."""
    index = registers("piece", 1, "int32")
    T.buffer_store(index, share.thread, [0])
    count = bind("pieces", share.slots * pieces)
    with T.While(index[0] < count):
        emit(share.first + index[0] // pieces * share.apart, index[0] % pieces)
        T.buffer_store(index, index[0] + share.threads, [0])


def _zero(block: Block, where: Columns, slot: Any, index: Any) -> None:
    plan = block.plan
    left, right = plan.left_zeros, plan.right_zeros
    pieces = plan.column_bytes // PIECE
    plane, place = index // ((left + right) * pieces), index // pieces % (left + right)
    column = place
    if right:
        column = place + T.Select(place >= left, T.int32(plan.pitch - left - right), T.int32(0))
    outside: Any = True
    if plan.x_tiles > 1:
        low, high = plan.col_range
        outside = T.Or(where.tile + column < low, where.tile + column > high)
    with when(outside):
        start = slot * plan.slot_bytes + plane * (plan.pitch * plan.column_bytes)
        _store_zeros(block, start + column * plan.column_bytes + index % pieces * PIECE)


def _store_zeros(block: Block, offset: Any) -> None:
    op.store_shared16(block.base + T.cast(offset, "uint32"), [T.uint32(0)] * 4)

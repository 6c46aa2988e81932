"""Global memory to the ring: input rows are read once, unpacked to signed bytes and stored for wgmma.

A part is one staged row of one channel group. 16 bytes of memory are 32 channels of one image's pixel; ``w << 4`` and
``w``, masked with 0xF0, are its even and odd channels times 16: the two halves of K. A block of 8 images so becomes
256 bytes of shared memory, two core matrices of 8 rows by 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.wgmma.emit import instructions as op
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.rows import PIECE, Columns
from subbyte.families.wgmma.memory import PIXEL_BYTES
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.tirx.emit import bind, every, loop, registers, when


def load_part(block: Block, where: Columns, held: Any, part: Any, place: int = 0, first: bool = False) -> None:
    """Read a part into registers, ``place`` the first of them; ``first``: a part that is asked for at the start."""
    plan, w = block.plan, block.plan.workload
    staged, group, inside = part_place(block, part)
    channel_group, tap_row, tap_col = plan.tap_of(group)
    y = bind("y", staged * plan.rows.unit + tap_row * w.dilation - w.pad)
    x0 = bind("x0", (where.tile + where.left) * plan.cols.unit + tap_col * w.dilation - w.pad)
    if plan.lowered:
        inside = bind("inside", T.And(y >= 0, y < w.h))
    channel0 = (block.rank * plan.knobs.channel_groups + channel_group) * plan.channels
    origin = ((y * plan.input_size[1] + x0) * w.channel_blocks + channel0) * plan.block_words
    pixels = w.h * w.w
    image = block.member % 8 * plan.image_words(pixels, w.channel_blocks)
    source = bind("source", block.group * (pixels * w.channel_blocks * 32) + origin + image)
    count = where.count
    if plan.knobs.joined:
        inside = None  # in place of pixels behind the last one that one comes: no condition, and so no local memory
    elif plan.flat and plan.flat_pixels % plan.width_covered:
        count = bind("columns", T.min(T.int32(plan.width_covered), plan.flat_pixels - y * plan.width_covered))
    row_words = plan.rows.unit * plan.input_size[1] * w.channel_blocks * plan.block_words
    rows = _rows(block, part)
    lean = first and plan.knobs.lean_start and plan.evenly_apart
    if lean:
        here = registers("source_here", 1, "int64")
        T.buffer_store(here, T.cast(source + _offset(plan, *plan.copy_place(0, block.member // 8)), "int64"), [0])
    for row, turn in product(range(plan.part_rows), range(plan.row_copies)):
        block_index, column = plan.copy_place(turn, block.member // 8)
        offset = _offset(plan, block_index, column)
        if plan.knobs.flatten or plan.knobs.joined:
            pixel = y * plan.width_covered + column
            if plan.knobs.joined:
                pixel = bind("pixel", T.min(pixel, plan.flat_pixels - 1))
            pixel = (strided_pixel(plan, pixel) if plan.flat_strided else pixel) - y * plan.width_covered
            offset = (pixel * w.channel_blocks + block_index) * plan.block_words
        if lean:
            words = T.int64(_offset(plan, *plan.copy_place(turn, 0)))
            more = T.cast(rows[row] * row_words, "int64") if row else T.int64(0)
            pointer = block.activations.ptr_to([here[0] + more + words])
        else:
            pointer = block.activations.ptr_to([source + offset + rows[row] * row_words if row else source + offset])
        conditions = [] if inside is None else [inside]
        if plan.lowered:
            x = x0 + column * plan.cols.unit
            conditions += [x >= 0, x < w.w]
        if not exact(block, turn, count):
            conditions.append(column < (loaded(plan) if count is None else count))
        target = place + 4 * (row * plan.row_copies + turn)
        if not conditions:
            op.load16(held, target, pointer, "activations")
            continue
        if inside is not None:
            for i in range(4):
                T.buffer_store(held, T.uint32(0), [target + i])
        with when(every(conditions)):
            op.load16(held, target, pointer, "activations")


def strided_pixel(plan: WgmmaPlan, output: Any) -> Any:
    """Input pixel that a 1 x 1 kernel with a stride reads for an output pixel, both counted through all rows."""
    w = plan.workload
    factor, shift = plan.row_division
    row = T.cast((T.cast(output, "uint32") * T.uint32(factor)) >> T.uint32(shift), "int32") if factor else output // w.q
    return (output + row * (w.w - w.q)) * w.stride


def store_part(block: Block, where: Columns, held: Any, part: Any, arrive: bool = True) -> None:
    """Unpack a part from registers into its slot, and say that it is there."""
    slot = bind("slot", block.slot(part))
    for row in range(block.plan.part_rows):
        unpack_part(block, where, held, slot, row=row)
    op.async_fence()
    op.emit(T.cuda.warp_sync())
    if arrive:
        block.arrive(block.full(slot))


def unpack_part(block: Block, where: Columns, held: Any, slot: Any, place: int = 0, row: int = 0) -> None:
    """Unpack a row of a part from registers, ``place`` the part's first, into a slot."""
    plan = block.plan
    image = block.member % 8
    low, high = image * PIECE, image * PIECE + 8 * PIECE
    limit = loaded(plan) if where.count is None else where.count
    start = bind("start", block.slot_address(slot) + T.cast(where.left * plan.column_bytes, "uint32"))
    lean = plan.knobs.lean_start and plan.evenly_apart
    if lean:
        mine = _pixel(plan, *plan.copy_place(0, block.member // 8)) + low
        start, low, high = bind("here", start + T.cast(mine, "uint32")), 0, 8 * PIECE
    for turn in range(plan.row_copies):
        block_index, column = plan.copy_place(turn, block.member // 8)
        pixel = _pixel(plan, *(plan.copy_place(turn, 0) if lean else (block_index, column)))
        pixel = pixel + row * plan.row_bytes if row else pixel
        words = [held[place + 4 * (row * plan.row_copies + turn) + i] for i in range(4)]
        with when(exact(block, turn, where.count) or column < limit):
            even = [(word << T.uint32(4)) & T.uint32(LOW_NIBBLES) for word in words]
            op.store_shared16(start + T.cast(pixel + low, "uint32"), even)
            op.store_shared16(start + T.cast(pixel + high, "uint32"), [word & T.uint32(LOW_NIBBLES) for word in words])


def _pixel(plan: WgmmaPlan, block_index: Any, column: Any) -> Any:
    """Byte of a pixel of a part's row within its slot."""
    return (block_index * (plan.pitch * plan.knobs.image_groups) + column) * PIXEL_BYTES


def load_first(block: Block, where: Columns, held: Any, following: Any) -> None:
    """Read the first parts: one by every warpgroup, and another one by every producer, unless it is late."""
    consumers, late = block.plan.knobs.consumers, block.plan.knobs.producer_late
    bring = [block.warpgroup < consumers] if late else []
    with when(every([block.warpgroup < block.parts, *bring])):
        load_part(block, where, held, block.warpgroup, first=True)
    if not late and not block.plan.knobs.lean_start:
        load_second(block, where, following)


def load_second(block: Block, where: Columns, following: Any) -> None:
    """Read the second of every producer's first parts, where it has two on their way."""
    consumers, producers = block.plan.knobs.consumers, block.plan.knobs.producers
    if following is None:
        return
    if producers == 1:
        with when(T.And(block.warpgroup == consumers, consumers + 1 < block.parts)):
            load_part(block, where, following, consumers + 1, first=True)
        return
    with when(T.And(block.warpgroup >= consumers, block.warpgroup + producers < block.parts)):
        load_part(block, where, following, block.warpgroup + producers, first=True)


def produce(block: Block, where: Columns, held: Any, other: Any, behind_first: Callable[[], None]) -> None:
    """A producer warpgroup: part after part, the next ones on their way while one is stored; two take the parts in
    turns. ``behind_first`` emits what is less urgent than the first part."""
    consumers, apart = block.plan.knobs.consumers, block.plan.knobs.producers
    first = consumers if apart == 1 else block.warpgroup
    late = block.plan.knobs.producer_late
    waits = late or block.plan.stages <= consumers  # for consumers, which may need what is less urgent
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
    consumers = block.plan.knobs.consumers
    for part in range(consumers):
        with when(part < block.parts):
            block.wait(block.full(T.uint32(part)), T.uint32(0))
    for part, words in enumerate([held] if following is None else [held, following], consumers):
        with when(part < block.parts):
            load_part(block, where, words, part)


def part_place(block: Block, part: Any) -> tuple[Any, Any, Any]:
    """Staged row, group of the row's parts, and whether the row is in the image (None: always)."""
    plan, config = block.plan, block.plan.knobs
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
    row_pass = part // (plan.group_parts * plan.groups * plan.knobs.m_iterations)
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


def loaded(plan: WgmmaPlan) -> int:
    """Pixels of a part and 32-channel block that come from memory: those of every group of images."""
    return plan.columns_loaded * plan.knobs.image_groups


def _offset(plan: WgmmaPlan, block_index: Any, column: Any) -> Any:
    """Words from the first pixel of a part to a loaded one, which the groups of images take in turn."""
    w, groups = plan.workload, plan.knobs.image_groups
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
    with when(part >= block.plan.stages):
        block.wait(block.empty(block.slot(part)), block.turn(part) ^ T.uint32(1))
    store_part(block, where, held, part)

"""Global memory to the pipeline: input rows are read once, unpacked to signed bytes and stored for wgmma.

A stage is one staged row of one channel group. 16 bytes of memory are 32 channels of one pixel of one image; ``w << 4``
and ``w``, masked with 0xF0, are its even and odd channels times 16: the two halves of K. A block of 8 images thus
becomes 256 bytes of shared memory, two core matrices of 8 rows by 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.rows import PIECE, Columns, staged_pixel
from subbyte.families.wgmma.memory import COPY_BYTES
from subbyte.families.wgmma.plan import READ_TOGETHER, WgmmaPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when


def load_stage(
    block: Block, where: Columns, held: Any, stage: Any, place: int = 0, first: bool = False,
    copied: Callable[[int, int], Any] | None = None,
) -> None:  # fmt: skip
    """Read a stage into registers, starting with ``place``, or by asynchronous copies into shared memory, at word
    ``copied(row, load)``; ``first``: whether the stage is loaded at the start."""
    plan, w = block.plan, block.plan.workload
    staged, group, inside = stage_place(block, stage)
    channel_group, tap_row, tap_col = plan.tap_of(group)
    y = bind("y", staged * plan.rows.unit + tap_row * w.dilation - w.pad)
    x0 = bind("x0", (where.tile + where.left) * plan.cols.unit + tap_col * w.dilation - w.pad)
    if plan.lowered or plan.pads_with_code:
        inside = bind("inside", T.And(y >= 0, y < w.h))
    channel0 = (block.rank * plan.knobs.channel_groups + channel_group) * plan.loaded_blocks
    origin = ((y * plan.input_size[1] + x0) * w.channel_blocks + channel0) * plan.block_words
    pixels = w.h * w.w
    image = block.member % 8 * plan.image_words(pixels, w.channel_blocks)
    source = bind("source", block.group * (pixels * w.channel_blocks * 32) + origin + image)
    count = where.count
    if plan.knobs.flat_batch:
        inside = None  # pixels after the last one are replaced by it: no condition, and so no local memory
    elif plan.flat and plan.flat_pixels % plan.width_covered:
        count = bind("columns", T.min(T.int32(plan.width_covered), plan.flat_pixels - y * plan.width_covered))
    row_words = plan.rows.unit * plan.input_size[1] * w.channel_blocks * plan.block_words
    rows = _rows(block, stage)
    lean = first and plan.knobs.lean_start and plan.evenly_apart
    if lean:
        here = registers("source_here", 1, "int64")
        T.buffer_store(here, T.cast(source + _offset(plan, *plan.copy_place(0, block.member // 8)), "int64"), [0])
    last_block = w.channel_blocks - 1 - channel0
    for row, load in product(range(plan.stage_rows), range(plan.row_copies)):
        block_index, column = plan.copy_place(load, block.member // 8)
        if plan.odd_part:
            block_index = T.min(block_index, last_block)
        offset = _offset(plan, block_index, column)
        if plan.knobs.flatten or plan.knobs.flat_batch:
            pixel = y * plan.width_covered + column
            if plan.knobs.flat_batch:
                pixel = bind("pixel", T.min(pixel, plan.flat_pixels - 1))
            pixel = (strided_pixel(plan, pixel) if plan.flat_strided else pixel) - y * plan.width_covered
            offset = (pixel * w.channel_blocks + block_index) * plan.block_words
        if lean:
            words = T.int64(_offset(plan, *plan.copy_place(load, 0)))
            more = T.cast(rows[row] * row_words, "int64") if row else T.int64(0)
            pointer = block.activations.ptr_to([here[0] + more + words])
        else:
            pointer = block.activations.ptr_to([source + offset + rows[row] * row_words if row else source + offset])
        filled = copied is not None and plan.pads_with_code  # a copy can only fill with zeros
        conditions = [] if inside is None or (copied is not None and not filled) else [inside]
        if plan.lowered:
            x = x0 + column * plan.cols.unit
            conditions += [x >= 0, x < w.w]
        ragged = plan.direct and count is not where.count  # pixels after the last one are zeros, which are not stored
        limit = where.count if ragged else count
        if not exact(block, load, limit):
            conditions.append(column < (loaded(plan) if limit is None else limit))
        if copied is not None:
            word = copied(row, load)
            there = [column < count] if ragged else [] if inside is None or filled else [inside]
            valid = T.Select(every(there), T.uint32(16), T.uint32(0)) if there else None
            with when(every(conditions) if conditions else True):
                op.copy16(block.shared.ptr_to([word]), pointer, valid)
            if filled:
                with when(every([T.Not(inside), *conditions[1:]])):
                    op.store_shared16(block.base + T.cast(word * 4, "uint32"), [T.uint32(plan.fill)] * 4)
            continue
        target = place + 4 * (row * plan.row_copies + load)
        if not conditions:
            op.load16(held, target, pointer, "activations")
            continue
        if inside is not None:
            for i in range(4):
                T.buffer_store(held, T.uint32(plan.fill), [target + i])
        with when(every(conditions)):
            op.load16(held, target, pointer, "activations")


def strided_pixel(plan: WgmmaPlan, output: Any) -> Any:
    """The input pixel that a strided 1 x 1 kernel reads for an output pixel, both counted over all rows."""
    w = plan.workload
    factor, shift = plan.row_division
    row = T.cast((T.cast(output, "uint32") * T.uint32(factor)) >> T.uint32(shift), "int32") if factor else output // w.q
    return (output + row * (w.w - w.q)) * w.stride


def store_stage(block: Block, where: Columns, held: Any, stage: Any, arrive: bool = True, copied: Any = None) -> None:
    """Unpack a stage from registers, or from the thread's places starting at word ``copied``, into its buffer, and
    signal that it is full."""
    buffer = bind("slot", block.buffer(stage))
    for row in range(block.plan.stage_rows):
        unpack_stage(block, where, held, buffer, row=row, copied=copied)
    hand_over(block, buffer, arrive)


def hand_over(block: Block, buffer: Any, arrive: bool = True) -> None:
    """Make what this warp has stored into a stage buffer visible to wgmma, and signal it."""
    op.async_fence()
    op.emit(T.cuda.warp_sync())
    if arrive:
        block.arrive(block.full(buffer))


def unpack_stage(
    block: Block, where: Columns, held: Any, buffer: Any, place: int = 0, row: int = 0, copied: Any = None
) -> None:
    """Unpack a row of a stage from registers, starting with the stage's ``place``, into a stage buffer; rows in flight
    in shared memory are read back a few loads at a time."""
    plan = block.plan
    image = block.member % 8
    low, high = image * PIECE, image * PIECE + 8 * PIECE
    limit = loaded(plan) if where.count is None else where.count
    start = bind("start", block.buffer_address(buffer) + T.cast(where.left * plan.column_step, "uint32"))
    lean = plan.knobs.lean_start and plan.evenly_apart
    if lean:
        mine = staged_pixel(plan, *plan.copy_place(0, block.member // 8)) + low
        start, low, high = bind("here", start + T.cast(mine, "uint32")), 0, 8 * PIECE
    for load in range(plan.row_copies):
        if copied is not None and load % READ_TOGETHER == 0:
            for one in range(load, min(load + READ_TOGETHER, plan.row_copies)):
                word = copied + (row * plan.row_copies + one) * (COPY_BYTES // 4)
                address = block.base + T.cast(word * 4, "uint32")
                with when(exact(block, one, where.count) or plan.copy_place(one, block.member // 8)[1] < limit):
                    op.load_shared16(held, address, place + 4 * (row * plan.row_copies + one))
        block_index, column = plan.copy_place(load, block.member // 8)
        pixel = staged_pixel(plan, *(plan.copy_place(load, 0) if lean else (block_index, column)))
        pixel = pixel + row * plan.row_bytes if row else pixel
        words = [held[place + 4 * (row * plan.row_copies + load) + i] for i in range(4)]
        with when(exact(block, load, where.count) or column < limit):
            if plan.bytes_in:
                op.store_shared16(start + T.cast(pixel + low, "uint32"), words)
            else:
                even = [(word << T.uint32(4)) & T.uint32(LOW_NIBBLES) for word in words]
                odd = [word & T.uint32(LOW_NIBBLES) for word in words]
                if plan.knobs.sparse:
                    even, odd = in_order(even, odd)
                op.store_shared16(start + T.cast(pixel + low, "uint32"), even)
                op.store_shared16(start + T.cast(pixel + high, "uint32"), odd)


def in_order(even: list[Any], odd: list[Any]) -> tuple[list[Any], list[Any]]:
    """Reorder the even and odd channels of words into the first four channels of each word, and its last four: of four
    neighbouring bytes a 2:4 instruction takes two, and weights are 2:4 in neighbouring channels."""
    ordered = []
    for selector in (0x5140, 0x7362):
        words = registers("ordered", 4)
        for i in range(4):
            op.permute_bytes(words[i], even[i], odd[i], T.uint32(selector))
        ordered.append([words[i] for i in range(4)])
    return ordered[0], ordered[1]


def load_first(block: Block, where: Columns, held: Any, following: Any) -> None:
    """Read the first stages: one by every warpgroup, and another one by every producer, unless it starts late."""
    consumers, late = block.plan.knobs.consumers, block.plan.knobs.producer_late
    copying = block.plan.knobs.copies_ahead
    only = [block.warpgroup < consumers] if late or copying else []
    with when(every([block.warpgroup < block.stage_count, *only])):
        into = _into_stage(block, where, block.warpgroup) if block.plan.direct else None
        load_stage(block, where, held, block.warpgroup, first=True, copied=into)
    if copying:
        if block.plan.direct:
            op.copies_commit()  # for the consumers' stages, which they wait for
        with when(block.warpgroup == consumers), loop("ahead", copying, T.serial) as ahead:
            _copy_ahead(block, where, consumers + ahead, ahead)
    if not late and not block.plan.knobs.lean_start:
        load_second(block, where, following)


def load_second(block: Block, where: Columns, following: Any) -> None:
    """Read the second of every producer's first stages, if it has two in flight."""
    consumers, producers = block.plan.knobs.consumers, block.plan.knobs.producers
    if following is None:
        return
    if producers == 1:
        with when(T.And(block.warpgroup == consumers, consumers + 1 < block.stage_count)):
            load_stage(block, where, following, consumers + 1, first=True)
        return
    with when(T.And(block.warpgroup >= consumers, block.warpgroup + producers < block.stage_count)):
        load_stage(block, where, following, block.warpgroup + producers, first=True)


def _copied(block: Block, slot: Any) -> Any:
    """First word of a thread's places in shared memory for one of the stages in flight."""
    plan = block.plan
    stage_words = plan.copied_bytes // plan.knobs.copies_ahead // 4
    return bind("copied", plan.copied_base // 4 + slot * stage_words + block.member * 4)


def _into_place(plan: WgmmaPlan, first: Any) -> Callable[[int, int], Any]:
    """Word index in a thread's places from ``first`` on: one place per load."""
    return lambda row, load: first + (row * plan.row_copies + load) * (COPY_BYTES // 4)


def _into_stage(block: Block, where: Columns, stage: Any) -> Callable[[int, int], Any]:
    """Word index in a stage buffer: data from memory already has the layout that an instruction reads."""
    plan, unit = block.plan, block.member // 8
    buffer = T.cast(block.buffer(stage), "int32") * (plan.buffer_bytes // 4)
    first = bind("stage_at", buffer + where.left * (plan.column_step // 4) + block.member % 8 * (PIECE // 4))
    return lambda row, load: first + (row * (plan.row_bytes // 4) + staged_pixel(plan, *plan.copy_place(load, unit), 4))


def _copy_ahead(block: Block, where: Columns, stage: Any, slot: Any, reused: bool = False) -> None:
    """Start copying a stage, if it exists, as a separate group; ``reused``: its buffer may have to be released
    first."""
    plan = block.plan
    with when(stage < block.stage_count):
        if plan.direct:
            if reused:
                _wait_until_empty(block, stage)
            load_stage(block, where, None, stage, copied=_into_stage(block, where, stage))
        else:
            load_stage(block, where, None, stage, copied=_into_place(plan, _copied(block, slot)))
    op.copies_commit()


def _produce_copied(block: Block, where: Columns, held: Any, behind_first: Callable[[], None]) -> None:
    """A producer whose stages are in flight in shared memory, where each thread reads back what it copied."""
    consumers, ahead = block.plan.knobs.consumers, block.plan.knobs.copies_ahead
    waits = block.plan.stages <= consumers
    with when(waits or block.stage_count <= consumers):
        behind_first()
    with loop("turn", T.max(block.stage_count - consumers, 0), T.serial) as round_:
        stage, slot = bind("part", consumers + round_), bind("copy", round_ % ahead)
        op.copies_wait(ahead - 1)
        if block.plan.direct:
            hand_over(block, block.buffer(stage))
        else:
            _put(block, where, held, stage, _copied(block, slot))
        if not waits:
            with when(round_ == 0):
                behind_first()
        _copy_ahead(block, where, stage + ahead, slot, reused=True)


def produce(block: Block, where: Columns, held: Any, other: Any, behind_first: Callable[[], None]) -> None:
    """A producer warpgroup: stage after stage, with the next ones in flight while one is stored; two producers
    alternate. ``behind_first`` emits what is less urgent than the first stage."""
    if block.plan.knobs.copies_ahead:
        _produce_copied(block, where, held, behind_first)
        return
    consumers, apart = block.plan.knobs.consumers, block.plan.knobs.producers
    first = consumers if apart == 1 else block.warpgroup
    late = block.plan.knobs.producer_late
    waits = late or block.plan.stages <= consumers  # for consumers, which may need what is less urgent
    with when(waits or block.stage_count <= first):
        behind_first()
    if late:
        _load_own(block, where, held, other)
    step = apart if other is None else 2 * apart
    rounds = bind("turns", (T.max(block.stage_count - first, 0) + step - 1) // step)
    with loop("turn", rounds, T.serial) as round_:
        stage = bind("part", first + round_ * step)
        _put(block, where, held, stage)
        if not waits:
            with when(round_ == 0):
                behind_first()
        with when(stage + step < block.stage_count):
            load_stage(block, where, held, stage + step)
        if other is not None:
            with when(stage + apart < block.stage_count):
                _put(block, where, other, stage + apart)
            with when(stage + 3 * apart < block.stage_count):
                load_stage(block, where, other, stage + 3 * apart)


def _load_own(block: Block, where: Columns, held: Any, following: Any) -> None:
    """Load the first stages of a late producer, when those of the consumers have arrived."""
    consumers = block.plan.knobs.consumers
    for stage in range(consumers):
        with when(stage < block.stage_count):
            block.wait(block.full(T.uint32(stage)), T.uint32(0))
    for stage, words in enumerate([held] if following is None else [held, following], consumers):
        with when(stage < block.stage_count):
            load_stage(block, where, words, stage)


def stage_place(block: Block, stage: Any) -> tuple[Any, Any, Any]:
    """Staged row, group of the row's stages, and whether the row is inside the image (None: always)."""
    plan, config = block.plan, block.plan.knobs
    if plan.keep_rows:
        return block.first_staged + stage // config.channel_groups, stage % config.channel_groups, None
    low, high = plan.row_range
    first = _iteration_row(block, stage) * plan.rows.pixel_step
    if config.stage_per_iteration:
        return bind("staged", T.max(first, low)), stage % plan.groups, None
    staged = bind("staged", first + stage % plan.window)
    inside = bind("inside", T.And(staged >= low, staged <= high))
    return staged, stage // plan.window % plan.groups, inside


def _iteration_row(block: Block, stage: Any) -> Any:
    """First output row of the tile iteration for which a stage is loaded, if no rows are kept."""
    plan = block.plan
    row_iteration = stage // (plan.group_stages * plan.groups * plan.knobs.m_iterations)
    return block.first_row + row_iteration * plan.rows_together


def _rows(block: Block, stage: Any) -> list[Any]:
    """Offset of each row of a stage from its first one. If a stage has fewer rows than its buffer has room for,
    its last one is loaded again: no condition, and so no local memory."""
    plan, low, high = block.plan, *block.plan.row_range
    found: list[Any] = list(range(plan.stage_rows))
    if plan.stage_rows > plan.least_stage_rows:
        begin, step = bind("begin", _iteration_row(block, stage)), plan.rows.pixel_step
        behind = T.min(begin + plan.rows_together, block.end_row)
        last = T.min((behind - 1) * step + (plan.tap_rows - 1) * plan.rows.tap_step, high)
        most = bind("last_row", last - T.max(begin * step, low))
        found[plan.least_stage_rows :] = [T.min(row, most) for row in found[plan.least_stage_rows :]]
    return found


def loaded(plan: WgmmaPlan) -> int:
    """Pixels of a stage and 32-channel block that come from memory: those of every group of images."""
    return plan.columns_loaded * plan.knobs.image_groups


def _offset(plan: WgmmaPlan, block_index: Any, column: Any) -> Any:
    """Words from the first pixel of a stage to a loaded one; the groups of images alternate."""
    w, groups = plan.workload, plan.knobs.image_groups
    group = 0
    if groups > 1:
        column, group = column // groups, column % groups * (w.h * w.w * w.channel_blocks * 32)
    return (column * (plan.cols.unit * w.channel_blocks) + block_index) * plan.block_words + group


def exact(block: Block, load: int, count: Any) -> bool:
    """Whether every thread has a column for this load."""
    plan = block.plan
    if count is not None:
        return False
    if plan.loaded_blocks % 16 == 0 or 16 % plan.loaded_blocks == 0:
        return bool(plan.copy_place(load, 15)[1] < loaded(plan))
    return (load + 1) * 16 <= loaded(plan) * plan.loaded_blocks


def _put(block: Block, where: Columns, held: Any, stage: Any, copied: Any = None) -> None:
    _wait_until_empty(block, stage)
    store_stage(block, where, held, stage, copied=copied)


def _wait_until_empty(block: Block, stage: Any) -> None:
    with when(stage >= block.plan.stages):
        block.wait(block.empty(block.buffer(stage)), block.phase(stage) ^ T.uint32(1))

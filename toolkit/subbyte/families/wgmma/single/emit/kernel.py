"""A block that makes a single tile iteration and gets its weights by bulk copies (``multicast``).

What matters here is the number of instructions before the first multiplication: a warp that has its scheduler nearly to
itself takes four cycles for each. No buffer is reused: input row ``p`` of the block has stage buffer ``p``, a row
outside the image is loaded as zeros, and every barrier is waited for once. The warps that load the first row do only
that before it is stored; other warps initialize barriers.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.epilogue import channel_of_thread, epilogue
from subbyte.families.wgmma.emit.loops import loop_over
from subbyte.families.wgmma.emit.multiply import unpacked, wgmma
from subbyte.families.wgmma.emit.rows import PIECE, Columns, columns, row_registers, staged_pixel
from subbyte.families.wgmma.emit.zeros import zero_padding
from subbyte.families.wgmma.memory import PIXEL_BYTES
from subbyte.families.wgmma.single.emit.bulk import Bulk, issue
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers, when

WINDOW = 0x3FFFF
"""The bits of a shared-memory address that a descriptor holds; higher bits contain the block's rank in its cluster."""
SET_UP = 4
"""The first of the named barriers that signal that mbarriers are initialized: one for each consumer (with
``early_start`` one for all of them), then the producer's and that of the first rows (``early_start``)."""


def single(block: Block) -> None:
    """Emit everything after the coordinates."""
    plan, config = block.plan, block.plan.knobs
    where = columns(block)
    held = row_registers(block, "row_words")
    weights = Bulk.begin(block)
    with T.If(block.warpgroup < config.consumers):
        with T.Then():
            _registers(block, True)
            own = _own_parameters(block) if config.early_parameters else None
            _wait_for_launch(block)
            first = T.uint32(0) if config.consumers == 1 else T.cast(block.warpgroup, "uint32")
            whole = config.early_start and config.consumers == 1
            _load_row(block, where, held, 0 if whole else block.warpgroup, range(plan.first_copies))
            if not (config.early_parameters or config.late_parameters):
                own = _own_parameters(block)
            if plan.launch.cluster > 1:
                op.cluster_arrive(release=False)
            zero_padding(block, where)
            begun = _begun_sums(block, own)
            if config.early_start:
                _meet_early(block, where, held, weights, first)
            else:
                _store_row(block, where, held, first)
                op.named_barrier(SET_UP + (0 if config.consumers == 1 else block.warpgroup), 256, wait=True)
                block.arrive(block.full(first))
            if config.late_parameters:
                own = _own_parameters(block)
            sums = _multiply(block, weights, begun)
            if plan.launch.cluster > 1:
                op.cluster_wait()
            epilogue(block, sums, block.first_row, bind("rows", block.end_row - block.first_row), 0, own)
        with T.Else():
            _registers(block, False)
            _produce(block, where, held)


def _meet_early(block: Block, where: Columns, held: Any, weights: Bulk, first: Any) -> None:
    """Store the consumers' rows, then meet at one barrier of all warps that do so, which is quicker than one that
    counts in shared memory. The wait for initialized barriers comes earlier, while the rows are in flight, and the
    first weights are read while the others store."""
    plan, consumers = block.plan, block.plan.knobs.consumers
    storing = consumers + (plan.first_copies < plan.copies)
    op.named_barrier(SET_UP, 128 * (consumers + 1), wait=True)
    _store_row(block, where, held, first, range(plan.first_copies))
    weights.read_first()
    op.named_barrier(SET_UP + consumers + 1, 128 * storing, wait=True)


def _registers(block: Block, consumer: bool) -> None:
    of_consumer, of_producer = block.plan.registers
    if of_consumer != of_producer:
        op.set_registers(of_consumer if consumer else of_producer, more=consumer)


def _wait_for_launch(block: Block) -> None:
    if block.plan.knobs.dependent_launch:
        op.allow_next_launch()
        op.wait_for_previous_launch()


def _produce(block: Block, where: Columns, held: Any) -> None:
    """Initialize barriers, issue the copies of weights, and load all rows except the consumers' first ones; possibly a
    share of the first row, too."""
    plan, config = block.plan, block.plan.knobs
    chunks, consumers = plan.weight_chunks, config.consumers
    share, rest = None, range(plan.first_copies, plan.copies)
    if rest:
        share = registers("first_words", 4 * len(rest))
        _wait_for_launch(block)
        _load_row(block, where, share, 0, rest)
    block.set_up_barriers()
    if plan.launch.cluster > 1:
        op.cluster_arrive(release=False)
        op.cluster_wait()
    if config.early_start == 1:
        _say_set_up(block)
    issue(block, 0, chunks if config.dependent_launch else 1)
    if config.early_start != 1:
        _say_set_up(block)
    if share is None:
        _wait_for_launch(block)
    stages = list(range(consumers, plan.window))
    if stages:
        _load_row(block, where, held, stages[0])
    if not config.dependent_launch:
        issue(block, 1, chunks)
    zero_padding(block, where)
    if share is not None:
        _store_row(block, where, share, T.uint32(0), rest)
        op.named_barrier(SET_UP + consumers + 1, 128 * (consumers + 1), wait=False)
    op.named_barrier(SET_UP + consumers, 128, wait=True)
    for stage in stages:
        _store_row(block, where, held, T.uint32(stage))
        op.emit(T.cuda.warp_sync())
        block.arrive(block.full(T.uint32(stage)))
        if stage + 1 < plan.window:
            _load_row(block, where, held, stage + 1)


def _say_set_up(block: Block) -> None:
    """Signal to the consumers that barriers are initialized."""
    consumers = block.plan.knobs.consumers
    if block.plan.knobs.early_start:
        op.named_barrier(SET_UP, 128 * (consumers + 1), wait=False)
        return
    for consumer in range(consumers):
        op.named_barrier(SET_UP + consumer, 256, wait=False)


def _own_parameters(block: Block) -> Any:
    """Read the requantization parameters of the thread's two channels, long before they are needed."""
    plan = block.plan
    if not plan.parameter_channels:
        return None
    own, padded = registers("own_parameters", 2 * plan.kept_rows), plan.workload.padded_filters
    channel = block.filter_block * plan.parameter_channels + channel_of_thread(block, 0)
    channel = bind("channel", T.min(channel, padded - 2))
    late, parameters = bool(plan.knobs.late_parameters), plan.kept_rows - bool(plan.zero_point)
    for row in range(parameters):
        op.load8(own, 2 * row, block.parameters.ptr_to([row * padded + channel]), late)
    if plan.zero_point:  # its contribution follows the weights
        op.load8(own, 2 * parameters, block.weights.ptr_to([plan.weight_words + channel]), late)
    return own


def _begun_sums(block: Block, own: Any) -> Any:
    """Sums that start from what the epilogue would add to them, computed while the first row is in flight; None if they
    start from zero."""
    plan = block.plan
    if not plan.sums_begun:
        return None
    sums = registers("acc", plan.accumulators)
    for i in range(plan.accumulators):
        parity = i // 2 % 2
        more = own[2 * (plan.kept_rows - 1) + parity] if plan.zero_point else None
        T.buffer_store(sums, own[parity] if more is None else own[parity] + more, [i])
    return sums


def _load_row(block: Block, where: Columns, held: Any, stage: Any, loads: range | None = None) -> None:
    """Read a row, or some of a thread's loads of it, into registers; zeros for a row outside the image. One address
    serves all of them: the others differ from it by constants."""
    plan, w = block.plan, block.plan.workload
    staged = bind("staged", block.first_row * plan.rows.pixel_step + stage)
    low, high = plan.row_range
    inside = bind("inside", T.And(staged >= low, staged <= high))
    y, x0 = staged * plan.rows.unit - w.pad, (where.tile + where.left) * plan.cols.unit - w.pad
    if plan.pads_with_code:
        inside = bind("inside", T.And(y >= 0, y < w.h))
    channel0 = block.rank * plan.loaded_blocks
    per_column, pixels = plan.cols.unit * w.channel_blocks, w.h * w.w
    origin = ((y * w.w + x0) * w.channel_blocks + channel0) * plan.block_words
    image = block.member % 8 * plan.image_words(pixels, w.channel_blocks)
    channel, column = plan.copy_place(0, block.member // 8)
    mine = (column * per_column + channel) * plan.block_words
    source = block.group * (pixels * w.channel_blocks * 32) + origin + image + mine
    source = bind("source", T.cast(source, "int64"))
    for place, load in enumerate(loads or range(plan.copies)):
        channels, columns = plan.copy_place(load, 0)
        pointer = block.activations.ptr_to([source + T.int64((columns * per_column + channels) * plan.block_words)])
        for i in range(4):
            T.buffer_store(held, T.uint32(plan.fill), [4 * place + i])
        with when(every([inside, *_column_exists(block, where, load, column + columns)])):
            op.load16(held, 4 * place, pointer, "activations")


def _store_row(block: Block, where: Columns, held: Any, buffer: Any, loads: range | None = None) -> None:
    """Unpack a row, or the results of some loads, from registers into its stage buffer, and make it visible to
    wgmma."""
    plan = block.plan
    channel, column = plan.copy_place(0, block.member // 8)
    if plan.bytes_in:
        mine = staged_pixel(plan, channel, column + where.left) + block.member % 8 * PIECE
    else:
        mine = (channel * plan.pitch + column + where.left) * PIXEL_BYTES + block.member % 8 * PIECE
    here = bind("here", block.buffer_address(buffer) + T.cast(mine, "uint32"))
    for place, load in enumerate(loads or range(plan.copies)):
        channels, columns = plan.copy_place(load, 0)
        words = [held[4 * place + i] for i in range(4)]
        with when(every(_column_exists(block, where, load, column + columns))):
            if plan.bytes_in:
                op.store_shared16(here + T.uint32(staged_pixel(plan, channels, columns)), words)
            for half in range(2 if not plan.bytes_in else 0):
                offset = staged_pixel(plan, channels, columns) + half * 8 * PIECE
                values = [(word if half else word << T.uint32(4)) & T.uint32(LOW_NIBBLES) for word in words]
                op.store_shared16(here + T.uint32(offset), values)
    op.async_fence()


def _column_exists(block: Block, where: Columns, load: int, column: Any) -> list[Any]:
    """The condition of a load, if not every thread of every block has one."""
    plan = block.plan
    if plan.copy_place(load, 15)[1] < plan.least_columns:
        return []
    return [column < (plan.columns_loaded if where.count is None else where.count)]


def _multiply(block: Block, weights: Bulk, begun: Any) -> Any:
    """All multiplications of a consumer, added to the sums ``begun``, if any."""
    plan, config = block.plan, block.plan.knobs
    sums = registers("acc", plan.accumulators) if begun is None else begun
    started = registers("started", config.tile_rows)
    for row in range(config.tile_rows):
        T.buffer_store(started, T.uint32(0 if begun is None else 1), [row])
    pixels = T.cast(block.x * (config.tile_width * plan.cols.pixel_step * PIXEL_BYTES), "uint32")
    right = bind("right", ((block.base + pixels & T.uint32(WINDOW)) >> T.uint32(4)) + T.uint32(plan.descriptor_low))
    bodies = plan.steps // plan.unroll
    if not config.early_start:
        weights.read_first()

    def tap_row(tap: Any) -> None:
        first = tap * plan.rows.tap_step
        _wait_for_rows(block, first)

        def body(index: Any) -> None:
            weights.begin_body(tap, index)
            offset = (first * plan.buffer_bytes + index * (plan.unroll * plan.halves * plan.pitch * PIXEL_BYTES)) // 16
            b = bind("rows_at", right + T.cast(offset, "uint32"))
            for fragment in range(plan.ahead):
                _fragment(block, weights, sums, started, fragment, b)

        loop_over("turn", bodies, body)

    loop_over("tap_row", plan.tap_rows, tap_row)
    op.wgmma_wait(0)
    return sums


def _wait_for_rows(block: Block, first: Any) -> None:
    """Wait for the input rows of a kernel row: its first one, and those of the other fragment rows, including those
    that an earlier kernel row waited for. The consumers' own rows were waited for at another barrier
    (``early_start``)."""
    plan = block.plan
    for row in range(plan.knobs.tile_rows):
        stage = T.cast(first + row * plan.rows.pixel_step, "uint32")
        counted = stage >= T.uint32(plan.knobs.consumers) if plan.knobs.early_start else True
        with when(counted):
            block.wait(block.full(stage), T.uint32(0))


def _fragment(block: Block, weights: Bulk, sums: Any, started: Any, fragment: int, rows_at: Any) -> None:
    """Unpack one weight fragment of a loop body and multiply it with every fragment row."""
    plan = block.plan
    step, column = fragment // plan.tap_cols, fragment % plan.tap_cols
    operands = unpacked(plan, weights.held, fragment)
    weights.end_fragment(fragment)
    op.wgmma_fence()
    count = 4 * plan.knobs.tile_width
    for half, operand in enumerate(operands):
        plane = (step * plan.halves + half) * plan.pitch + column * plan.cols.tap_step
        for row in range(plan.knobs.tile_rows):
            place = plane * PIXEL_BYTES + row * plan.rows.pixel_step * plan.buffer_bytes
            mine = [sums[row * count + i] for i in range(count)]
            wgmma(plan, plan.atom, mine, operand, rows_at + T.uint32(place // 16), started, row)
    op.wgmma_commit()
    op.wgmma_wait(plan.in_flight)

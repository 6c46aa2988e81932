"""Registers to global memory: requantization, packing and the store, or the raw sums.

Register-level packing (Choi et al. 2022, 3.2, in the form of two shuffles for four tiles): a lane holds channels
2j and 2j+1 of one image for each of four tiles; it packs each pair to a byte, so one register carries four tiles; a
4 x 4 byte transpose inside each four lanes (exchange with lane^1, then lane^2) leaves lane j with the complete word of
tile j. Without the switch, the int32 sums go through shared memory first and are packed after it (the paper's
Figure 5).
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.mma.emit.block import Block
from subbyte.tirx import added
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.tirx.requantize import requantized_code, signed_output
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.precision import SUMS

TILES_OF_BYTES = 2
"""Column tiles of 8-bit values that one register carries."""


def epilogue(block: Block) -> None:
    """Emit everything after the main loop."""
    if block.plan.config.split_channels > 1:
        _add_splits(block)
    if block.plan.output == SUMS:
        _only_first_split(block, _store_raw)
    elif block.plan.config.register_packing:
        _only_first_split(block, _store_bytes_in_registers if block.plan.bytes_out else _store_packed_in_registers)
    else:
        _store_packed_through_shared(block)


def _only_first_split(block: Block, emit: Any) -> None:
    with when(block.plan.config.split_channels == 1 or block.split == 0):
        emit(block)


def _add_splits(block: Block) -> None:
    """Sum the accumulators of the warps that split the input channels, through shared memory, into split 0."""
    plan = block.plan
    owners = plan.threads_per_split
    owner = block.thread % owners
    T.evaluate(T.cuda.cta_sync())
    with when(block.split > 0), loop("i", plan.accumulators) as i:
        place = ((block.split - 1) * plan.accumulators + i) * owners + owner
        T.buffer_store(block.shared, block.accumulators[i], [place])
    T.evaluate(T.cuda.cta_sync())
    with when(block.split == 0):
        for other in range(plan.config.split_channels - 1):
            with loop("i", plan.accumulators) as i:
                place = (other * plan.accumulators + i) * owners + owner
                T.buffer_store(block.accumulators, block.accumulators[i] + block.shared[place], [i])


def _sum(block: Block, register: Any) -> Any:
    """The signed sum of one accumulator register, still scaled by the atom."""
    return T.cast(block.accumulators[register], "int32")


def _requantized(block: Block, value: Any, channel: Any, residual: Any = None) -> Any:
    """clip((value + bias) * multiplier * 2^-shift, rounded half up), before the upper bits are packed away.

    ``value`` carries the atom's scale; ``channel`` counts within the block; ``residual`` is the value to add.
    The fixed form multiplies once, adds a 64-bit offset that holds bias and rounding, and keeps the upper word (see
    Requantization.fixed_words).
    """
    plan = block.plan
    parameters = [_parameter(block, row, channel) for row in range(plan.parameter_rows)]
    return requantized_code(plan, value, parameters, residual)


def _parameter(block: Block, row: int, channel: Any) -> Any:
    return T.cast(block.shared[block.plan.parameter_base + row * block.plan.config.columns + channel], "int32")


def _store_packed_in_registers(block: Block) -> None:
    plan = block.plan
    columns = min(plan.config.warp_col_tiles, 4)
    pixels = 4 // columns
    word = registers("word", 2)
    groups = ceil_div(plan.config.warp_row_tiles, pixels)
    with loop("p", groups) as p, loop("c", plan.config.warp_col_tiles // columns) as c:
        T.buffer_store(word, T.uint32(0), [0])
        for tile in reversed(range(4)):
            _pack_byte(block, word, p * pixels + tile // columns, c * columns + tile % columns)
        _transpose_bytes(block, word)
        mine = block.lane % 4
        _store_word(block, word[0], p * pixels + mine // columns, c * columns + mine % columns)


def _store_bytes_in_registers(block: Block) -> None:
    """8-bit values: one register carries two tiles, and one exchange completes a word of four channels of each."""
    plan = block.plan
    columns = min(plan.config.warp_col_tiles, TILES_OF_BYTES)
    pixels = TILES_OF_BYTES // columns
    word = registers("word", 2)
    groups = ceil_div(plan.config.warp_row_tiles, pixels)
    with loop("p", groups) as p, loop("c", plan.config.warp_col_tiles // columns) as c:
        T.buffer_store(word, T.uint32(0), [0])
        for tile in reversed(range(TILES_OF_BYTES)):
            _pack_byte(block, word, p * pixels + tile // columns, c * columns + tile % columns)
        _exchange(block, word, 1, 0x5410, 0x3276)
        mine = block.lane % 2
        pixel, column = p * pixels + mine // columns, c * columns + mine % columns
        _store_word(block, word[0], pixel, column, block.lane % 4 // 2)


def _pack_byte(block: Block, word: Any, pixel: Any, column: Any) -> None:
    """Shift the register by two values and insert the two channels that this lane holds for a pixel and column tile."""
    plan = block.plan
    first = plan.accumulator(_clamp(pixel, plan.config.warp_row_tiles), column)
    channel = (block.warp_col * plan.config.warp_col_tiles + column) * 8 + block.lane % 4 * 2
    residual: list[Any] = [None, None]
    if plan.added is not None:
        p, q, inside = _inside(block, pixel)
        residual = _residual(block, p, q, _tile(block, column), block.lane % 4, block.lane // 4, inside)
    low = bind("low", _requantized(block, _sum(block, first), channel, residual[0]))
    high = bind("high", _requantized(block, _sum(block, first + 1), channel + 1, residual[1]))
    _pack(plan)(word[0], high, low, signed_output(plan))


def _pack(plan: Any) -> Any:
    return op.pack_int8 if plan.bytes_out else op.pack_int4


def _residual(block: Block, p: Any, q: Any, tile: Any, pair: Any, image: Any, inside: Any) -> list[Any]:
    """The residual for two neighbouring channels, the ``pair``-th of an 8-channel tile of the output, of an image's
    pixel: 0 outside the output, None twice without a residual."""
    plan = block.plan
    if plan.added is None:
        return [None, None]
    held = registers("added", 1)

    def first(image: Any) -> Any:
        return plan.added_word(block.group, p, q, tile, image)

    at, bit = added.place(plan, first, tile % 4 * 8 + pair * 2, image)
    T.buffer_store(held, T.uint32(0), [0])
    with when(inside):
        T.buffer_store(held, block.residual[at], [0])
    return added.pair(plan, held[0], bit)


def _tile(block: Block, column: Any) -> Any:
    """The 8-channel tile of a warp's column tile, among all tiles of the output."""
    plan = block.plan
    return block.column_block * plan.column_tiles + block.warp_col * plan.config.warp_col_tiles + column


def _clamp(pixel: Any, pixels: int) -> Any:
    """A warp with fewer pixels than a group of four tiles packs its last one again; the store skips it."""
    return T.min(pixel, pixels - 1)


def _transpose_bytes(block: Block, word: Any) -> None:
    """4 x 4 byte transpose within four lanes: byte i of lane j is swapped with byte j of lane i."""
    for distance, keep, cross in ((1, 0x6240, 0x3715), (2, 0x5410, 0x3276)):
        _exchange(block, word, distance, keep, cross)


def _exchange(block: Block, word: Any, distance: int, keep: int, cross: int) -> None:
    """Combine bytes of the lane's own register and of that of the lane at a distance, selected by ``keep`` in the lower
    lane of the two, else by ``cross``."""
    selector = T.Select(block.lane // distance % 2 == 0, T.uint32(keep), T.uint32(cross))
    T.evaluate(T.ptx.shfl_sync.bfly.b32(word[1], word[0], T.uint32(distance), T.uint32(0x1F), T.uint32(0xFFFFFFFF)))
    T.evaluate(T.ptx.prmt.b32(word[0], word[0], word[1], selector))


def _inside(block: Block, pixel: Any) -> tuple[Any, Any, Any]:
    """Output row and column of a warp's pixel, and whether it exists in the output."""
    plan = block.plan
    row, col = block.tile_pixel(pixel)
    p, q = bind("row", block.row0 + row), bind("col", block.col0 + col)
    inside = T.And(p < plan.workload.p, q < plan.workload.q)
    together = TILES_OF_BYTES if plan.bytes_out and plan.output != SUMS else 4
    if together // min(plan.config.warp_col_tiles, together) > 1:
        inside = T.And(inside, pixel < plan.config.warp_row_tiles)
    return p, q, inside


def _store_word(block: Block, word: Any, pixel: Any, column: Any, part: Any = None) -> None:
    plan = block.plan
    p, q, inside = _inside(block, pixel)
    with when(inside):
        target = plan.output_word(block.group, p, q, _tile(block, column), block.lane // 4)
        T.buffer_store(block.output, word, [target if part is None else target + part])


def _store_raw(block: Block) -> None:
    """Store the int32 sums, two neighbouring channels at a time."""
    plan = block.plan
    with loop("pixel", plan.config.warp_row_tiles) as pixel:
        p, q, inside = _inside(block, pixel)
        with when(inside), loop("n", plan.config.warp_col_tiles) as column:
            word = plan.output_word(block.group, p, q, _tile(block, column), block.lane // 4)
            pair = registers("pair", 2, "int32")
            for i in range(2):
                value = _sum(block, plan.accumulator(pixel, column) + i) >> T.int32(plan.atom.scale_log2)
                T.buffer_store(pair, value, [i])
            with loop("i", 2, T.vectorized) as i:
                T.buffer_store(block.output, pair[i], [word * plan.word_values + block.lane % 4 * 2 + i])


def _store_packed_through_shared(block: Block) -> None:
    plan = block.plan
    T.evaluate(T.cuda.cta_sync())
    _only_first_split(block, _spill_sums)
    T.evaluate(T.cuda.cta_sync())
    words = plan.config.pixels * BATCH_GROUP * plan.column_tiles * plan.tile_words
    threads = plan.config.threads
    with loop("turn", ceil_div(words, threads)) as turn:
        index = turn * threads + block.thread
        with when(words % threads == 0 or index < words):
            if plan.bytes_out:
                _pack_bytes_from_shared(block, index)
            else:
                _pack_from_shared(block, index)


def _spill_sums(block: Block) -> None:
    """Write the warp's int32 sums to shared memory as [pixel][image][channel]."""
    plan = block.plan
    with loop("pixel", plan.config.warp_row_tiles) as pixel, loop("n", plan.config.warp_col_tiles) as column:
        row, col = block.tile_pixel(pixel)
        channel = (block.warp_col * plan.config.warp_col_tiles + column) * 8 + block.lane % 4 * 2
        place = ((row * plan.tile[1] + col) * BATCH_GROUP + block.lane // 4) * plan.output_row_words + channel
        with loop("i", 2, T.vectorized) as i:
            T.buffer_store(block.shared, block.accumulators[plan.accumulator(pixel, column) + i], [place + i])


def _pack_from_shared(block: Block, index: Any) -> None:
    """Requantize and pack the eight channels of one word, read back from shared memory."""
    plan = block.plan
    together = min(plan.column_tiles, 4)
    tile = index // (together * BATCH_GROUP) % (plan.column_tiles // together) * together + index % together
    image = index // together % BATCH_GROUP
    pixel = index // (BATCH_GROUP * plan.column_tiles)
    _pack_shared_word(block, pixel, image, tile, range(4))


def _pack_bytes_from_shared(block: Block, index: Any) -> None:
    """The same for the four channels of a word of bytes: the two words of a tile are adjacent."""
    plan = block.plan
    units = plan.column_tiles * plan.tile_words
    together = min(units, 4)
    unit = index // (together * BATCH_GROUP) % (units // together) * together + index % together
    image = index // together % BATCH_GROUP
    pixel = index // (BATCH_GROUP * units)
    half = bind("half", unit % 2)
    _pack_shared_word(block, pixel, image, unit // 2, range(2), half)


def _pack_shared_word(block: Block, pixel: Any, image: Any, tile: Any, pairs: range, half: Any = None) -> None:
    """Pairs of channels of a tile, or of half of it, as one word."""
    plan = block.plan
    word = registers("word", 1)
    T.buffer_store(word, T.uint32(0), [0])
    p, q = block.row0 + pixel // plan.tile[1], block.col0 + pixel % plan.tile[1]
    inside = T.And(p < plan.workload.p, q < plan.workload.q)
    of_output = block.column_block * plan.column_tiles + tile
    for number in reversed(pairs):
        pair = number if half is None else half * 2 + number
        place = (pixel * BATCH_GROUP + image) * plan.output_row_words + tile * 8 + pair * 2
        residual = _residual(block, p, q, of_output, pair, image, inside)
        values = []
        for i in range(2):
            value, channel = T.cast(block.shared[place + i], "int32"), tile * 8 + pair * 2 + i
            values.append(bind("value", _requantized(block, value, channel, residual[i])))
        _pack(plan)(word[0], values[1], values[0], signed_output(plan))
    target = plan.output_word(block.group, p, q, of_output, image)
    with when(inside):
        T.buffer_store(block.output, word[0], [target if half is None else target + half])

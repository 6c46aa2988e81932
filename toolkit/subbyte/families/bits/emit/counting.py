"""Counting the activation bits of every window, by a dedicated warpgroup: each staged pixel is counted once, and a
window is the sum of its pixels. Columns of ones can count them too, but make every instruction wider."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block, TilePlace
from subbyte.families.bits.emit.order import COUNTED_BORDER, COUNTED_ROW, COUNTERS
from subbyte.families.bits.tiles import PIECE_BYTES, TILE_PIXELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.workload.conv import BATCH_GROUP

_IMAGES = 4
"""Counts of a pixel that are added together: 16 bytes."""


def count_windows(block: Block, copier: int) -> None:
    """Count all windows of a block, row by row as the staged rows arrive."""
    plan = block.plan
    thread = bind("counter", block.thread - 128 * plan.config.consumers)
    with when(block.warp == copier):
        op.named_barrier(COUNTED_BORDER, 128 * plan.config.consumers + 32, wait=True)
    counted = registers("counted", 1, "int32")
    T.buffer_store(counted, T.int32(0), [0])
    with loop("row", plan.config.tile_rows, T.serial) as row:
        needed = bind("needed", block.staged_row(row) + plan.window_rows)
        with T.While(counted[0] < needed):
            block.wait(block.row_barrier(T.cast(counted[0], "uint32")))
            _staged_row(block, counted[0], thread)
            T.buffer_store(counted, counted[0] + 1, [0])
        op.named_barrier(COUNTED_ROW, COUNTERS, wait=True)
        _output_row(block, row, thread)
        op.emit(T.cuda.warp_sync())
        with when(block.lane == 0):
            op.barrier_arrive(block.window_barrier(T.cast(row, "uint32")))


def wait_for_windows(block: Block, place: TilePlace, seen: Any) -> None:
    """Wait until the windows of every output row needed by a tile are counted."""
    needed = bind("counted", T.cast(place.row + 1, "uint32"))
    with T.While(seen[1] < needed):
        block.wait(block.window_barrier(seen[1]))
        T.buffer_store(seen, seen[1] + T.uint32(1), [1])


def _each(name: str, count: int, thread: Any, body: Any) -> None:
    """Distribute the indices below ``count`` over the threads."""
    with loop("part", -(-count // COUNTERS)) as part:
        index = bind(name, part * COUNTERS + thread)
        with when(True if count % COUNTERS == 0 else index < count):
            body(index)


def _staged_row(block: Block, row: Any, thread: Any) -> None:
    """Count the bits of every image of every pixel of a staged row; the two rows of a pair separately."""
    plan = block.plan
    rows = 2 if plan.paired_rows else 1
    words = PIECE_BYTES // 4 // rows

    def count(index: Any) -> None:
        totals: list[Any] = [None] * rows
        first = (row * plan.pitch + index // BATCH_GROUP) * plan.pixel_bytes + index % BATCH_GROUP * PIECE_BYTES
        for piece in range(plan.channel_blocks * plan.planes):
            held, ones = registers("held", 4), registers("ones", 4)
            at = first + piece * BATCH_GROUP * PIECE_BYTES
            op.load_shared16(held, block.base + T.cast(at, "uint32"))
            factor = plan.form.activations.weights[piece % plan.planes]
            for word in range(4):
                op.emit(T.ptx.popc.b32(ones[word], held[word]))
            for half in range(rows):
                bits = ones[half * words]
                for word in range(half * words + 1, (half + 1) * words):
                    bits = bits + ones[word]
                term = bits if factor == 1 else bits * T.uint32(factor & 0xFFFFFFFF)
                totals[half] = term if totals[half] is None else totals[half] + term
        for half, total in enumerate(totals):
            place = plan.count_base // 4 + (row * rows + half) * (plan.pitch * BATCH_GROUP) + index
            T.buffer_store(block.shared, total, [place])

    _each("pixel", plan.pitch * BATCH_GROUP, thread, count)


def _output_row(block: Block, row: Any, thread: Any) -> None:
    """Add up the windows of an output row."""
    plan, w = block.plan, block.plan.view
    first_row = block.first_input * (2 if plan.paired_rows else 1)
    above = bind("above", op.hidden("above", block.input_row(row) - first_row))  # TVM would allow for rows below 0
    width, halves = plan.row_tiles * TILE_PIXELS, BATCH_GROUP // _IMAGES

    def add(index: Any) -> None:
        pixel, images = index // halves, index % halves * _IMAGES
        start = ((above * plan.pitch + pixel * w.stride) * BATCH_GROUP + images) * 4
        first = bind("window", block.base + T.cast(plan.count_base + start, "uint32"))
        totals = [T.uint32(0)] * _IMAGES
        for tap in range(w.r * w.s):
            further = (tap // w.s * plan.pitch + tap % w.s) * w.dilation * BATCH_GROUP * 4
            held = registers("held", _IMAGES)
            op.load_shared16(held, first + T.uint32(further))
            totals = [total + held[i] for i, total in enumerate(totals)]
        whole = [total * T.uint32(plan.window_factor & 0xFFFFFFFF) for total in totals]
        at = plan.window_base + ((row * width + pixel) * BATCH_GROUP + images) * 4
        op.store_shared16(block.base + T.cast(at, "uint32"), whole)

    _each("window", width * halves, thread, add)

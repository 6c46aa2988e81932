"""Packing without register exchange: int32 values go through shared memory and are packed afterwards.

This is what register-level packing replaces (Choi et al. 2022, Figure 5). Each warp has its own piece of shared memory
for four pixels: one row for every pixel and image, with the warp's 16 output channels. A lane writes the values that
the matrix instruction left in its registers and reads the whole row of one pixel and image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.script import tirx as T

from subbyte.families.wgmma.memory import PACKING_PITCH, PACKING_ROWS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.workload.conv import BATCH_GROUP, ceil_div

if TYPE_CHECKING:
    from subbyte.families.wgmma.emit.epilogue import Target

PIXELS = PACKING_ROWS // BATCH_GROUP
"""Pixels that go through a warp's piece of shared memory at once."""


def store_through_shared(target: Target, sums: Any, first: Any, pixels: int, parameters: list[list[Any]]) -> None:
    """Requantize ``pixels`` of the tile iteration from ``first``, write them to shared memory, read them by rows, pack
    and store."""
    block, plan = target.block, target.block.plan
    warp = block.warpgroup * 4 + target.warp
    piece = bind("piece", plan.packing_base // 4 + warp * (PACKING_ROWS * PACKING_PITCH))
    with loop("four", ceil_div(pixels, PIXELS)) as four:
        op.emit(T.cuda.warp_sync())  # the rows of the preceding pixels have been read
        for column in range(PIXELS):
            pixel = T.min(four * PIXELS + column, pixels - 1)
            for image in range(2):
                row = column * BATCH_GROUP + block.lane % 4 * 2 + image
                place = piece + row * PACKING_PITCH + block.lane // 4 * 2
                pair = registers("pair", 2)
                more = target.residual(first + pixel, image)
                for parity in range(2):
                    value = target.requantized(sums, pixel * 4 + parity * 2 + image, parameters[parity], more[parity])
                    T.buffer_store(pair, T.cast(value, "uint32"), [parity])
                with loop("i", 2, T.vectorized) as i:
                    T.buffer_store(block.shared, pair[i], [place + i])
        op.emit(T.cuda.warp_sync())
        words = _packed_row(target, piece)
        pixel = bind("pixel", first + four * PIXELS + block.lane // BATCH_GROUP)
        count = 2 * plan.output_parts
        with when(target.inside(pixel, first + pixels, pixels % PIXELS != 0)), loop("i", count, T.vectorized) as i:
            start = target.word(pixel, block.lane % BATCH_GROUP)
            start = start if plan.bytes_out else start + target.warp % 2 * 2
            T.buffer_store(block.output, words[i], [start + i])


def _packed_row(target: Target, piece: Any) -> Any:
    """The lane's row, 16 channels of one pixel and image, as two words, or four of 8-bit values."""
    block, bytes_out = target.block, target.block.plan.bytes_out
    count, pack = (4, op.pack_int8) if bytes_out else (2, op.pack_int4)
    values, words = registers("values", 4), registers("row_words_out", count)
    row = block.base + T.cast((piece + block.lane * PACKING_PITCH) * 4, "uint32")
    for word in range(count):
        T.buffer_store(words, T.uint32(0), [word])
        for part in reversed(range(4 // count)):
            op.load_shared16(values, row + T.uint32(64 // count * word + 16 * part))
            for pair in reversed(range(2)):
                high, low = (T.cast(values[2 * pair + i], "int32") for i in (1, 0))
                pack(words[word], high, low, target.signed)
        T.buffer_store(words, target.finished(words[word]), [word])
    return words

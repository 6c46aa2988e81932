"""Residual values that are added to sums before rounding: where they lie, in the layout of the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from subbyte.tirx.emit import bind
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import WORD_BITS


def place(plan: Any, first: Callable[[Any], Any], channel: Any, image: Any) -> tuple[Any, Any]:
    """The residual's word that holds an even channel (0 to 30) and the next one, and the bit where the first one
    starts.

    ``first(image)`` is the first word of 32 output channels of one pixel, stored as 4-bit values.
    """
    if plan.added.bits == 4:
        return first(image) + channel // 8, channel % 8 * 4
    packed, blocks = plan.layout == "nhwcnc", ceil_div(plan.workload.k, plan.added.block)
    if blocks % 2 == 0:
        if packed:  # blocks of 16 channels of 8 images
            return first(0) * 2 + channel // 16 * 32 + image * 4 + channel % 16 // 4, channel % 4 * 8
        return first(image) * 2 + channel // 4, channel % 4 * 8
    # A pixel has one block less than its 32 channels would take: the padding channels may read any other block.
    each = 32 if packed else 4
    start = bind("start", (first(0) if packed else first(image)) * 2)
    block = T.min(start % (each * (blocks + 1)) // each + channel // 16, T.int32(blocks - 1))
    word = (start // (each * (blocks + 1)) * blocks + block) * each + channel % 16 // 4
    return (word + image * 4 if packed else word), channel % 4 * 8


def pair(plan: Any, word: Any, bit: Any) -> list[Any]:
    """The int32 values of two neighbouring channels; the first one starts at ``bit`` of ``word``."""
    bits, found = plan.added.bits, []
    for second in range(2):
        start = T.cast(bit + second * bits, "uint32")
        if plan.added.least < 0:
            value = T.cast(word << (T.uint32(WORD_BITS - bits) - start), "int32") >> T.int32(WORD_BITS - bits)
        else:
            value = T.cast(word << (T.uint32(WORD_BITS - bits) - start) >> T.uint32(WORD_BITS - bits), "int32")
        found.append(bind("residual", value))
    return found

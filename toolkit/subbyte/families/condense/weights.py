"""Weights with the columns of one position of K together, in the order of the matrix instruction."""

from __future__ import annotations

import numpy as np

from subbyte.arguments import checked
from subbyte.families.condense.config import PANEL
from subbyte.numerics.int4 import Int8Array, Words, check_int4, pack_words
from subbyte.numerics.layout import pad_axis
from subbyte.workload.conv import CHANNEL_BLOCK


@checked
def prepare_weights(w: Int8Array) -> Words:
    """int4 values int8 [K,1,1,C] -> uint32 [panels of 32 filters][blocks of 32 channels][32 positions][4 words].

    Position ``8 i + g`` of a block is channel ``4 g + i``. Bits ``4 t`` of its half word ``e`` are filter
    ``8 (e // 2) + 2 t + e % 2`` of the panel: ldmatrix gives that half word to the lanes that hold column ``e`` of tile
    ``t`` of the matrix instruction, whose sums of all four tiles are then 8 neighbouring channels of a lane. Zeros
    beyond K and C. Raises InvalidInput.
    """
    given = check_int4(w, "w", (None, 1, 1, None))
    padded = pad_axis(pad_axis(given, 3, CHANNEL_BLOCK), 0, PANEL)
    filters, _, _, channels = padded.shape
    # axes: panel 0, filter 8 (e // 2) 1, 2 t 2, e % 2 3, block 4, g 5, i 6
    split = padded.reshape(filters // PANEL, 4, 4, 2, channels // CHANNEL_BLOCK, 8, 4)
    return pack_words(np.ascontiguousarray(split.transpose(0, 4, 6, 5, 1, 3, 2)).reshape(
        filters // PANEL, channels // CHANNEL_BLOCK, 32, 32))  # fmt: skip

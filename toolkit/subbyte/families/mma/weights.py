"""Weights in the order the lanes of a warp read them: no shuffle, no bank conflict, one wide load per fragment."""

from __future__ import annotations

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import Int8Array, Words, check_int4, pack_words
from subbyte.numerics.layout import BLOCK_WORDS, pad_axis
from subbyte.workload.conv import CHANNEL_BLOCK

TILE_FILTERS = 8
"""Output channels of one matrix-instruction tile."""

VECTORS = (1, 2, 4)
"""Allowed words per lane of one load (4, 8 or 16 bytes)."""


@checked
def prepare_weights(w: Int8Array, vec: int) -> Words:
    """int4 values int8 [K,R,S,C] -> uint32 [CB][R*S][KT/vec][32 lanes][vec], the order of the mma family.

    ``CB = ceil(C/32)`` channel blocks; ``KT`` eight-filter tiles of K padded to 32; ``vec`` = words of one load =
    min(warp_col_tiles, 4). Lane ``4*o + j`` holds word ``j`` (channels 8j to 8j+7 of the block) of filter
    ``8*tile + o`` with ``tile = group*vec + v``. Zeros beyond K and C. Raises InvalidInput.
    """
    checked = check_int4(w, "w", (None, None, None, None))
    if vec not in VECTORS:
        raise InvalidInput(f"vec={vec!r}: allowed: {', '.join(map(str, VECTORS))}")
    words = pack_words(pad_axis(pad_axis(checked, 3, CHANNEL_BLOCK), 0, CHANNEL_BLOCK))
    filters, height, width, length = words.shape
    groups, taps, blocks = filters // (TILE_FILTERS * vec), height * width, length // BLOCK_WORDS
    split = words.reshape(groups, vec, TILE_FILTERS, taps, blocks, BLOCK_WORDS)
    lanes = split.transpose(4, 3, 0, 2, 5, 1)  # block, tap, group, o, j, v
    return np.ascontiguousarray(lanes).reshape(blocks, taps, groups, TILE_FILTERS * BLOCK_WORDS, vec)

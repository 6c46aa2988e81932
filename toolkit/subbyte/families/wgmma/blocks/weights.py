"""Block-sparse weights as the threads of a warpgroup read them: the live blocks, and the place of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.listed import HEAD_WORDS, LISTED_WORDS, ROW_BIT, VALUE_WORDS, ListForm
from subbyte.families.wgmma.weights import TILE_FILTERS
from subbyte.numerics.int4 import Int8Array, Words, check_int4
from subbyte.numerics.layout import pad_axis
from subbyte.numerics.weight_blocks import live_blocks
from subbyte.workload.conv import CHANNEL_BLOCK


@checked
def prepare_listed_weights(w: Int8Array, form: str) -> Words:
    """int4 values int8 [K,R,S,C] -> uint32 words, all of them written: heads, then fragments, as described by the text
    of a :class:`~subbyte.families.wgmma.listed.ListForm`.

    Of the 544 words of a fragment, thread ``32*warp + 4*g + q`` reads four starting at ``4*thread``, as in
    :func:`subbyte.families.wgmma.weights.prepare_warpgroup_weights`: a live block in the low nibbles, the next one in
    the high ones. Words 512 and 513 are their places: the kernel row from bit 24 on, below it the distance in shared
    memory from the first input that the tile iteration reads, in units of 16 bytes. A tile's blocks are sorted by
    kernel row and padded with zeros, whose kernel row is R, to a whole number of loop bodies, at least one. Raises
    InvalidInput when there are not enough fragments.
    """
    how = ListForm.of(form)
    given = check_int4(w, "w", (None, None, None, None))
    padded = pad_axis(pad_axis(given, 3, CHANNEL_BLOCK), 0, TILE_FILTERS)
    tiles = whole(padded.shape[0] // TILE_FILTERS, "tiles", 1, how.tiles)
    _, height, width, _ = padded.shape
    live = live_blocks(padded)
    heads = np.zeros((how.tiles, HEAD_WORDS), np.uint32)
    places = np.full((how.fragments, 2), height << ROW_BIT, np.uint32)
    blocks = np.zeros((how.fragments * 2, TILE_FILTERS, CHANNEL_BLOCK), np.int8)
    first = 0
    for tile in range(how.tiles):
        rows, columns, parts = np.nonzero(live[tile]) if tile < tiles else (np.zeros(0, np.intp),) * 3
        bodies = max(1, -(-len(rows) // (2 * how.pairs)))
        end = first + bodies * how.pairs
        if end > how.fragments:
            raise InvalidInput(f"w has more live blocks than the {how.fragments} fragments of this kernel's list hold")
        heads[tile, 0] = first
        heads[tile, 1 : height + 2] = np.searchsorted(rows, np.arange(height + 1))
        if len(rows):
            of_tile = padded[tile * TILE_FILTERS : (tile + 1) * TILE_FILTERS]
            split = of_tile.reshape(TILE_FILTERS, height, width, -1, CHANNEL_BLOCK)
            blocks[2 * first : 2 * first + len(rows)] = np.moveaxis(split[:, rows, columns, parts], 1, 0)
        distance = rows * how.row + parts * how.block + columns * how.column
        places.reshape(-1)[2 * first : 2 * first + len(rows)] = (rows << ROW_BIT) + distance
        first = end
    fragments = np.zeros((how.fragments, LISTED_WORDS), np.uint32)
    fragments[:, :VALUE_WORDS] = _packed(blocks.reshape(how.fragments, 2, TILE_FILTERS, CHANNEL_BLOCK))
    fragments[:, VALUE_WORDS : VALUE_WORDS + 2] = places
    return np.concatenate([heads.reshape(-1), fragments.reshape(-1)])


def _packed(blocks: NDArray[np.int8]) -> Words:
    """Pairs of blocks int8 [fragments, 2, 64, 32] as words uint32 [fragments, 512]."""
    nibbles = (blocks.reshape(-1, 2, 4, 8, 2, 4, 4, 2) & 15).astype(np.uint8)
    packed = nibbles[:, 0] | nibbles[:, 1] << 4  # fragment 0, warp 1, g 2, parity 3, q 4, byte 5, half of K 6
    ordered = np.ascontiguousarray(packed.transpose(0, 1, 2, 4, 6, 3, 5))
    return ordered.view(np.uint32).reshape(blocks.shape[0], VALUE_WORDS)

"""Weights in the order the lanes of a warp read them: no shuffle, no bank conflict, one wide load per fragment."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import Int8Array, Words, check_int4, pack_words
from subbyte.numerics.layout import BLOCK_WORDS, pad_axis
from subbyte.numerics.words import pack
from subbyte.workload.conv import CHANNEL_BLOCK
from subbyte.workload.operand import Operand

TILE_FILTERS = 8
"""Output channels of one matrix-instruction tile."""

BYTE_CHANNELS = 16
"""Channels of one block of 8-bit activations."""

VECTORS = (1, 2, 4)
"""Allowed words per lane in one load (4, 8 or 16 bytes)."""

_FORM = re.compile(
    r"(?P<kind>nibbles|w4a8\.|w8a8\.)(?P<vec>[124])k(?P<unit>16|32)(?:\.z(?P<zero>-?\d+)s(?P<scale>\d+))?"
)
"""Layout of weights for workloads that are not int4 only (:attr:`subbyte.families.mma.plan.Plan.weight_form`)."""


def weights_of_form(form: str, w: NDArray[np.int8]) -> Words | None:
    """Weights [K,R,S,C] packed in layout ``form``, flat uint32; None if it belongs to another family. Raises
    InvalidInput."""
    if form in map(str, VECTORS):
        return prepare_weights(w, int(form))
    found = _FORM.fullmatch(form)
    if found is None:
        return None
    kind, vec, unit = found["kind"], int(found["vec"]), int(found["unit"])
    filled = pad_axis(w, 0, unit)
    lanes = {"nibbles": _lanes_of_int4, "w8a8.": _lanes_of_bytes, "w4a8.": _lanes_of_two_tiles}[kind]
    words = lanes(filled, vec).reshape(-1)
    if found["zero"] is None:
        return words
    sums = filled.astype(np.int64).sum(axis=(1, 2, 3))
    begun = -int(found["zero"]) * sums << np.int64(int(found["scale"]))
    return np.concatenate([words, (begun & 0xFFFFFFFF).astype(np.uint32)])


def _lanes_of_int4(w: Int8Array, vec: int) -> Words:
    return _lanes(pack_words(pad_axis(w, 3, CHANNEL_BLOCK)), vec)


def _lanes_of_bytes(w: Int8Array, vec: int) -> Words:
    """int8 [K,R,S,C] -> uint32 [CB][R*S][KT/vec][32 lanes][vec] as in :func:`prepare_weights`, but with blocks of 16
    channels: word ``j`` of a lane is channels 4j to 4j+3."""
    return _lanes(pack(pad_axis(w, 3, BYTE_CHANNELS), Operand(8)), vec)


def _lanes_of_two_tiles(w: Int8Array, vec: int) -> Words:
    """The same for int4 values: [CB][R*S][KT/2/vec][32 lanes][vec]; a word has four channels of two neighbouring tiles,
    with those of the even tile in the lower half of each byte."""
    filters, height, width, channels = pad_axis(w, 3, BYTE_CHANNELS).shape
    tiles = pad_axis(w, 3, BYTE_CHANNELS).reshape(-1, 2, TILE_FILTERS, height, width, channels)
    codes = (tiles[:, 0] & 15) | (tiles[:, 1] & 15) << 4
    together = codes.astype(np.uint8).view(np.int8).reshape(filters // 2, height, width, channels)
    return _lanes(pack(together, Operand(8)), vec)


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
    return _lanes(pack_words(pad_axis(pad_axis(checked, 3, CHANNEL_BLOCK), 0, CHANNEL_BLOCK)), vec)


def _lanes(words: Words, vec: int) -> Words:
    """Words [filters][R][S][CB*4] in lane order."""
    filters, height, width, length = words.shape
    groups, taps, blocks = filters // (TILE_FILTERS * vec), height * width, length // BLOCK_WORDS
    split = words.reshape(groups, vec, TILE_FILTERS, taps, blocks, BLOCK_WORDS)
    lanes = split.transpose(4, 3, 0, 2, 5, 1)  # block, tap, group, o, j, v
    return np.ascontiguousarray(lanes).reshape(blocks, taps, groups, TILE_FILTERS * BLOCK_WORDS, vec)

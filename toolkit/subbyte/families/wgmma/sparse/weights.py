"""2:4 weights as the threads of a warpgroup read them: kept values, and metadata that locates them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.weights import MOST_PARTS, ORDERS, TILE_FILTERS
from subbyte.numerics.int4 import Int8Array, Words
from subbyte.numerics.layout import pad_axis
from subbyte.numerics.values import check_values
from subbyte.workload.operand import Operand

INT4_2OF4 = Operand(4, sparsity="2:4")
STEP_CHANNELS = 64
"""Input channels of one instruction."""
GROUP = 4


@checked
def prepare_sparse_weights(w: Int8Array, groups: int = 1, order: str = "rows", tiles: int | None = None) -> Words:
    """int4 values int8 [K,R,S,C], at most two of four neighbouring channels nonzero -> uint32
    [tiles][R][groups][steps][S][384], the order of :func:`prepare_warpgroup_weights` without its splits.

    A step is 64 input channels, in the order of K: 16 bytes each for the first four of every eight channels and for the
    last four, of one block of 32 and of the next one. Of the 384 words of a fragment, thread ``32*warp + 4*g + q`` has
    two in the first 256: the kept values of the output channels ``16*warp + 2*g`` (low nibbles) and the next one (high
    nibbles), for k ``8*q`` to ``8*q + 7`` and for k 32 higher. In the last 128 it has the inverted metadata of output
    channel ``16*warp + 2*g + q%2``, for k from ``32*(q//2)`` on: two bits for each kept value (PTX ISA, "Sparse matrix
    storage"). Zeros beyond K and C. Raises InvalidInput.
    """
    whole(groups, "groups", 1, MOST_PARTS)
    if order not in ORDERS:
        raise InvalidInput(f"order={order!r}: allowed: {', '.join(ORDERS)}")
    given = check_values(w, "w", INT4_2OF4, (None, None, None, None))
    padded = pad_axis(pad_axis(given, 3, STEP_CHANNELS), 0, TILE_FILTERS)
    steps = padded.shape[3] // STEP_CHANNELS
    if steps % groups:
        raise InvalidInput(f"groups={groups}: it must divide {steps} times {STEP_CHANNELS} channels")
    needed = padded.shape[0] // TILE_FILTERS
    wanted = needed if tiles is None else whole(tiles, "tiles", needed, 8 * needed + 64)
    filled = np.zeros((wanted * TILE_FILTERS, *padded.shape[1:]), np.int8)
    filled[: padded.shape[0]] = padded
    values, places = compressed(in_order_of_k(filled))
    _, height, width, _ = filled.shape
    # axes: tile 0, warp 1, g 2, filter of two 3, r 4, s 5, group 6, step 7, half 8 of 32 k, q 9 (8 k), 4 kept values 10
    shape = (wanted, 4, 8, 2, height, width, groups, steps // groups, 2, 4, 4)
    nibbles = values.reshape(shape) & 15
    packed = (nibbles[:, :, :, 0] | nibbles[:, :, :, 1] << 4).astype(np.uint8)
    # without the filters: tile 0, warp 1, g 2, r 3, s 4, group 5, step 6, half 7, q 8, byte 9
    words = np.ascontiguousarray(packed).view(np.uint32)[..., 0]
    bits = places.reshape(*shape[:8], 2, 16).astype(np.uint32) << 2 * np.arange(16, dtype=np.uint32)
    metadata = ~bits.sum(axis=-1, dtype=np.uint32)  # tile 0, warp 1, g 2, filter 3, r 4, s 5, group 6, step 7, half 8
    outer = {"rows": (0, 3, 5, 6, 4), "groups": (0, 5, 3, 6, 4), "taps": (0, 5, 3, 4, 6)}[order]
    of_values = words.transpose(*outer, 1, 2, 8, 7)
    of_metadata = np.moveaxis(metadata, 3, -1).transpose(*outer, 1, 2, 7, 8)
    ends = (*of_values.shape[:5], -1)
    return np.ascontiguousarray(np.concatenate([of_values.reshape(ends), of_metadata.reshape(ends)], axis=-1))


def in_order_of_k(w: Int8Array) -> Int8Array:
    """Channels (the last axis, a multiple of 32) in the order of K: of each block of 32 the first four of every eight,
    then the last four. Neighbours stay neighbours."""
    blocks = w.reshape(*w.shape[:-1], -1, 4, 2, GROUP)
    return np.ascontiguousarray(np.swapaxes(blocks, -3, -2)).reshape(w.shape)


def compressed(w: Int8Array) -> tuple[Int8Array, NDArray[np.uint8]]:
    """The two kept values of every four neighbours (of the last axis) and their positions, ascending, both [..., C/2].
    If fewer than two are nonzero, zeros are kept as well."""
    grouped = w.reshape(*w.shape[:-1], -1, GROUP)
    first = np.argsort(grouped == 0, axis=-1, kind="stable")[..., :2]  # places of what is not 0 come first
    places = np.sort(first, axis=-1)
    kept = np.take_along_axis(grouped, places, axis=-1)
    ends = (*w.shape[:-1], -1)
    return kept.reshape(ends), places.reshape(ends).astype(np.uint8)

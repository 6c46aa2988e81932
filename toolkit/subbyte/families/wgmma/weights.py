"""Weights as the threads of a warpgroup read them: one 16-byte load is a whole fragment of a wgmma operand."""

from __future__ import annotations

import numpy as np

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import Int8Array, Words, check_int4
from subbyte.numerics.layout import pad_axis
from subbyte.workload.conv import CHANNEL_BLOCK

MOST_PARTS = 1 << 20
"""Of the input channels: far beyond any layer's."""
TILE_FILTERS = 64
"""Output channels of one wgmma."""
ORDERS = {"rows": (0, 6, 4, 7, 8, 5), "groups": (0, 6, 7, 4, 8, 5), "taps": (0, 6, 7, 4, 5, 8)}
"""Outer axes: tile, split, kernel row, group of channels, step, kernel column; see the axes at the end."""


@checked
def prepare_warpgroup_weights(
    w: Int8Array, split: int = 1, groups: int = 1, order: str = "rows", tiles: int | None = None
) -> Words:
    """int4 values int8 [K,R,S,C] -> uint32 [tiles][split][R][groups][steps][S][128 threads][4], the warpgroup order.

    ``tiles`` of 64 output channels (default: as many as K needs); ``split`` blocks of a cluster and ``groups`` parts
    divide the blocks of 32 input channels; ``order`` "groups" puts ``groups`` before ``R``, "taps" also ``steps``
    behind ``S``. Thread ``32*warp + 4*g +
    q`` holds in word ``i`` the output channel ``16*warp + 2*g + i%2`` and the four input channels ``2*k + i//2``,
    ``k = 4*q .. 4*q+3``: of block ``2*step`` in the low nibbles, of block ``2*step + 1`` in the high ones, or of block
    ``step`` in the low ones alone where the blocks of a stage are odd in number. Zeros beyond K and C. Raises
    InvalidInput.
    """
    whole(split, "split", 1, MOST_PARTS)
    whole(groups, "groups", 1, MOST_PARTS)
    checked = check_int4(w, "w", (None, None, None, None))
    if order not in ORDERS:
        raise InvalidInput(f"order={order!r}: allowed: {', '.join(ORDERS)}")
    padded = pad_axis(pad_axis(checked, 3, CHANNEL_BLOCK), 0, TILE_FILTERS)
    blocks = padded.shape[3] // CHANNEL_BLOCK
    if blocks % (split * groups):
        raise InvalidInput(f"split={split}, groups={groups}: their product must divide {blocks} blocks of 32 channels")
    needed = padded.shape[0] // TILE_FILTERS
    wanted = needed if tiles is None else whole(tiles, "tiles", needed, 8 * needed + 64)
    filled = np.zeros((wanted * TILE_FILTERS, *padded.shape[1:]), np.int8)
    filled[: padded.shape[0]] = padded
    _, height, width, _ = filled.shape
    part = blocks // (split * groups)
    halves = 2 if part % 2 == 0 else 1
    nibbles = filled.reshape(wanted, 4, 8, 2, height, width, split, groups, part // halves, halves, 4, 4, 2) & 15
    low = nibbles[:, :, :, :, :, :, :, :, :, 0]
    high = nibbles[:, :, :, :, :, :, :, :, :, 1] if halves == 2 else np.zeros_like(low)
    packed = (low | high << 4).astype(np.uint8)
    # axes: tile 0, warp 1, g 2, parity 3, r 4, s 5, split 6, group 7, step 8, q 9, byte 10, half of K 11
    outer = ORDERS[order]
    ordered = np.ascontiguousarray(packed.transpose(*outer, 1, 2, 9, 11, 3, 10))
    return ordered.view(np.uint32).reshape(*(packed.shape[axis] for axis in outer), 128, 4)

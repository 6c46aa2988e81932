"""Weights as the threads of a warpgroup read them: one 16-byte load is a whole fragment of a wgmma operand."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput
from subbyte.numerics.int4 import Int8Array, Words
from subbyte.numerics.layout import pad_axis
from subbyte.numerics.values import check_values
from subbyte.workload.conv import CHANNEL_BLOCK
from subbyte.workload.operand import Operand

MOST_PARTS = 1 << 20
"""Bound on the parts of the input channels: far beyond any layer."""
WHOLE = "8w8"
"""Kind of 8-bit weights with 8-bit activations: a byte does not hold bits of two blocks."""
TILE_FILTERS = 64
"""Output channels of one wgmma."""
ORDERS = {"rows": (0, 6, 4, 7, 8, 5), "groups": (0, 6, 7, 4, 8, 5), "taps": (0, 6, 7, 4, 5, 8)}
"""Outer axes: tile, split, kernel row, group of channels, step, kernel column; see the axes at the end."""


_FORM = re.compile(
    r"warpgroup(?P<kind>|8w4|8w8)-(?P<split>\d+)-(?P<groups>\d+)-(?P<order>\w+)-(?P<tiles>\d+)"
    r"(?:\.z(?P<zero>-?\d+)s(?P<scale>\d+)k(?P<filters>\d+))?"
)
"""The prepared layout (:attr:`~subbyte.families.wgmma.plan.WgmmaPlan.weight_form`): weights of 4 or 8 bits with
8-bit activations (empty: int4 with 4-bit ones), the arguments of the function below; with a zero point the power of two
by which sums are scaled, and the number of filters after padding."""


def weights_of_form(form: str, w: NDArray[np.int8]) -> Words | None:
    """Weights [K,R,S,C] in a layout of dense kernels as flat uint32; None for another layout. Raises InvalidInput."""
    found = _FORM.fullmatch(form)
    if found is None:
        return None
    how = int(found["split"]), int(found["groups"]), found["order"], int(found["tiles"])
    words = prepare_warpgroup_weights(w, *how, beside=found["kind"]).reshape(-1)
    if found["zero"] is None:
        return words
    sums = np.zeros(int(found["filters"]), np.int64)
    sums[: w.shape[0]] = w.astype(np.int64).sum(axis=(1, 2, 3))
    added = -int(found["zero"]) * sums << np.int64(int(found["scale"]))
    return np.concatenate([words, (added & 0xFFFFFFFF).astype(np.uint32)])


@checked
def prepare_warpgroup_weights(
    w: Int8Array, split: int = 1, groups: int = 1, order: str = "rows", tiles: int | None = None, beside: str = ""
) -> Words:
    """int4 values int8 [K,R,S,C] -> uint32 [tiles][split][R][groups][steps][S][128 threads][4], the warpgroup order.

    ``tiles`` of 64 output channels (default: as many as K needs); ``split`` blocks of a cluster and ``groups`` parts
    divide the blocks of 32 input channels; ``order`` "groups" puts ``groups`` before ``R``, "taps" also puts ``steps``
    after ``S``. Thread ``32*warp + 4*g + q`` holds in word ``i`` the output channel ``16*warp + 2*g + i%2`` and the
    four input channels ``2*k + i//2``, ``k = 4*q .. 4*q+3``: of block ``2*step`` in the low nibbles and block ``2*step
    + 1`` in the high ones or, if a stage has an odd number of blocks, only of block ``step`` in the low ones. Zeros
    beyond K and C.

    With 8-bit activations (``beside``), whose channels stay in order, the four channels are ``16*(i//2) + k``: int4
    values (``8w4``) in nibbles as above, int8 ones (``8w8``) as bytes of block ``step`` with every bit inverted, which
    kernels invert again. Raises InvalidInput.
    """
    whole(split, "split", 1, MOST_PARTS)
    whole(groups, "groups", 1, MOST_PARTS)
    checked = check_values(w, "w", Operand(8 if beside == WHOLE else 4), (None, None, None, None))
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
    halves = 2 if part % 2 == 0 and beside != WHOLE else 1
    outside = wanted, 4, 8, 2, height, width, split, groups, part // halves, halves
    if beside:  # half of K, q, byte
        values = filled.reshape(*outside, 2, 4, 4).swapaxes(10, 11).swapaxes(11, 12)
    else:  # q, byte, half of K
        values = filled.reshape(*outside, 4, 4, 2)
    if beside == WHOLE:
        packed = (~values[:, :, :, :, :, :, :, :, :, 0]).view(np.uint8)
    else:
        nibbles = values & 15
        low = nibbles[:, :, :, :, :, :, :, :, :, 0]
        high = nibbles[:, :, :, :, :, :, :, :, :, 1] if halves == 2 else np.zeros_like(low)
        packed = (low | high << 4).astype(np.uint8)
    # axes: tile 0, warp 1, g 2, parity 3, r 4, s 5, split 6, group 7, step 8, q 9, byte 10, half of K 11
    outer = ORDERS[order]
    ordered = np.ascontiguousarray(packed.transpose(*outer, 1, 2, 9, 11, 3, 10))
    return ordered.view(np.uint32).reshape(*(packed.shape[axis] for axis in outer), 128, 4)

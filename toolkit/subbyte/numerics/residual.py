"""Sums that wait for a later layer, as 16-bit integers in the order in which threads hold them.

Layout int16 [NB][P][Q][KB][8 g][4 t][2 a][2 b], NB = ceil(N/8), KB = ceil(K/16): of 16 channels and 8 images of a
pixel, channel g + 8a and image 2t + b. These are the places of a 16 x 8 accumulator tile: lane 4g + t of a warp holds
its four sums, 8 neighbouring bytes, and the warp's are 256. Sums of images and channels that only fill up are 0.

Index of an element: ``((((((n/8*P + p)*Q + q)*KB + k/16)*8 + k%8)*4 + n%8/2)*2 + k%16/8)*2 + n%2``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.numerics.arrays import Int32Array, check_array, describe
from subbyte.numerics.layout import pad_axis
from subbyte.workload.conv import BATCH_GROUP, ceil_div

Int16Array = NDArray[np.int16]
TILE_CHANNELS = 16
_TILE = (8, 4, 2, 2)


@checked
def to_residual(sums: NDArray[Any]) -> Int16Array:
    """Sums int32 [N,P,Q,K] -> int16 [NB][P][Q][KB][8][4][2][2].

    Raises InvalidInput for another dtype or number of axes, and for sums that 16 bits do not hold.
    """
    given = check_array(sums, "sums", np.int32, (None, None, None, None))
    narrow = given.astype(np.int16)
    if not np.array_equal(narrow, given):
        raise InvalidInput(f"sums holds {given.min()} to {given.max()}: a residual has 16 bits, -32768 to 32767")
    padded = pad_axis(pad_axis(narrow, 0, BATCH_GROUP), 3, TILE_CHANNELS)
    images, rows, columns, channels = padded.shape
    split = padded.reshape(images // BATCH_GROUP, 4, 2, rows, columns, channels // TILE_CHANNELS, 2, 8)
    return np.ascontiguousarray(split.transpose(0, 3, 4, 5, 7, 1, 6, 2))


@checked
def from_residual(words: Int16Array, n: int, k: int) -> Int32Array:
    """int16 [NB][P][Q][KB][8][4][2][2] -> sums int32 [n,P,Q,k]; what only fills up is ignored.

    Raises InvalidInput for another dtype or shape, and where n images or k channels do not fit.
    """
    given = check_array(words, "words", np.int16, (None, None, None, None, *_TILE))
    groups, rows, columns, blocks = given.shape[:4]
    if (groups, blocks) != (ceil_div(n, BATCH_GROUP), ceil_div(k, TILE_CHANNELS)):
        raise InvalidInput(f"words is {describe(words)}: expected the residual of n={n} images and k={k} channels")
    plain = given.transpose(0, 5, 7, 1, 2, 3, 6, 4).reshape(groups * BATCH_GROUP, rows, columns, -1)
    return plain[:n, :, :, :k].astype(np.int32)

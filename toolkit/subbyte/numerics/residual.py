"""Sums that wait for a later layer, as 16-bit integers in the order in which threads hold them.

Layout int16 [NB][P][Q][KB][8 n][32 k], NB = ceil(N/8), KB = ceil(K/32): 32 channels of an image lie together. A thread
of a kernel on bit planes that has 8 neighbouring channels of an image reads and writes them as 16 bytes, a warp 512
neighbouring bytes. Images and channels that only fill up hold anything.

Index of an element: ``((((n/8*P + p)*Q + q)*KB + k/32)*8 + n%8)*32 + k%32``.
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
GROUP_CHANNELS = 32
RESIDUAL = "int16"
"""Form of an argument that holds such sums."""


@checked
def to_residual(sums: NDArray[Any]) -> Int16Array:
    """Sums int32 [N,P,Q,K] -> int16 [NB][P][Q][KB][8][32], 0 in what only fills up.

    Raises InvalidInput for another dtype or number of axes, and for sums that 16 bits do not hold.
    """
    given = check_array(sums, "sums", np.int32, (None, None, None, None))
    narrow = given.astype(np.int16)
    if not np.array_equal(narrow, given):
        raise InvalidInput(f"sums holds {given.min()} to {given.max()}: a residual has 16 bits, -32768 to 32767")
    padded = pad_axis(pad_axis(narrow, 0, BATCH_GROUP), 3, GROUP_CHANNELS)
    images, rows, columns, channels = padded.shape
    split = padded.reshape(
        images // BATCH_GROUP, BATCH_GROUP, rows, columns, channels // GROUP_CHANNELS, GROUP_CHANNELS
    )
    return np.ascontiguousarray(split.transpose(0, 2, 3, 4, 1, 5))


@checked
def from_residual(words: Int16Array, n: int, k: int) -> Int32Array:
    """int16 [NB][P][Q][KB][8][32] -> sums int32 [n,P,Q,k]; what only fills up is ignored.

    Raises InvalidInput for another dtype or shape, and where n images or k channels do not fit.
    """
    shape = (None, None, None, None, BATCH_GROUP, GROUP_CHANNELS)
    given = check_array(words, "words", np.int16, shape)
    groups, rows, columns, blocks = given.shape[:4]
    if (groups, blocks) != (ceil_div(n, BATCH_GROUP), ceil_div(k, GROUP_CHANNELS)):
        raise InvalidInput(f"words is {describe(words)}: expected the residual of n={n} images and k={k} channels")
    plain = given.transpose(0, 4, 1, 2, 3, 5).reshape(groups * BATCH_GROUP, rows, columns, -1)
    return plain[:n, :, :, :k].astype(np.int32)


def residual_elements(n: int, rows: int, columns: int, k: int) -> int:
    """Elements of the residual of a map."""
    return ceil_div(n, BATCH_GROUP) * rows * columns * ceil_div(k, GROUP_CHANNELS) * BATCH_GROUP * GROUP_CHANNELS

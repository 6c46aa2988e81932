"""Sums kept for a later layer, as integers of 16 or 32 bits in the order in which threads hold them.

Layout int16 [NB][P][Q][KB][8 n][32 k], NB = ceil(N/8), KB = ceil(K/32): 32 channels of an image are adjacent. A thread
of a kernel on bit planes that has 8 neighbouring channels of an image reads and writes them as 16 bytes, a warp 512
contiguous bytes. The contents of padding images and channels are undefined.

Index of an element: ``((((n/8*P + p)*Q + q)*KB + k/32)*8 + n%8)*32 + k%32``.

With 32 bits, four sums are 16 bytes: int32 [NB][P][Q][KB][2 h][8 n][4 t][4 i], channel 8 t + 4 h + i of 32. A thread
has its 8 channels in two pieces, a warp twice 512 contiguous bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.arrays import Int32Array, check_array, describe
from subbyte.numerics.layout import pad_axis
from subbyte.workload.conv import BATCH_GROUP, ceil_div

Int16Array = NDArray[np.int16]
GROUP_CHANNELS = 32
NARROW, WIDE = 16, 32
"""Widths of such a sum in bits."""
FORMS = {NARROW: "int16", WIDE: "int32"}
"""Form of an argument that holds such sums, by width."""
LARGEST = {NARROW: (1 << 15) - 1, WIDE: (1 << 29) - 1}
"""Largest magnitude of a sum that kernels add or keep, by width; with 32 bits, differences from thresholds must fit as
well."""


def source_of(form: str) -> str:
    """The output of an earlier kernel that a residual of this form holds: ``Sum``, sums that it kept, or ``Out``, its
    values."""
    return "Sum" if form in FORMS.values() else "Out"


def residual_width(bits: int, name: str) -> int:
    """``bits`` unchanged. Raises InvalidInput for anything but 16 and 32."""
    if type(bits) is not int or bits not in FORMS:
        raise InvalidInput(f"{name}={shown(bits)}: sums for a later layer have {NARROW} or {WIDE} bits")
    return bits


@checked
def to_residual(sums: NDArray[Any], bits: int = NARROW) -> Int16Array | Int32Array:
    """Sums int32 [N,P,Q,K] -> int16 [NB][P][Q][KB][8][32], or with 32 ``bits`` int32 [NB][P][Q][KB][2][8][4][4];
    padding is 0.

    Raises InvalidInput for another dtype or number of axes, other bits, and sums that do not fit in the bits.
    """
    given = check_array(sums, "sums", np.int32, (None, None, None, None))
    if residual_width(bits, "bits") == WIDE:
        return _wide(given)
    narrow = given.astype(np.int16)
    if not np.array_equal(narrow, given):
        raise InvalidInput(f"sums holds {given.min()} to {given.max()}: a residual has 16 bits, -32768 to 32767")
    return np.ascontiguousarray(_grouped(narrow).transpose(0, 2, 3, 4, 1, 5))


def _wide(given: Int32Array) -> Int32Array:
    most = LARGEST[WIDE]
    if given.size and not -most <= int(given.min()) <= int(given.max()) <= most:
        raise InvalidInput(f"sums holds {given.min()} to {given.max()}: of 32 bits they go from {-most} to {most}")
    split = _grouped(given)  # [NB][8 n][P][Q][KB][32]
    lanes = split.reshape(*split.shape[:5], 4, 2, 4)
    return np.ascontiguousarray(lanes.transpose(0, 2, 3, 4, 6, 1, 5, 7))


def _grouped(narrow: NDArray[Any]) -> NDArray[Any]:
    """[N,P,Q,K] padded, as [NB][8 n][P][Q][KB][32 k]."""
    padded = pad_axis(pad_axis(narrow, 0, BATCH_GROUP), 3, GROUP_CHANNELS)
    images, rows, columns, channels = padded.shape
    return padded.reshape(images // BATCH_GROUP, BATCH_GROUP, rows, columns, channels // GROUP_CHANNELS, GROUP_CHANNELS)


@checked
def from_residual(words: Int16Array | Int32Array, n: int, k: int) -> Int32Array:
    """int16 [NB][P][Q][KB][8][32] or int32 [NB][P][Q][KB][2][8][4][4] -> sums int32 [n,P,Q,k]; padding is ignored.

    Raises InvalidInput for another dtype or shape, and if n images or k channels do not fit.
    """
    given: NDArray[Any]
    if words.ndim == 8:
        wide = check_array(words, "words", np.int32, (None, None, None, None, 2, BATCH_GROUP, 4, 4))
        given = wide.transpose(0, 1, 2, 3, 5, 6, 4, 7).reshape(*wide.shape[:4], BATCH_GROUP, GROUP_CHANNELS)
    else:
        given = check_array(words, "words", np.int16, (None, None, None, None, BATCH_GROUP, GROUP_CHANNELS))
    groups, rows, columns, blocks = given.shape[:4]
    if (groups, blocks) != (ceil_div(n, BATCH_GROUP), ceil_div(k, GROUP_CHANNELS)):
        raise InvalidInput(f"words is {describe(words)}: expected the residual of n={n} images and k={k} channels")
    plain = given.transpose(0, 4, 1, 2, 3, 5).reshape(groups * BATCH_GROUP, rows, columns, -1)
    return plain[:n, :, :, :k].astype(np.int32)


def residual_elements(n: int, rows: int, columns: int, k: int) -> int:
    """Number of elements in the residual of a feature map."""
    return ceil_div(n, BATCH_GROUP) * rows * columns * ceil_div(k, GROUP_CHANNELS) * BATCH_GROUP * GROUP_CHANNELS

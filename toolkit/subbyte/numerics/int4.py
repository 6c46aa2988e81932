"""int4 values in numpy: checked as int8 arrays, packed eight to a 32-bit word (element i at bits 4i).

Dedicated names for the type that today's kernels multiply; :mod:`subbyte.numerics.values` and
:mod:`subbyte.numerics.words` do the same for every type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.numerics.arrays import Int8Array, Int32Array, Words, check_array, describe, without_mask
from subbyte.numerics.values import check_values
from subbyte.numerics.words import pack, unpack
from subbyte.workload.operand import WORD_BITS
from subbyte.workload.precision import INT4

__all__ = [
    "INT4_MAX", "INT4_MIN", "WORD_VALUES", "Int8Array", "Int32Array", "Words", "check_array", "check_int4", "describe",
    "pack_words", "unpack_words", "without_mask",
]  # fmt: skip

INT4_MIN, INT4_MAX = INT4.weights.least, INT4.weights.largest
WORD_VALUES = WORD_BITS // INT4.weights.bits
"""int4 values in one 32-bit word."""


def check_int4(array: Any, name: str, shape: Sequence[int | None] | None = None) -> Int8Array:
    """``array`` unchanged if it is int8, has ``shape`` (None = any size) and holds only -8 … 7.

    Raises InvalidInput naming the array, its dtype and shape, and what is expected.
    """
    return check_values(array, name, INT4.weights, shape)


@checked
def pack_words(values: Int8Array) -> Words:
    """int4 values int8 [..., 8m] -> uint32 [..., m]; element i of a word is at bits 4i.

    Raises InvalidInput for another dtype, a value outside -8 … 7 or a last axis that is not a multiple of 8.
    """
    return pack(values, INT4.weights)


@checked
def unpack_words(words: Words) -> Int8Array:
    """uint32 [..., m] -> int4 values int8 [..., 8m]; the inverse of :func:`pack_words`.

    Raises InvalidInput when ``words`` is not a uint32 array with at least one axis.
    """
    checked = check_array(words, "words", np.uint32)
    if checked.ndim == 0:
        raise InvalidInput("words is a single uint32: expected a numpy array uint32 [..., m]")
    return unpack(checked, INT4.weights)

"""int4 values in numpy: checked as int8 arrays, packed eight to a 32-bit word (element i at bits 4i)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, several
from subbyte.errors import InvalidInput, shown

INT4_MIN, INT4_MAX = -8, 7
WORD_VALUES = 8
"""int4 values in one 32-bit word."""

Int8Array = NDArray[np.int8]
Int32Array = NDArray[np.int32]
Words = NDArray[np.uint32]


def describe(array: Any) -> str:
    """What an argument is, for error messages: ``int8 [8, 56, 56, 64]`` or the type of a non-array."""
    if isinstance(array, np.ndarray):
        return f"{array.dtype} {list(array.shape)}"
    return f"a {type(array).__name__}"


def without_mask(array: Any, name: str) -> Any:
    """``array`` itself. Raises InvalidInput for a masked array, whose mask kernels and references would ignore."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput(
            f"{name} is a masked array: its mask would be ignored; fill it with .filled(0), or pass .data"
        )
    return array


def check_array(array: Any, name: str, dtype: type, shape: Sequence[int | None] | None = None) -> NDArray[Any]:
    """``array`` itself when it has this dtype and shape (None = any size or shape), else InvalidInput naming both."""
    if not isinstance(name, str):
        raise InvalidInput(f"name={shown(name)}: expected text, the array's name in messages")
    shape = None if shape is None else tuple(several(shape, "shape"))
    sizes = "[...]" if shape is None else "[" + ", ".join("any" if n is None else str(n) for n in shape) + "]"
    wanted = f"{np.dtype(dtype)} {sizes}"
    if not isinstance(without_mask(array, name), np.ndarray) or array.dtype != dtype:
        raise InvalidInput(f"{name} is {describe(array)}: expected a numpy array {wanted}; convert it with .astype")
    if shape is None:
        return array
    matches = all(size is None or size == got for size, got in zip(shape, array.shape, strict=False))
    if array.ndim != len(shape) or not matches:
        raise InvalidInput(f"{name} is {describe(array)}: expected {wanted}")
    return array


def check_int4(array: Any, name: str, shape: Sequence[int | None] | None = None) -> Int8Array:
    """``array`` itself when it is int8, has ``shape`` (None = any size) and holds only -8 … 7.

    Raises InvalidInput naming the array, what it is and what is expected.
    """
    checked = check_array(array, name, np.int8, shape)
    if checked.size and (checked.min() < INT4_MIN or checked.max() > INT4_MAX):
        raise InvalidInput(
            f"{name} holds values from {checked.min()} to {checked.max()}: expected int4 values {INT4_MIN} to "
            f"{INT4_MAX}; subbyte.numerics.quantize scales and clips real numbers"
        )
    return checked


@checked
def pack_words(values: Int8Array) -> Words:
    """int4 values int8 [..., 8m] -> uint32 [..., m]; element i of a word lies at bits 4i.

    Raises InvalidInput for another dtype, a value outside -8 … 7 or a last axis that is no multiple of 8.
    """
    checked = check_int4(values, "values")
    if checked.ndim == 0 or checked.shape[-1] % WORD_VALUES:
        raise InvalidInput(f"values is {describe(values)}: expected a last axis that is a multiple of {WORD_VALUES}")
    nibbles = checked.view(np.uint8) & np.uint8(15)
    pairs = np.ascontiguousarray(nibbles[..., 0::2] | (nibbles[..., 1::2] << np.uint8(4)))
    return pairs.view("<u4").astype(np.uint32, copy=False)


@checked
def unpack_words(words: Words) -> Int8Array:
    """uint32 [..., m] -> int4 values int8 [..., 8m]; the inverse of :func:`pack_words`.

    Raises InvalidInput when ``words`` is not a uint32 array with at least one axis.
    """
    checked = check_array(words, "words", np.uint32)
    if checked.ndim == 0:
        raise InvalidInput("words is a single uint32: expected a numpy array uint32 [..., m]")
    pairs = np.ascontiguousarray(checked).astype("<u4", copy=False).view(np.uint8)
    values = np.empty((*pairs.shape[:-1], 2 * pairs.shape[-1]), dtype=np.int8)
    values[..., 0::2] = (pairs << np.uint8(4)).view(np.int8) >> np.int8(4)
    values[..., 1::2] = pairs.view(np.int8) >> np.int8(4)
    return values

"""Checks of numpy arrays from callers: dtype and shape, with messages that name both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import several
from subbyte.errors import InvalidInput, shown

Int8Array = NDArray[np.int8]
Int32Array = NDArray[np.int32]
Words = NDArray[np.uint32]


def describe(array: Any) -> str:
    """An argument in an error message: ``int8 [8, 56, 56, 64]``, or the type of a non-array."""
    if isinstance(array, np.ndarray):
        return f"{array.dtype} {list(array.shape)}"
    return f"a {type(array).__name__}"


def without_mask(array: Any, name: str) -> Any:
    """``array`` unchanged. Raises InvalidInput for a masked array, whose mask kernels and references would ignore."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput(
            f"{name} is a masked array: its mask would be ignored; fill it with .filled(0), or pass .data"
        )
    return array


def check_array(array: Any, name: str, dtype: type, shape: Sequence[int | None] | None = None) -> NDArray[Any]:
    """``array`` unchanged if it has this dtype and shape (None = any size or shape), else InvalidInput naming both."""
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

"""Real numbers to int4 values and back: value = int4 * scale, symmetric around zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subbyte.arguments import checked, is_number
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.int4 import INT4_MAX, INT4_MIN, Int8Array, describe, without_mask


@checked
def quantize(array: ArrayLike, scale: float) -> Int8Array:
    """Nearest int4 values of ``array / scale`` (ties to even, clipped to -8 … 7) as int8 of the same shape.

    Raises InvalidInput for a scale that is not positive and finite, or an array that is not.
    """
    real, factor = _finite(array), positive(scale)
    if factor is None:
        raise InvalidInput(f"scale={shown(scale)}: expected a positive finite number; scale_for(array) gives one")
    return np.clip(np.rint(real / factor), INT4_MIN, INT4_MAX).astype(np.int8)


@checked
def scale_for(array: ArrayLike) -> float:
    """The smallest scale with which no value of ``array`` is clipped (1.0 for zeros). Raises InvalidInput."""
    real = _finite(array)
    if not real.size:
        raise InvalidInput("array is empty: expected at least one value")
    scale = max(float(real.max()) / INT4_MAX, float(real.min()) / INT4_MIN)
    return scale if scale > 0 else 1.0


def positive(value: Any) -> float | None:
    """``value`` as a float; None when it is no positive finite number (text is none)."""
    try:
        found = float(value) if is_number(value) else math.nan
    except OverflowError:
        found = math.inf
    return found if math.isfinite(found) and found > 0 else None


def real_array(array: Any, name: str) -> NDArray[np.float64]:
    """Numbers as float64. Raises InvalidInput for text, truth values, masked arrays and whatever is not numeric."""
    without_mask(array, name)
    try:
        found = np.asarray(array)
        if found.dtype.kind == "O" and all(type(value) is int for value in found.flat):  # beyond 64 bits
            found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} is not numeric ({error}): expected real numbers") from None
    if found.dtype.kind not in "iuf":
        raise InvalidInput(f"{name} is {describe(array)} and not numeric: expected real numbers")
    return found.astype(np.float64)


def _finite(array: ArrayLike) -> NDArray[np.float64]:
    real = real_array(array, "array")
    if not np.isfinite(real).all():
        raise InvalidInput("array holds NaN or infinity: expected finite real numbers")
    return real

"""Real numbers to int4 values and back: value = int4 * scale, symmetric around zero."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subbyte.data.int4 import INT4_MAX, INT4_MIN, Int8Array
from subbyte.errors import InvalidInput


def quantize(array: ArrayLike, scale: float) -> Int8Array:
    """Nearest int4 values of ``array / scale`` (ties to even, clipped to -8 … 7) as int8 of the same shape.

    Raises InvalidInput for a scale that is not positive and finite, or an array that is not.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise InvalidInput(f"scale={scale!r}: expected a positive finite number; scale_for(array) gives one")
    real = _finite(array)
    return np.clip(np.rint(real / scale), INT4_MIN, INT4_MAX).astype(np.int8)


def scale_for(array: ArrayLike) -> float:
    """The smallest scale with which no value of ``array`` is clipped (1.0 for zeros). Raises InvalidInput."""
    real = _finite(array)
    if not real.size:
        raise InvalidInput("array is empty: expected at least one value")
    scale = max(float(real.max()) / INT4_MAX, float(real.min()) / INT4_MIN)
    return scale if scale > 0 else 1.0


def _finite(array: ArrayLike) -> NDArray[np.float64]:
    try:
        real = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"array is not numeric ({error}): expected real numbers") from None
    if not np.isfinite(real).all():
        raise InvalidInput("array holds NaN or infinity: expected finite real numbers")
    return real

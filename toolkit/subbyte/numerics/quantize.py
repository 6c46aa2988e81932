"""Real numbers to values of a type and back: real = value * scale. The type is int4 unless another one is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subbyte.arguments import checked, is_number
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.arrays import describe, without_mask
from subbyte.workload.operand import Operand
from subbyte.workload.precision import INT4


@checked
def quantize(array: ArrayLike, scale: float, operand: Operand = INT4.activations) -> NDArray[Any]:
    """The values of a type (int4) nearest to ``array / scale``, clipped to its range, in its dtype (int8) and shape.

    Ties go to the even integer; for a type with gaps, such as a bipolar one, to the larger value. Where a sparse type
    has its zeros is up to the caller. Raises InvalidInput for a scale that is not positive and finite, or an array that
    is not finite.
    """
    real, factor = _finite(array), positive(scale)
    if factor is None:
        raise InvalidInput(f"scale={shown(scale)}: expected a positive finite number; scale_for(array) gives one")
    if operand.contiguous:
        return np.clip(np.rint(real / factor), operand.least, operand.largest).astype(operand.dtype)
    values = np.array(sorted(set(operand.values)))
    return values[np.searchsorted((values[1:] + values[:-1]) / 2, real / factor, side="right")].astype(operand.dtype)


@checked
def scale_for(array: ArrayLike, operand: Operand = INT4.activations) -> float:
    """The smallest scale with which no value of ``array`` is clipped to a type's range (1.0 for zeros).

    Raises InvalidInput, also for negative numbers if the type has none.
    """
    real = _finite(array)
    if not real.size:
        raise InvalidInput("array is empty: expected at least one value")
    high, low = float(real.max()), float(real.min())
    if (high > 0 >= operand.largest) or (low < 0 <= operand.least):
        raise InvalidInput(
            f"array goes from {low:g} to {high:g}: {operand.name} values go from {operand.least} to {operand.largest}"
        )
    scale = max([0.0, *(end / most for end, most in ((high, operand.largest), (low, operand.least)) if end * most > 0)])
    return scale if scale > 0 else 1.0


def positive(value: Any) -> float | None:
    """``value`` as a float; None if it is not a positive finite number (text is not)."""
    try:
        found = float(value) if is_number(value) else math.nan
    except OverflowError:
        found = math.inf
    return found if math.isfinite(found) and found > 0 else None


def real_array(array: Any, name: str) -> NDArray[np.float64]:
    """Numbers as float64. Raises InvalidInput for text, booleans, masked arrays and anything that is not numeric."""
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

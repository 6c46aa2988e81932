"""Requantization by one binary32 multiplication, proven exact for each channel when the parameters are prepared.

``y = clip(((acc + bias) * multiplier + 2^(shift-1)) >> shift)`` is a staircase: it never falls, and it has at most 15
steps. Another function that never falls and steps at the same sums is the same function. The kernel's is

    bits(fma(float(bits = scaled + added), factor, offset))

``scaled`` is the sum times 2^scale_log2, as the matrix instruction leaves it. ``added`` makes its bit pattern that of a
positive float: inside one binade such a float is an affine function of its bits, beyond it still a rising one, and
converting costs nothing. ``factor`` and ``offset`` are so small that the result is a denormal number n * 2^-149, whose
bit pattern is n (IEEE 754, 3.4): the multiplication has rounded to the integer n = y + 8 on its own. Negative results
have the sign bit set, so that saturating the pattern as an int32 to 0..15 is right for them as well.

A line through 15 steps always has room: with the slope taken from the Farey fractions of order 14 around the ideal one,
the steps stay right while the line moves by at least 1/14 of a sum (McIlroy 1985, "A note on discrete representation of
lines"), and ``added`` moves it by 2^-scale_log2. A channel is refused only when its steps span more sums than a binade
holds (2^23 patterns), or its sums more than the positive floats. One without any step needs no line.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subbyte.data.int4 import INT4_MIN, Int32Array
from subbyte.data.requant import Requantization
from subbyte.errors import InvalidInput

EXPONENT = -32
"""Binade of the floats that the sums become: small enough for factors to be normal numbers, and half of all positive
floats lie on either side."""
LARGEST_PRODUCT = 64
"""Magnitude of -8 * -8: a sum has at most this times its number of terms."""
_LEVELS = 15
_MANTISSA = 23
_DENORMAL = -149
_BIAS = 127
_LARGEST = 0x7F7FFFFF
"""Bits of the largest finite float."""
Int64Array = NDArray[np.int64]


def float_words(requant: Requantization, k_padded: int, scale_log2: int, terms: int) -> Int32Array | None:
    """The kernel's parameter buffer int32 [3][k_padded] of the floating-point form: what is added to the scaled sum, and
    the bits of factor and offset. None where some channel's values are not exact in it.

    Exact for every sum of ``terms`` products of two int4 values, times 2^scale_log2. Raises InvalidInput.
    """
    if k_padded < requant.channels:
        raise InvalidInput(f"k_padded={k_padded}: expected at least the {requant.channels} output channels")
    limit = LARGEST_PRODUCT * terms
    steps = _steps(requant, limit)
    added, factor, offset = _lines(requant, steps, limit, scale_log2)
    constant = ((steps <= -limit) | (steps > limit)).all(axis=1)
    added[constant], factor[constant] = _BIAS << _MANTISSA, 0
    offset[constant] = np.ldexp((steps[constant] <= -limit).sum(axis=1), _DENORMAL)
    if not _proven(steps, limit, scale_log2, added, factor, offset):
        return None
    buffer = np.zeros((3, k_padded), dtype=np.int32)
    buffer[0, : requant.channels] = added
    buffer[1, : requant.channels] = factor.view(np.int32)
    buffer[2, : requant.channels] = offset.view(np.int32)
    return buffer


def _steps(requant: Requantization, limit: int) -> Int64Array:
    """For each channel the least sum, in [-limit, limit + 1], that gives at least -7, -6, ... 7: int64 [K][15]."""
    shift, multiplier = requant.shift.astype(np.int64), requant.multiplier.astype(np.int64)
    levels = INT4_MIN + 1 + np.arange(_LEVELS, dtype=np.int64)
    low = np.full((requant.channels, _LEVELS), -limit, dtype=np.int64)
    high = np.full_like(low, limit + 1)  # the step lies in [low, high]
    bias = requant.bias.astype(np.int64)[:, None]
    while (low < high).any():
        middle = (low + high) >> 1
        product = (middle + bias) * multiplier[:, None]
        reached = (product >> shift[:, None]) + (product >> (shift[:, None] - 1) & 1) >= levels
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1, high))
    return low


def _lines(
    requant: Requantization, steps: Int64Array, limit: int, scale_log2: int
) -> tuple[Int32Array, NDArray[np.float32], NDArray[np.float32]]:
    """For each channel the line with most room: int32 and binary32 [K]."""
    ideal = np.ldexp(1.0 / np.maximum(requant.multiplier.astype(np.float64), 2.0**-30), requant.shift)
    pitch, position = _roomiest(steps, limit, np.minimum(ideal, 4.0 * limit))
    with np.errstate(over="ignore", under="ignore"):
        # one binade up: 2^23 patterns, of which a sum moves 2^scale_log2
        factor = np.ldexp(1.0 / pitch, _DENORMAL + _MANTISSA - EXPONENT - scale_log2).astype(np.float32)
        per_pattern = np.ldexp(factor.astype(np.float64), EXPONENT - _MANTISSA - _DENORMAL)
        # the line is 8 at the middle of the binade, up to less than half a level that goes into ``added``
        middle = 3 << (_MANTISSA - 1)
        offset = np.rint(8 - per_pattern * middle)
        at_eight = (8 - offset) / np.maximum(per_pattern, np.finfo(np.float64).tiny)  # the pattern, counted from 0
    # a sum of ``position`` is half a level below -7, which is 1 of 0..15: 7.5 levels below 8
    center = (position + 7.5 * pitch) * 2.0**scale_log2
    added = np.rint(at_eight - center) + (_BIAS + EXPONENT - 1 << _MANTISSA)
    return (
        np.clip(np.nan_to_num(added), -(2.0**31), 2.0**31 - 1).astype(np.int64).astype(np.int32),
        factor,
        np.ldexp(offset, _DENORMAL).astype(np.float32),
    )


def _roomiest(steps: Int64Array, limit: int, ideal: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Pitch (sums for each level) and the place of the first step of the line that keeps furthest from every sum that
    would fall on the wrong side."""
    counts = np.arange(1, _LEVELS, dtype=np.float64)
    pitches = np.stack([ideal, *(np.floor(ideal * n) / n for n in counts), *(np.ceil(ideal * n) / n for n in counts)])
    pitches = np.maximum(pitches, 2.0**-7)
    lines = pitches[..., None] * np.arange(_LEVELS)  # [candidate][K][15]
    inside_low, inside_high = steps > -limit, steps <= limit  # a step beyond the possible sums may lie anywhere there
    # The line is right where its step lies in (step - 1, step].
    most = np.where(inside_high, steps - lines, np.inf).min(axis=-1)
    least = np.where(inside_low, steps - 1 - lines, -np.inf).max(axis=-1)
    room = most - least
    best = np.argmax(room, axis=0)
    chosen = np.take_along_axis(np.stack([pitches, most, least]), best[None, None], axis=1)[:, 0]
    pitch, high, low = chosen
    low, high = np.where(np.isfinite(low), low, high - 1), np.where(np.isfinite(high), high, low + 1)
    return pitch, np.where(np.isfinite(low + high), (low + high) / 2, 0.0)


def _proven(
    steps: Int64Array,
    limit: int,
    scale_log2: int,
    added: Int32Array,
    factor: NDArray[np.float32],
    offset: NDArray[np.float32],
) -> bool:
    """The computation steps where the requantization does, and never falls, for every channel."""
    scale = np.int64(1) << scale_log2
    lowest, highest = added.astype(np.int64) - limit * scale, added.astype(np.int64) + limit * scale
    tiny = np.finfo(np.float32).tiny
    regular = (lowest >= 0) & (highest <= _LARGEST) & ((factor >= tiny) | (factor == 0)) & np.isfinite(factor) & (np.abs(offset) < tiny)
    if not regular.all():
        return False
    levels = np.arange(1, _LEVELS + 1)
    for sums, above in ((steps - 1, False), (steps, True)):
        pattern = np.clip(sums * scale + added[:, None].astype(np.int64), 0, _LARGEST)
        right = (_rounded(pattern, factor, offset) >= levels) == above
        if not (right | (np.abs(sums) > limit)).all():
            return False
    return True


def _rounded(pattern: Int64Array, factor: NDArray[np.float32], offset: NDArray[np.float32]) -> Int64Array:
    """fma of the float with these bits, in units of the least denormal, rounded to nearest even: exactly, in integers
    of 64 bits. Results beyond 2^23 units are too large or too small, but on the right side of every level."""
    mantissa, exponent = np.frexp(factor.astype(np.float64))
    whole = np.ldexp(mantissa, _MANTISSA + 1).astype(np.int64)[:, None]
    product = ((np.int64(1) << _MANTISSA) | pattern & ((1 << _MANTISSA) - 1)) * whole  # below 2^48
    power = exponent.astype(np.int64)[:, None] - (_MANTISSA + 1) + (pattern >> _MANTISSA) - _BIAS - _MANTISSA - _DENORMAL
    down = np.clip(-power, 0, 62)
    floor = product >> down
    rest = product - (floor << down)
    half = np.int64(1) << np.maximum(down, 1) - 1
    units = np.ldexp(offset.astype(np.float64), -_DENORMAL).astype(np.int64)[:, None]
    total = floor + units  # the offset is a whole number of units
    return total + ((rest > half) | ((rest == half) & (total % 2 == 1)))

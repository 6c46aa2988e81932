"""Requantization, and thresholds, by one binary32 multiplication, proven exact for each channel in advance.

``y = clip(((acc + bias) * multiplier + 2^(shift-1)) >> shift)`` is a staircase: it is non-decreasing, and it has at
most 15 steps. Another non-decreasing function that steps at the same sums is the same function. The kernel's is

    bits(fma(float(bits = scaled + added), factor, offset))

``scaled`` is the sum times 2^scale_log2, as the matrix instruction leaves it. ``added`` makes its bit pattern that of a
positive float: inside one binade such a float is an affine function of its bits, beyond it still an increasing one, and
the conversion costs nothing. ``factor`` and ``offset`` are so small that the result is a denormal number n * 2^-149,
whose bit pattern is n (IEEE 754, 3.4): the multiplication itself has rounded to the integer n, which is y + 8 for int4
outputs and y for uint4 ones. Negative results have the sign bit set, so that saturating the pattern as an int32 to
0..15 is right for them as well.

A line through 15 steps always has room: with the slope taken from the Farey fractions of order 14 around the ideal one,
the steps stay right while the line moves by at least 1/14 of a sum (McIlroy 1985, "A note on discrete representation of
lines"), and ``added`` moves it by 2^-scale_log2. A channel is rejected only when its steps span more sums than a binade
holds (2^23 patterns), or its sums span more than the positive floats. A channel without any step needs no line.

Thresholds are by themselves a staircase of 2^q - 1 steps, and lie on a line if they are as evenly spaced as a
normalization makes them: the line then replaces as many comparisons, for q up to 4.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.requant import MOST_SCALED, Requantization, check_padded
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.precision import INT4

EXPONENT = -32
"""Binade of the floats that the sums become: small enough for factors to be normal numbers, with about as many positive
floats below it as above."""
MOST_TERMS = 1 << 25
"""Most products in a sum: beyond it, an int32 could not hold the sum."""
LARGEST_PRODUCT = INT4.largest_product
"""Magnitude of -8 * -8: a sum is at most this times its number of terms."""
LEAST_PITCH = 2.0**-7
"""Fewest sums per level: below it the offset is no longer a denormal number."""
MOST_SUM = (1 << 31) - 2
LINE_SCALE_LOG2 = 4
"""Sums of bit products are multiplied by two to this power: room between them for the steps of a line."""
_LEVELS = 15
_MANTISSA = 23
_BINADE = 1 << _MANTISSA
_BIAS = 127
_LARGEST = 0x7F7FFFFF
"""Bits of the largest finite float."""
_PER_PATTERN = 2.0 ** (149 + EXPONENT - _MANTISSA)
"""The difference between adjacent patterns for a factor of 1, in units of the least denormal number."""
Int64Array = NDArray[np.int64]


@checked
def float_words(requant: Requantization, k_padded: int, scale_log2: int, terms: int) -> Int32Array | None:
    """The kernel's parameter buffer int32 [3][k_padded] of the floating-point form: the constant added to the scaled
    sum, and the bits of factor and offset. None if some channel's values are not exact in this form.

    Exact for every sum of ``terms`` products of two int4 values, times 2^scale_log2. Only for four-bit outputs (int4 or
    uint4), which have the 15 steps of this form; None for others. Raises InvalidInput.
    """
    if not isinstance(requant, Requantization):
        raise InvalidInput(f"requant={shown(requant)}: expected a Requantization")
    check_padded(k_padded, requant.channels)
    scale_log2, terms = whole(scale_log2, "scale_log2", 0, MOST_SCALED), whole(terms, "terms", 1, MOST_TERMS)
    if requant.output.largest - requant.output.least != _LEVELS or requant.added is not None:
        return None
    limit = LARGEST_PRODUCT * terms
    steps = _steps(requant, limit)
    words = _words(steps, _ideal(requant, limit), limit, scale_log2)
    if words is None:
        return None
    padding = np.full(k_padded - requant.channels, -requant.output.least, dtype=np.int64)
    return np.concatenate([words, _constant(padding)], axis=1)


@checked
def begun_words(requant: Requantization, k_padded: int, scale_log2: int, terms: int, most: int) -> Int32Array | None:
    """Words int32 [3][k_padded] like those of :func:`float_words`, for sums that start at a small number, 0 to
    ``most``, so that no sum is negative: bit patterns below 2^24 are the numbers themselves, in units of 2^-149. None
    if some channel's values are not exact in this form.

    Exact for every sum of ``terms`` products of two int4 values, times 2^scale_log2. Only for four-bit outputs. Raises
    InvalidInput.
    """
    if not isinstance(requant, Requantization):
        raise InvalidInput(f"requant={shown(requant)}: expected a Requantization")
    check_padded(k_padded, requant.channels)
    scale_log2, terms = whole(scale_log2, "scale_log2", 0, MOST_SCALED), whole(terms, "terms", 1, MOST_TERMS)
    if requant.output.largest - requant.output.least != _LEVELS or requant.added is not None:
        return None
    limit = LARGEST_PRODUCT * terms
    least = limit << scale_log2
    steps = _steps(requant, limit)
    words = _begun_lines(steps, _ideal(requant, limit), limit, scale_log2)
    constant = ((steps <= -limit) | (steps > limit)).all(axis=1)
    words[:, constant] = _constant((steps[constant] <= -limit).sum(axis=1), least)
    if not ((words[0] >= least) & (words[0] <= most)).all() or not _proven(steps, limit, scale_log2, words):
        return None
    padding = np.full(k_padded - requant.channels, -requant.output.least, dtype=np.int64)
    return np.concatenate([words, _constant(padding, least)], axis=1)


@checked
def threshold_words(thresholds: Thresholds, k_padded: int, scale_log2: int, limit: int) -> Int32Array | None:
    """Words int32 [3][k_padded] like those of :func:`float_words` that give the number of levels that a sum reaches,
    saturated to 0 .. 2^q - 1; None if some channel's levels are not on a line, or there are more than 15.

    Exact for sums of magnitude up to ``limit``, times 2^scale_log2. The rank is that number; in a channel with a flip,
    with all its q bits inverted. Padding channels give 0. A small scale leaves no room between sums, a large one few
    sums in a binade; with 2^4, normalizations to up to four bits are lines (tested for sums up to 20,000). Raises
    InvalidInput.
    """
    check_padded(k_padded, thresholds.channels)
    scale_log2, limit = whole(scale_log2, "scale_log2", 0, MOST_SCALED), whole(limit, "limit", 1, MOST_SUM)
    if len(thresholds.levels) > _LEVELS:
        return None
    levels = np.where(thresholds.flip, thresholds.levels[::-1], thresholds.levels).T.astype(np.int64)
    steps = np.clip(levels, -limit, limit + 1)
    words = _words(steps, _pitch(steps, limit), limit, scale_log2)
    if words is None:
        return None
    return np.concatenate([words, _constant(np.zeros(k_padded - thresholds.channels, dtype=np.int64))], axis=1)


def _ideal(requant: Requantization, limit: int) -> NDArray[np.float64]:
    """Sums per level, float64 [K]."""
    ideal = 1.0 / np.maximum(requant.multiplier, 2.0**-30) * np.exp2(requant.shift)
    return np.minimum(ideal, 4.0 * limit)


def _words(steps: Int64Array, ideal: NDArray[np.float64], limit: int, scale_log2: int) -> Int32Array | None:
    """The words int32 [3][K] for a staircase per channel; None if one of them is not proven."""
    words = _lines(steps, ideal, limit, scale_log2)
    constant = ((steps <= -limit) | (steps > limit)).all(axis=1)
    level = (steps[constant] <= -limit).sum(axis=1)
    words[:, constant] = _constant(level)
    return words if _proven(steps, limit, scale_log2, words) else None


def _pitch(steps: Int64Array, limit: int) -> NDArray[np.float64]:
    """The middle of the possible slopes, in sums per step, of the lines through a staircase [K][L]."""
    inside = (steps > -limit) & (steps <= limit)
    most, least = np.full(len(steps), np.inf), np.zeros(len(steps))
    for low, high in combinations(range(steps.shape[1]), 2):
        apart = (steps[:, high] - steps[:, low]).astype(np.float64)
        least = np.maximum(least, (apart - 1) / (high - low))
        both = inside[:, low] & inside[:, high]  # a step that no sum reaches, or that all do, may be further away
        most = np.where(both, np.minimum(most, (apart + 1) / (high - low)), most)
    return np.maximum(np.where(np.isfinite(most), (least + most) / 2, least + 1), LEAST_PITCH)


def _constant(level: Int64Array, added: int = _BIAS << _MANTISSA) -> Int32Array:
    """The words of channels in which every sum reaches ``level`` steps: int32 [3][K]. Channels that pad a block are of
    this kind; for int4 they hold 0, which is 8 steps, like those of the integer form."""
    return np.stack([np.full_like(level, added), np.zeros_like(level), level]).astype(np.int32)


def _steps(requant: Requantization, limit: int) -> Int64Array:
    """For each channel the least sum, in [-limit, limit + 1], that gives at least the second, third ... value of the
    output (int4: -7, -6, ... 7): int64 [K][15]."""
    shift, multiplier, bias = (
        array.astype(np.int64)[:, None] for array in (requant.shift, requant.multiplier, requant.bias)
    )
    levels = requant.output.least + 1 + np.arange(_LEVELS, dtype=np.int64)
    low = np.full((requant.channels, _LEVELS), -limit, dtype=np.int64)
    high = np.full_like(low, limit + 1)  # the step lies in [low, high]
    while (low < high).any():
        middle = (low + high) >> 1
        product = (middle + bias) * multiplier
        reached = (product >> shift) + (product >> (shift - 1) & 1) >= levels
        low = np.where(reached, low, np.minimum(middle + 1, high))
        high = np.where(reached, middle, high)
    return low


def _lines(steps: Int64Array, ideal: NDArray[np.float64], limit: int, scale_log2: int) -> Int32Array:
    """For each channel with at least one step, the line with the most room, as words int32 [3][K]."""
    middle = (steps.shape[1] + 1) / 2
    pitch, position = _roomiest(steps, limit, ideal)
    factor = (1.0 / pitch / (_PER_PATTERN * 2.0**scale_log2)).astype(np.float32)
    per_pattern = factor.astype(np.float64) * _PER_PATTERN
    # In the middle of the binade the line is at the middle level, up to a part of a level that only ``added`` can
    # express.
    offset = np.rint(middle - per_pattern * (1.5 * _BINADE))
    at_middle = (middle - offset) / per_pattern  # patterns from where the line would be at 0 without an offset
    center = (position + (middle - 0.5) * pitch) * 2.0**scale_log2  # the first step is half a level below 1
    added = np.rint(at_middle - center) + (_BIAS + EXPONENT - 1) * _BINADE
    bits = np.abs(offset).astype(np.int64) | np.where(offset < 0, -(1 << 31), 0)
    return np.stack([added.clip(-(2.0**31), 2.0**31 - 1).astype(np.int64), factor.view(np.int32), bits]).astype(
        np.int32
    )


def _begun_lines(steps: Int64Array, ideal: NDArray[np.float64], limit: int, scale_log2: int) -> Int32Array:
    """The same for sums that start at the least number of whole levels, added by the offset, that makes none
    negative."""
    middle = (steps.shape[1] + 1) / 2
    pitch, position = _roomiest(steps, limit, ideal)
    factor = (1.0 / (pitch * 2.0**scale_log2)).astype(np.float32)
    center = (position + (middle - 0.5) * pitch) * 2.0**scale_log2
    slope = factor.astype(np.float64)
    offset = np.floor(middle - ((limit << scale_log2) + 0.5 + center) * slope)
    added = np.rint((middle - offset) / slope - center)
    bits = np.abs(offset).clip(0, 2.0**31 - 1).astype(np.int64) | np.where(offset < 0, -(1 << 31), 0)
    return np.stack([added.clip(-(2.0**31), 2.0**31 - 1).astype(np.int64), factor.view(np.int32), bits]).astype(
        np.int32
    )


def _roomiest(steps: Int64Array, limit: int, ideal: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Pitch (sums per level) and position of the first step of the line that stays furthest from every sum that would
    fall on the wrong side of a step: steps [K][levels]."""
    levels = steps.shape[1]
    counts = np.arange(1.0, levels)[:, None]
    pitches = np.concatenate([ideal[None], np.floor(ideal * counts) / counts, np.ceil(ideal * counts) / counts])
    pitches = np.maximum(pitches, LEAST_PITCH)
    lines = pitches[..., None] * np.arange(levels)  # [candidate][K][levels]
    # The line is right if its step lies in (step - 1, step]; a step outside the possible sums may be anywhere outside.
    most = np.where(steps <= limit, steps - lines, 2.0**62).min(axis=-1)
    least = np.where(steps > -limit, steps - 1 - lines, -(2.0**62)).max(axis=-1)
    best = np.argmax(most - least, axis=0)[None]
    pitch, high, low = (np.take_along_axis(values, best, axis=0)[0] for values in (pitches, most, least))
    return pitch, (low + high) / 2


def _proven(steps: Int64Array, limit: int, scale_log2: int, words: Int32Array) -> bool:
    """Whether the computation steps where the requantization does, and never decreases, for every channel."""
    scale = np.int64(1) << scale_log2
    added, factor, offset = words.astype(np.int64)[..., None]
    regular = (added - limit * scale >= 0) & (added + limit * scale <= _LARGEST)
    regular &= ((factor >= _BINADE) | (factor == 0)) & (factor <= _LARGEST) & ((offset & 0x7FFFFFFF) < _BINADE)
    if not regular.all():
        return False
    levels = np.arange(1, steps.shape[1] + 1)
    for sums, above in ((steps - 1, False), (steps, True)):
        pattern = np.clip(sums * scale + added, 0, _LARGEST)
        right = (_rounded(pattern, factor, offset) >= levels) == above
        if not (right | (np.abs(sums) > limit)).all():
            return False
    return True


def _rounded(pattern: Int64Array, factor: Int64Array, offset: Int64Array) -> Int64Array:
    """fma of floats with these bits, in units of the least denormal number, rounded to nearest even, exactly, in 64-bit
    integers. Results beyond 2^23 units are too large or too small, but on the right side of every level."""
    significand = np.where(pattern < _BINADE, pattern, _BINADE | pattern & (_BINADE - 1))  # the former are denormal
    product = significand * np.where(factor == 0, 0, _BINADE | factor & (_BINADE - 1))
    # The exponents of both, without the bias and with 24-bit integers as mantissas, and 149 for the unit.
    power = np.maximum(pattern >> _MANTISSA, 1) + (factor >> _MANTISSA) - 2 * (_BIAS + _MANTISSA) + 149
    down = np.clip(-power, 0, 62)
    floor = product >> down
    rest, half = product - (floor << down), np.int64(1) << np.maximum(down, 1) - 1
    total = floor + np.where(offset < 0, -(offset & 0x7FFFFFFF), offset)  # the offset is a whole number of units
    return total + ((rest > half) | ((rest == half) & (total % 2 == 1)))

"""Requantization: from an int32 accumulator to the (int4) input of the next layer, exactly, in integers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import flag, is_whole, number, several, whole
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.arrays import Int32Array, check_array, describe, without_mask
from subbyte.numerics.quantize import real_array
from subbyte.workload.conv import LARGEST_SIZE, ConvWorkload
from subbyte.workload.operand import Operand
from subbyte.workload.precision import INT4

MULTIPLIER_MAX = (1 << 31) - 1
SHIFT_MIN, SHIFT_MAX = 1, 62
ADDED_MAX = 1 << 24
"""Largest multiplier of a residual: its product with an 8-bit value never overflows the 64-bit sum."""
LARGEST_FACTOR = 1 << 20
"""Largest real scale of a residual."""
FIXED_BITS = 32
MOST_SCALED = 31
"""Largest power of two by which a matrix instruction may multiply sums."""
FIXED_SHIFT = 24
"""Largest shift of the fixed form after an atom that scales by 2^8."""
FIXED_SHIFTS = (FIXED_SHIFT, 28, 32)
"""For outputs of more than four bits: the largest shifts after atoms that scale by 2^4 and by 1, too."""
FIXED_TOLERANCE = 2.0**-9
"""Largest relative error of a scale at which the fixed form is preferred: 1/64 of a step at the end of the int4 range,
and correspondingly less for outputs with more bits."""

_WHOLE_RANGE: Any = None
_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Requantization:
    """``y = clip(((acc + bias) * multiplier + 2^(shift-1)) >> shift, lo, hi)`` for each output channel.

    With ``added`` int32 [K], multipliers -2^24 … 2^24 of an added tensor r of values (a residual), it is
    ``((acc + bias) * multiplier + r * added + 2^(shift-1)) >> shift``.

    ``bias``, ``multiplier`` (0 … 2^31-1) and ``shift`` (1 … 62) are int32 [K]; ``clip`` is (lo, hi) within the range of
    the ``output`` type, -8 … 7 for int4, by default all of it; (0, 7) for a ReLU. ``scale_error`` is the largest
    relative error of multiplier/2^shift against the real scale it was made from (0.0 if made from integers). Types
    with gaps (bipolar ones) cannot be rounded to. Raises InvalidInput.
    """

    bias: Int32Array
    multiplier: Int32Array
    shift: Int32Array
    clip: tuple[int, int] = _WHOLE_RANGE
    scale_error: float = 0.0
    output: Operand = INT4.output
    added: Int32Array | None = None

    def __post_init__(self) -> None:
        check_array(self.bias, "bias", np.int32, (None,))
        for name, least, most in (("multiplier", 0, MULTIPLIER_MAX), ("shift", SHIFT_MIN, SHIFT_MAX)):
            array = check_array(getattr(self, name), name, np.int32, self.bias.shape)
            if array.size and (array.min() < least or array.max() > most):
                raise InvalidInput(f"{name} holds {array.min()} to {array.max()}: expected {least} to {most}")
        if self.added is not None:
            array = check_array(self.added, "added", np.int32, self.bias.shape)
            if array.size and (array.min() < -ADDED_MAX or array.max() > ADDED_MAX):
                raise InvalidInput(f"added holds {array.min()} to {array.max()}: expected {-ADDED_MAX} to {ADDED_MAX}")
        if not self.bias.size:
            raise InvalidInput("bias is empty: expected one value for each output channel")
        clip: Any = self.clip
        object.__setattr__(self, "clip", check_clip(check_output(self.output) if clip is None else clip, self.output))
        object.__setattr__(self, "scale_error", number(self.scale_error, "scale_error"))
        for name in ("bias", "multiplier", "shift", *(("added",) if self.added is not None else ())):
            frozen = getattr(self, name).copy()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    @property
    def channels(self) -> int:
        """Number of output channels K."""
        return int(self.bias.size)

    def apply(self, acc: Int32Array, residual: NDArray[np.integer] | None = None) -> NDArray[Any]:
        """int32 [..., K] -> values of the output type in its dtype (int4: int8) [..., K], exact for every int32
        accumulator; ``residual``: the tensor that is added, integers of at most 8 bits in the same shape. Raises
        InvalidInput."""
        if (residual is None) != (self.added is None):
            said = "takes one: values [..., K]" if residual is None else "adds none; give it added=, int32 [K]"
            raise InvalidInput(f"residual {'missing' if residual is None else 'given'}: this requantization {said}")
        checked = check_array(acc, "acc", np.int32)
        if checked.shape[-1:] != self.bias.shape:
            raise InvalidInput(f"acc is {describe(acc)}: expected a numpy array int32 [..., {self.channels}]")
        shift = self.shift.astype(np.int64)
        product = (checked.astype(np.int64) + self.bias) * self.multiplier.astype(np.int64)
        if residual is not None and self.added is not None:
            if residual.shape != checked.shape:
                raise InvalidInput(f"residual is {describe(residual)}: expected {list(checked.shape)}, as the sums are")
            # The product stays 2^32 away from the ends of 64 bits; 8 + 24 bits are less.
            product += residual.astype(np.int64) * self.added
        # The bit below the cut is what adding 2^(shift-1) would carry; adding it afterwards cannot overflow.
        rounded = (product >> shift) + ((product >> (shift - 1)) & 1)
        return np.clip(rounded, *self.clip).astype(self.output.dtype)

    def fixed_words(self, k_padded: int, scale_log2: int) -> Int32Array | None:
        """The kernel's parameter buffer int32 [3][k_padded] of the fixed form; None if that form is not exact.

        The fixed form is one multiplication: the upper 32 bits of ``acc * 2^scale_log2 * row0 + offset``, where
        2^scale_log2 is the factor by which the matrix instruction scaled the sums, and the 64-bit offset (rows 1 and 2,
        low and high word) holds bias and rounding. It equals :meth:`apply` for every int32 value of the scaled sum if
        shift <= 32 - scale_log2, row 0 fits in 31 bits and the offset in 62. If a residual is added, row 3 is its
        multiplier, scaled by 2^scale_log2 like the sum, and fits in 31 bits too.
        """
        check_padded(k_padded, self.channels)
        scale_log2 = whole(scale_log2, "scale_log2", 0, MOST_SCALED)
        shift, multiplier = self.shift.astype(np.int64), self.multiplier.astype(np.int64)
        spare = FIXED_BITS - scale_log2 - shift
        if spare.min() < 0 or np.any(multiplier >= np.int64(1) << (31 - np.minimum(spare, 31))):
            return None
        buffer = np.zeros((3 if self.added is None else 4, k_padded), dtype=np.int32)
        limit = 1 << 62
        if self.added is not None:
            added = self.added.astype(np.int64) << np.minimum(spare, 31)
            if np.any(np.abs(added) >= np.int64(1) << 31):
                return None
            buffer[3, : self.channels] = added
            limit = 1 << 61  # room for the residual's product
        for channel in range(self.channels):
            factor = int(multiplier[channel]) << int(FIXED_BITS - shift[channel])
            offset = int(self.bias[channel]) * factor + (1 << (FIXED_BITS - 1))
            if abs(offset) >= limit:
                return None
            high, low = divmod(offset, 1 << 32)
            buffer[:3, channel] = factor >> scale_log2, low - (low >> 31 << 32), high
        return buffer

    def words(self, k_padded: int) -> Int32Array:
        """The kernel's parameter buffer int32 [3][k_padded]: bias, multiplier, shift (padding 0, 0, 1), and, if a
        residual is added, a fourth row with its multiplier."""
        check_padded(k_padded, self.channels)
        rows = [self.bias, self.multiplier, self.shift, *([] if self.added is None else [self.added])]
        buffer = np.zeros((len(rows), k_padded), dtype=np.int32)
        buffer[2] = 1
        buffer[:, : self.channels] = rows
        return buffer

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        lists: dict[str, Any] = {name: getattr(self, name).tolist() for name in ("bias", "multiplier", "shift")}
        output: dict[str, Any] = {} if self.output == INT4.output else {"output": self.output.name}
        if self.added is not None:
            output["added"] = self.added.tolist()
        return {**lists, "clip": list(self.clip), "scale_error": self.scale_error, **output}

    @classmethod
    def per_tensor(
        cls, k: int, multiplier: int, shift: int, bias: int | Int32Array = 0, relu: bool = False,
        output: Operand = INT4.output,
    ) -> Requantization:  # fmt: skip
        """One multiplier and shift for all ``k`` output channels; bias is an integer or int32 [k]. Raises
        InvalidInput."""
        channels(k)
        clip = _clip_for(flag(relu, "relu"), output)
        biases, multipliers = _int32("bias", bias, k), _int32("multiplier", multiplier, k)
        return cls(biases, multipliers, _int32("shift", shift, k), clip, output=output)

    @classmethod
    def from_scale(
        cls,
        scale: float | Sequence[float] | NDArray[Any],
        bias: int | Int32Array = 0,
        relu: bool = False,
        *,
        k: int | None = None,
        workload: ConvWorkload | None = None,
        output: Operand | None = None,
        added: float | Sequence[float] | NDArray[Any] | None = None,
    ) -> Requantization:
        """The dyadic requantization nearest to ``y = (acc + bias) * scale``, scale a number or real [K].

        K is the length of scale or bias, ``k``, or the workload's; the output type is ``output``, the workload's, or
        int4. The shift is 24, which every kernel's fixed form accepts, unless a scale would then be off by more than
        2^-9 (for 8-bit outputs 2^-13, and shifts 28 and 32, which kernels on bytes accept, are tried too); otherwise
        multipliers have 31 bits. The largest relative error is in ``scale_error``. ``added``: the scale of a residual
        r, a number or real [K], for ``y = (acc + bias) * scale + r * added``. Raises InvalidInput.
        """
        flag(relu, "relu")
        scales = _scales(scale, bias, k, workload)
        biases = _int32("bias", bias, scales.size)
        made_for = output or (INT4 if workload is None else workload.precision).output
        check_output(made_for)
        tolerance = math.ldexp(FIXED_TOLERANCE, min(0, INT4.output.bits - made_for.bits))
        wide = made_for.bits > INT4.output.bits and added is None
        shifts = FIXED_SHIFTS if wide else (FIXED_SHIFT,)
        for shared in shifts:
            pairs = [(round(math.ldexp(float(value), shared)), shared) for value in scales]
            within = all(_error(*pair, float(v)) <= tolerance for pair, v in zip(pairs, scales, strict=True))
            if within:
                break
        if added is not None:
            factors = _factors(added, scales.size)
            if not within or np.abs(factors).max() > 1.0:
                both = zip(scales, factors, strict=True)
                pairs = [_beside(_dyadic(float(value)), float(factor)) for value, factor in both]
        elif not within or max(multiplier for multiplier, _ in pairs) > MULTIPLIER_MAX:
            pairs = [_dyadic(float(value)) for value in scales]
        multiplier, shift = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
        error = max(_error(*pair, float(value)) for pair, value in zip(pairs, scales, strict=True))
        residual = None if added is None else np.rint(np.ldexp(factors, shift)).astype(np.int32)
        return cls(biases, multiplier, shift, _clip_for(relu, made_for), error, made_for, residual)

    @classmethod
    def random(
        cls, workload: ConvWorkload, rng: np.random.Generator, *, relu: bool = False, wide: bool = False
    ) -> Requantization:
        """One for which uniformly random operands of the workload's types give outputs over the whole output range.

        ``wide`` uses 31-bit multipliers, which need the general form. Mean and variance of a product of two such
        operands follow from the types (1/4 and 462 for int4), so the accumulator's spread is known.
        """
        check_random(workload, rng)
        flag(relu, "relu")
        flag(wide, "wide")
        types, depth = workload.precision, workload.r * workload.s * workload.c
        mean, variance = product_moments(types.weights, types.activations)
        # One decimal: recorded operands were drawn with the variance of int4 products rounded like this.
        spread = math.sqrt(max(round(variance, 1), 0.1) * depth)
        output = types.output
        levels, middle = output.largest - output.least + 1, (output.largest + output.least + 1) / 2
        scale = rng.uniform(0.7, 1.4, workload.k) * (levels / 4) / spread
        bias = rng.uniform(-0.5, 0.5, workload.k) * spread - mean * depth + middle / scale
        biases = np.rint(bias).astype(np.int32)
        if not wide:
            return cls.from_scale(scale, biases, relu, output=output)
        multiplier, shift = (np.array(column, dtype=np.int32) for column in zip(*map(_dyadic, scale), strict=True))
        return cls(biases, multiplier, shift, _clip_for(relu, output), output=output)


def with_residual(requant: Requantization, added: Operand, rng: np.random.Generator) -> Requantization:
    """The same with a residual of values of a type, which then changes outputs as much as the sums do: for tests."""
    reach = (requant.output.largest - requant.output.least) / (added.largest - added.least)
    scales = rng.uniform(0.4, 1.0, requant.channels) * rng.choice([-1.0, 1.0], requant.channels) * reach
    shift = np.minimum(requant.shift, 24)
    multiplier = requant.multiplier >> (requant.shift - shift)
    factors = np.rint(np.ldexp(scales, shift)).clip(-ADDED_MAX, ADDED_MAX).astype(np.int32)
    return replace(requant, shift=shift.astype(np.int32), multiplier=multiplier.astype(np.int32), added=factors)


def _factors(added: Any, count: int) -> NDArray[np.float64]:
    """A residual's real scales [K]. Raises InvalidInput."""
    factors = real_array(added, "added")
    if factors.shape not in ((), (count,)) or not (np.abs(factors) <= LARGEST_FACTOR).all():
        said = f"expected numbers of magnitude up to {LARGEST_FACTOR:,}, one or [{count}]"
        raise InvalidInput(f"added is {describe(factors)}: {said}")
    return np.broadcast_to(factors, (count,))


def _beside(pair: tuple[int, int], factor: float) -> tuple[int, int]:
    """(multiplier, shift) of a scale, with a shift at which a residual's factor has at most 24 bits."""
    multiplier, shift = pair
    spare = min(max(0, shift + math.frexp(factor)[1] - (ADDED_MAX.bit_length() - 1)), shift - SHIFT_MIN)
    found = (multiplier + (1 << spare >> 1)) >> spare, shift - spare
    scale = math.ldexp(multiplier, -shift)
    if _error(*found, scale) > FIXED_TOLERANCE or abs(math.ldexp(factor, found[1])) > ADDED_MAX:
        raise InvalidInput(f"added={factor:g} beside scale={scale:g}: too far apart for multipliers of one shift")
    return found


def product_moments(weights: Operand, activations: Operand) -> tuple[float, float]:
    """Mean and variance of a product of random operands, all values equally likely; in sparse types a share is 0."""
    means, squares = [], []
    for one in (weights, activations):
        share = one.share
        values = sorted(set(one.values))
        means.append(share * sum(values) / len(values))
        squares.append(share * sum(value * value for value in values) / len(values))
    mean = math.prod(means)
    return mean, math.prod(squares) - mean * mean


def _dyadic(scale: float) -> tuple[int, int]:
    """(multiplier, shift) with as many of 31 bits as the largest shift allows."""
    mantissa, exponent = math.frexp(scale)
    shift = min(31 - exponent, SHIFT_MAX)
    multiplier = round(math.ldexp(scale, shift))
    if multiplier > MULTIPLIER_MAX:
        multiplier, shift = round(mantissa * 2**30), shift - 1
    if shift < SHIFT_MIN:
        raise InvalidInput(f"scale={scale!r}: expected less than 2^30; scales of a quantized layer are far below 1")
    return multiplier, shift


def _error(multiplier: int, shift: int, scale: float) -> float:
    return abs(math.ldexp(multiplier, -shift) / scale - 1.0)


def check_output(output: Any) -> tuple[int, int]:
    """The range of a type to which results can be rounded and clipped. Raises InvalidInput for a type with gaps."""
    if not isinstance(output, Operand) or not output.contiguous:
        raise InvalidInput(f"output={shown(output)}: expected a type of consecutive integers, such as Operand(4)")
    return output.least, output.largest


def _clip_for(relu: bool, output: Operand) -> tuple[int, int]:
    low, high = check_output(output)
    return (max(0, low) if relu else low), high


def check_clip(clip: Any, output: Operand = INT4.output) -> tuple[int, int]:
    """``clip`` as two integers within the output type's range (int4: -8 <= lo <= hi <= 7).

    Raises InvalidInput for anything else, including fractions, and for a type with gaps.
    """
    least, largest = check_output(output)
    ends = several(clip, "clip: (lo, hi) of") if not isinstance(clip, str | bytes) else []
    whole_ends = len(ends) == 2 and all(map(is_whole, ends))
    if not whole_ends:
        raise InvalidInput(f"clip={shown(clip)}: expected two integers (lo, hi)")
    low, high = map(int, ends)
    if not least <= low <= high <= largest:
        raise InvalidInput(f"clip={shown(clip)}: expected {least} <= lo <= hi <= {largest}, two integers")
    return low, high


def channels(k: Any) -> int:
    """``k`` as a number of output channels. Raises InvalidInput."""
    if not is_whole(k) or not 1 <= k <= LARGEST_SIZE:
        raise InvalidInput(f"k={shown(k)}: expected at least one output channel, an integer up to {LARGEST_SIZE:,}")
    return int(k)


def check_random(workload: Any, rng: Any) -> None:
    """Raise InvalidInput unless these are a workload and a generator of random numbers."""
    given = ((workload, ConvWorkload), (rng, np.random.Generator))
    if wrong := [value for value, kind in given if not isinstance(value, kind)]:
        said = "a ConvWorkload and a generator, such as numpy.random.default_rng(0)"
        raise InvalidInput(f"{shown(wrong[0])}: expected {said}")


def one_count(sizes: Mapping[str, int | None], others: str = "k=, ") -> int:
    """The number of output channels on which all sources that are not None agree; ``others`` name further ones.
    Raises InvalidInput."""
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(set(known.values())) != 1:
        given = ", ".join(f"{name}: {size}" for name, size in known.items()) or "none given"
        raise InvalidInput(
            f"number of output channels K ({given}): expected one; pass {others}a workload or arrays [K]"
        )
    return next(iter(known.values()))


def check_padded(k_padded: Any, count: int) -> int:
    """``k_padded`` as a padded number of channels. Raises InvalidInput."""
    if not is_whole(k_padded) or not count <= k_padded <= LARGEST_SIZE:
        raise InvalidInput(f"k_padded={shown(k_padded)}: expected at least the {count} output channels, an integer")
    return int(k_padded)


def _integers(name: str, value: Any) -> NDArray[Any]:
    without_mask(value, name)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name}={shown(value)}: expected an integer or int32 [K]") from None
    if array.dtype.kind == "O" and array.ndim == 0 and is_whole(value):
        raise InvalidInput(f"{name}={shown(value)}: expected int32 values")
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise InvalidInput(f"{name} is {describe(array)}: expected an integer or int32 [K]")
    return array


def _int32(name: str, value: Any, k: int) -> Int32Array:
    array = _integers(name, value)
    if array.shape not in ((), (k,)):
        raise InvalidInput(f"{name} is {describe(array)}: expected an integer or int32 [{k}]")
    if array.min() < _INT32_MIN or array.max() > _INT32_MAX:
        raise InvalidInput(f"{name} holds {array.min()} to {array.max()}: expected int32 values")
    return np.broadcast_to(array.astype(np.int32), (k,)).copy()


def _scales(scale: Any, bias: Any, k: int | None, workload: ConvWorkload | None) -> NDArray[np.float64]:
    scales = real_array(scale, "scale")
    if workload is not None and not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload={shown(workload)}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    biases = _integers("bias", bias)
    sizes = {
        "scale": scales.size if scales.ndim else None,
        "bias": biases.size if biases.ndim else None,
        "k": channels(k) if k is not None else None,
        "workload": workload.k if workload else None,
    }
    count = one_count(sizes)
    if scales.ndim > 1 or count < 1 or not (np.isfinite(scales).all() and (scales > 0).all()):
        raise InvalidInput(f"scale is {describe(scales)}: expected positive finite numbers, one or [K]")
    return np.broadcast_to(scales, (count,))

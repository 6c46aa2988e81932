"""Thresholds: from a sum to the few bits that the next layer reads, exactly, without a multiplication.

Batch normalization and rounding to a type of q bits increase (or, with a negative gamma, decrease) with the sum, so
they amount to 2^q - 1 comparisons: the rank of the output value is the number of its thresholds that a sum has passed.
They are computed in rational arithmetic; no rounding of a float decides a bit (TCBNN, arXiv 2006.16578, folds a batch
normalization into one threshold; APNN-TC, arXiv 2106.12169, rounds to several bits).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isfinite, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import number, whole
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.arrays import Int32Array, Words, check_array, describe
from subbyte.numerics.quantize import positive, real_array
from subbyte.numerics.requant import Requantization, check_padded, check_random, one_count, product_moments
from subbyte.numerics.values import Codes, encode
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import BIPOLAR, UNSIGNED, WORD_BITS, Operand

Real = float | Sequence[float] | NDArray[Any]
THRESHOLDS, LINE = "thresholds", "line"
"""The form of the parameters of kernels that compare, and of those that multiply if thresholds lie on a line."""
ALWAYS, NEVER = -(1 << 31), (1 << 31) - 1
"""Thresholds that every sum passes, and that no sum passes. Sums are smaller than 2^31 - 1."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """``rank = number of n with (sum >= levels[n]) != flip`` for each output channel; the output is that value.

    ``levels`` int32 [2^q - 1, K], q the bits of the ``output`` type, and ``flip`` bool [K]. The output of rank r is the
    r-th smallest value of the type: -1 and 1 for a bipolar bit, the rank itself for an unsigned type. With ``flip``,
    all q bits of the number of levels that a sum reaches are inverted. The levels of a channel are non-decreasing
    without ``flip``, and non-increasing with it. :data:`NEVER` is a level that no sum reaches, :data:`ALWAYS` one
    that every sum reaches; sums are below 2^31 - 1. Raises InvalidInput.
    """

    levels: Int32Array
    flip: NDArray[np.bool_]
    output: Operand

    def __post_init__(self) -> None:
        given: Any = self.output
        if not isinstance(given, Operand) or len(set(given.values)) != 1 << given.bits:
            raise InvalidInput(f"output={shown(given)}: expected a type with a value of its own for each code")
        check_array(self.levels, "levels", np.int32, (None, None))
        steps = (1 << self.output.bits) - 1
        if self.levels.shape[0] != steps or not self.levels.shape[1]:
            raise InvalidInput(
                f"levels is {describe(self.levels)}: {self.output.name} has {steps} threshold{'s' * (steps > 1)} for "
                f"each output channel, int32 [{steps}, K]"
            )
        check_array(self.flip, "flip", np.bool_, self.levels.shape[1:])
        rising = np.where(self.flip, self.levels[::-1], self.levels)
        if wrong := np.flatnonzero((rising[1:] < rising[:-1]).any(axis=0)).tolist():
            order = "rise" if self.flip[wrong[0]] else "fall"
            raise InvalidInput(f"levels of channel {wrong[0]} {order} from one to the next: expected them in order")
        for name in ("levels", "flip"):
            frozen = getattr(self, name).copy()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    @property
    def channels(self) -> int:
        """Output channels K."""
        return int(self.flip.size)

    def ranks(self, acc: Int32Array) -> Codes:
        """int32 sums [..., K] -> the number of thresholds that each has passed, uint8 [..., K]. Raises InvalidInput."""
        sums = check_array(acc, "acc", np.int32)
        if sums.shape[-1:] != self.flip.shape:
            raise InvalidInput(f"acc is {describe(acc)}: expected a numpy array int32 [..., {self.channels}]")
        if sums.size and sums.max() == NEVER:
            raise InvalidInput(f"acc holds {NEVER}: sums must be below 2^31 - 1, the threshold that none passes")
        found: Codes = np.zeros(sums.shape, np.uint8)
        for level in self.levels:
            found += (sums >= level) != self.flip
        return found

    def apply(self, acc: Int32Array) -> NDArray[Any]:
        """int32 sums [..., K] -> values of the output type in its dtype [..., K]. Raises InvalidInput."""
        return np.array(sorted(self.output.values), self.output.dtype)[self.ranks(acc)]

    def codes(self, acc: Int32Array) -> Codes:
        """int32 sums [..., K] -> codes of the output type, uint8 [..., K]: for unsigned, offset and bipolar types the
        rank itself. Raises InvalidInput."""
        return encode(self.apply(acc), self.output)

    def words(self, k_padded: int) -> Int32Array:
        """The kernel's levels int32 [2^q - 1][k_padded]; padding channels pass none: their rank is 0. Raises
        InvalidInput."""
        check_padded(k_padded, self.channels)
        buffer = np.full((len(self.levels), k_padded), NEVER, dtype=np.int32)
        buffer[:, : self.channels] = self.levels
        return buffer

    def flip_words(self, k_padded: int) -> Words:
        """The flips uint32 [k_padded / 32], channel k at bit k % 32 of word k / 32, 0 for padding channels.

        Raises InvalidInput if ``k_padded`` is not a multiple of 32 or too small.
        """
        if check_padded(k_padded, self.channels) % WORD_BITS:
            raise InvalidInput(f"k_padded={k_padded}: expected a multiple of {WORD_BITS}")
        bits = np.zeros(k_padded, np.uint8)
        bits[: self.channels] = self.flip
        return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32, copy=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"levels": self.levels.tolist(), "flip": self.flip.tolist(), "output": self.output.name}

    @classmethod
    def of(cls, given: Requantization | Thresholds) -> Thresholds:
        """Thresholds whose comparisons give what a requantization rounds to, for every sum below 2^31 - 1."""
        if isinstance(given, Thresholds):
            return given
        low, high = given.clip
        rows = []
        for value in sorted(given.output.values)[1:]:
            row = []
            for bias, multiplier, shift in zip(given.bias, given.multiplier, given.shift, strict=True):
                if value <= low or value > high:
                    row.append(ALWAYS if value <= low else NEVER)
                elif not multiplier:
                    row.append(ALWAYS if value <= 0 else NEVER)
                else:
                    half = (2 * value - 1) << int(shift) - 1  # (sum + bias) * multiplier reaches it
                    row.append(min(max(-(-half // int(multiplier)) - int(bias), ALWAYS), NEVER))
            rows.append(row)
        return cls(np.array(rows, np.int32), np.zeros(given.channels, np.bool_), given.output)

    @classmethod
    def from_batch_norm(
        cls,
        gamma: Real,
        beta: Real,
        mean: Real,
        variance: Real,
        *,
        eps: float = 1e-5,
        bits: int | None = None,
        step: float = 1.0,
        scale: Real = 1.0,
        bias: Real = 0.0,
        output: Operand | None = None,
        workload: ConvWorkload | None = None,
    ) -> Thresholds:
        """Thresholds for ``y = gamma (scale sum + bias - mean) / sqrt(variance + eps) + beta``, rounded to multiples of
        ``step``.

        The output is the value of its type nearest to y / step, with halves going to the larger one: for one bipolar
        bit the sign, 1 from y = 0 on; for an unsigned type ReLU and rounding. ``scale`` is the real number that a sum
        of 1 stands for. Arguments are one number each, or [K]; they are taken as the exact rational numbers that the
        floats represent, and the root is exact too. A negative gamma gives a flipped channel, a gamma of 0 a constant
        one. The type is ``output``, else the workload's, else bipolar for one bit and unsigned for several. Raises
        InvalidInput.
        """
        reals = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance, "scale": scale, "bias": bias}
        columns, made_for = _columns(reals, workload), _output(output, workload, bits)
        size, added = positive(step), number(eps, "eps")
        if size is None or not isfinite(added):
            raise InvalidInput(f"step={shown(step)}, eps={shown(eps)}: expected finite numbers > 0 and >= 0")
        for name, least in (("variance", 0), ("scale", None)):
            wrong = [value for value in columns[name] if value < 0 or (least is None and value == 0)]
            if wrong:
                raise InvalidInput(f"{name} holds {float(wrong[0])}: expected {'> 0' if least is None else '>= 0'}")
        values = sorted(made_for.values)
        needs = [Fraction(size) * Fraction(low + high, 2) for low, high in pairwise(values)]
        levels, flip = [], []
        for g, b, m, v, s, shift in zip(*columns.values(), strict=True):
            if v + Fraction(added) == 0:
                raise InvalidInput("variance + eps is 0: expected a positive sum; pass eps=")
            levels.append(_channel(g * s, b, (m - shift) / s, v + Fraction(added), needs))
            flip.append(g < 0)
        return cls(np.array(levels, dtype=np.int32).T.copy(), np.array(flip), made_for)

    @classmethod
    def random(cls, workload: ConvWorkload, rng: np.random.Generator) -> Thresholds:
        """Thresholds with which random operands of the workload's types give all values of its output type.

        About a third of the channels are flipped, about one in sixteen is constant. Raises InvalidInput.
        """
        check_random(workload, rng)
        types, depth = workload.precision, workload.r * workload.s * workload.c
        average, variance = product_moments(types.weights, types.activations)
        steps, k = (1 << types.output.bits) - 1, workload.k
        spread = max(variance * depth, 1.0) ** 0.5
        drawn = np.sort(rng.normal(average * depth, spread, (steps, k)), axis=0)
        levels = np.rint(drawn).clip(ALWAYS, NEVER).astype(np.int32)
        flip = rng.random(k) < 1 / 3
        constant = rng.random(k) < 1 / 16
        levels = np.where(flip, levels[::-1], levels)
        levels[:, constant] = np.where(flip ^ (rng.random(k) < 0.5), ALWAYS, NEVER)[constant]
        return cls(levels, flip, types.output)


def _columns(given: dict[str, Real], workload: ConvWorkload | None) -> dict[str, list[Fraction]]:
    """Each argument as exact numbers for all channels."""
    if workload is not None and not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload={shown(workload)}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    arrays = {name: real_array(value, name) for name, value in given.items()}
    for name, array in arrays.items():
        if array.ndim > 1 or not np.isfinite(array).all():
            raise InvalidInput(f"{name} is {describe(array)}: expected finite numbers, one or [K]")
    sizes = {name: array.size if array.ndim else None for name, array in arrays.items()}
    count = one_count({**sizes, "workload": workload.k if workload else None}, "")
    if count < 1:
        raise InvalidInput("gamma is empty: expected one number for each output channel")
    return {name: list(map(Fraction, np.broadcast_to(array, (count,)).tolist())) for name, array in arrays.items()}


def _output(output: Operand | None, workload: ConvWorkload | None, bits: int | None) -> Operand:
    """The type of the codes. Raises InvalidInput where the arguments contradict each other."""
    width = None if bits is None else whole(bits, "bits", 1, 8)
    if output is None and workload is None:
        return Operand(width or 1, BIPOLAR if width in (None, 1) else UNSIGNED)
    found = workload.precision.output if output is None and workload is not None else output
    if not isinstance(found, Operand):
        raise InvalidInput(f"output={shown(output)}: expected an Operand, such as Operand(2, 'unsigned')")
    if width not in (None, found.bits):
        whose = f"workload {workload}" if output is None else "output"
        raise InvalidInput(f"bits={bits}: {whose} gives {found.name}; a spec says other bits as in w1a1o2")
    return found


def _channel(
    gamma: Fraction, beta: Fraction, mean: Fraction, variance: Fraction, needs: Sequence[Fraction]
) -> list[int]:
    """The levels of a channel: for each required y the least sum that passes or, with a negative gamma, the least sum
    that no longer does."""
    if gamma == 0:
        return [ALWAYS if beta >= need else NEVER for need in needs]
    levels = []
    for need in needs:
        factor = (need - beta) / gamma
        level = _floor(mean, factor, variance) + 1 if gamma < 0 else -_floor(-mean, -factor, variance)
        levels.append(min(max(level, ALWAYS), NEVER))
    return levels


def _floor(mean: Fraction, factor: Fraction, variance: Fraction) -> int:
    """``floor(mean + factor * sqrt(variance))``, exactly: (a + root of d) / e in integers, with the root rounded
    down."""
    square = factor * factor * variance
    e = mean.denominator * square.denominator
    d = mean.denominator**2 * square.numerator * square.denominator
    root = isqrt(d)
    if factor < 0:
        root = -root - (root * root < d)
    return (mean.numerator * square.denominator + root) // e


def random_output(workload: ConvWorkload, rng: np.random.Generator) -> Requantization | Thresholds:
    """A random conversion of sums to all values of the output type: a requantization, or thresholds if the type has
    gaps between its values."""
    if workload.precision.output.contiguous:
        return Requantization.random(workload, rng)
    return Thresholds.random(workload, rng)

"""Requantization and arrays: right ones give what Python's integers give, wrong types and masks are refused."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hostile.corpus import corpus
from hostile.harness import Case

WRONG: tuple[Any, ...] = (
    None, "0.1", b"1", 1j, [], {}, object(), "no", [None], [[1, 2]], np.array("a"), np.datetime64("2026-01-01"),
    np.ma.masked_array([1, 2], [0, 1]), lambda: 1,
)  # fmt: skip
"""No number, and no array of numbers of the right length."""
WRONG_WHOLE = (*WRONG, 2.5, 2.0, float("nan"), True, np.float32(1), np.zeros(2), 10**5000)
WRONG_FLAG = (None, "no", 0, 1, [], np.zeros(2))
WRONG_CLIP = (
    "-8",
    (0.5, 6.7),
    (-8.0, 7.0),
    (7, -8),
    (-9, 7),
    (0, 8),
    (1,),
    (1, 2, 3),
    5,
    ("a", "b"),
    (True, 7),
    {},
    (None, 7),
    b"ab",
)
WRONG_SCALE = (*WRONG, 0, -1.0, 0.0, float("nan"), float("inf"), True, [0.1, -0.1], [[0.1]], 10**400, "1e-3")
DTYPES = (
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint32",
    "float32",
    "float64",
    "bool",
    "complex64",
    "object",
    "U1",
)


def cases(rng: random.Random) -> Iterator[Case]:
    """About 13,000 cases."""
    from subbyte.numerics import Requantization, pack_words, quantize, reference, scale_for, unpack_words
    from subbyte.workload import ConvWorkload

    for entry in corpus("requantization"):
        call = getattr(Requantization, entry["call"]) if entry["call"] != "quantize" else quantize
        yield Case(f"{entry['call']}({entry['given']})", partial(call, **entry["given"]), entry["must"])
    for number in range(4_200):  # right answers, at the ends of every range
        yield _integers(rng, number)
    for number in range(1_500):
        yield _from_scale(rng, number)
    per = Requantization.per_tensor
    yield Case("clip=None", partial(_clipped, None), "answer", lambda made: made.clip == (-8, 7))
    for _ in range(300):
        for name, wrong in (
            ("k", rng.choice((*WRONG_WHOLE, 0, -1))), ("multiplier", rng.choice((*WRONG_WHOLE, -1, 2**31))),
            ("shift", rng.choice((*WRONG_WHOLE, 0, 63, -1))), ("bias", rng.choice((*WRONG_WHOLE, 2**31))),
            ("relu", rng.choice(WRONG_FLAG)),
        ):  # fmt: skip
            given = {"k": 2, "multiplier": 5, "shift": 3, name: wrong}
            must = "either" if _fine(wrong) else "refuse"
            yield Case(f"per_tensor({name}={_short(wrong)})", partial(per, **given), must, seconds=1.0)
        wrong = rng.choice(WRONG_SCALE)
        yield Case(f"from_scale({_short(wrong)})", partial(Requantization.from_scale, wrong, k=2), "refuse")
        yield Case(f"quantize(x, {_short(wrong)})", partial(quantize, [0.5, 1.0], wrong), "refuse")
        wrong = rng.choice(WRONG_CLIP)
        yield Case(f"clip={wrong!r}", partial(_clipped, wrong), "refuse")
        name = rng.choice(("bias", "multiplier", "shift", "scale_error"))
        wrong = rng.choice(WRONG_WHOLE)
        parts: dict[str, Any] = {part: np.ones(2, np.int32) for part in ("bias", "multiplier", "shift")}
        must = "either" if name == "scale_error" else "refuse"
        yield Case(f"Requantization({name}={_short(wrong)})", partial(Requantization, **{**parts, name: wrong}), must)
    layer = ConvWorkload(2, 3, 3, 5, 4, 2, 2)
    x, w = np.ones((2, 3, 3, 5), np.int8), np.ones((4, 2, 2, 5), np.int8)
    for _ in range(2_200):
        bad, right = _array(rng, x)
        side = rng.random() < 0.5
        given_x, given_w = (bad, w) if side else (x, _array(rng, w)[0])
        must = "refuse" if side and not right else "either"
        yield Case(
            f"reference({_short(given_x)}, {_short(given_w)})", partial(reference, layer, given_x, given_w), must
        )
    for function in (pack_words, unpack_words, scale_for, partial(quantize, scale=0.5)):
        for _ in range(600):
            bad, _right = _array(rng, np.ones((2, 8), np.int8))
            must = "refuse" if isinstance(bad, np.ma.MaskedArray) else "either"
            yield Case(f"{function}({_short(bad)})", partial(function, bad), must)  # type: ignore[operator]


def _integers(rng: random.Random, number: int) -> Case:
    """One requantization of a few channels against Python's own integers."""
    from subbyte.numerics import Requantization

    edge = (-(2**31), -1, 0, 1, 2**31 - 1)
    k = rng.randint(1, 4)
    bias = [rng.choice((*edge, rng.randint(-(2**31), 2**31 - 1))) for _ in range(k)]
    multiplier = [rng.choice((0, 1, 2**30, 2**31 - 1, rng.randint(0, 2**31 - 1))) for _ in range(k)]
    shift = [rng.choice((1, 2, 24, 31, 32, 62, rng.randint(1, 62))) for _ in range(k)]
    low = rng.randint(-8, 7)
    clip = (low, rng.randint(low, 7))
    acc = [
        [rng.choice((*edge, rng.randint(-(2**31), 2**31 - 1), -b)) if -(2**31) <= -b < 2**31 else 0 for b in bias]
        for _ in range(6)
    ]
    wanted = [[_right(sums[i], bias[i], multiplier[i], shift[i], clip) for i in range(k)] for sums in acc]

    def call() -> object:
        made = Requantization(*(np.array(part, np.int32) for part in (bias, multiplier, shift)), clip)
        return made.apply(np.array(acc, np.int32)).tolist()

    return Case(f"apply {number}", call, "answer", partial(_equals, wanted), seconds=1.0)


def _right(acc: int, bias: int, multiplier: int, shift: int, clip: tuple[int, int]) -> int:
    return min(max((acc + bias) * multiplier + 2 ** (shift - 1) >> shift, clip[0]), clip[1])


def _from_scale(rng: random.Random, number: int) -> Case:
    """The multiplier and shift of a scale are as near to it as ``scale_error`` says."""
    from subbyte.numerics import Requantization

    scales = [math.ldexp(rng.uniform(0.5, 1.0), rng.randint(-60, 29)) for _ in range(rng.randint(1, 3))]
    given: Any = rng.choice((scales, np.array(scales), np.array(scales, np.float32))) if len(scales) > 1 else scales[0]
    exact = [Fraction(float(value)) for value in np.atleast_1d(given)]

    def right(found: Any) -> bool:
        pairs = zip(found.multiplier.tolist(), found.shift.tolist(), exact, strict=True)
        errors = [abs(Fraction(multiplier, 2**shift) / scale - 1) for multiplier, shift, scale in pairs]
        return float(max(errors)) <= found.scale_error + 1e-15 and bool(found.clip == (0, 7))

    call = partial(Requantization.from_scale, given, relu=True, k=len(scales))
    return Case(f"from_scale {number} {scales}", call, "answer", right, seconds=1.0)


def _clipped(clip: Any) -> object:
    from subbyte.numerics import Requantization

    return Requantization(*(np.ones(2, np.int32) for _ in range(3)), clip)  # type: ignore[arg-type]


def _array(rng: random.Random, right: Any) -> tuple[Any, bool]:
    """Something in place of an array, and whether it is as good as the array."""
    chance = rng.randrange(8)
    if chance == 0:
        return rng.choice(WRONG), False
    if chance == 1:
        return np.ma.masked_array(right, rng.random() < 0.5), False
    if chance == 2:
        dtype = rng.choice(DTYPES)
        return right.astype(dtype), dtype == "int8"
    if chance == 3:
        return rng.choice((right.tolist(), right[:-1], right[..., None], right[0], right[:0])), False
    if chance == 4:
        return np.full_like(right, rng.choice((-128, -9, 8, 127))), False
    if chance == 5:
        return np.asfortranarray(right), True
    if chance == 6:
        return np.ascontiguousarray(right[::-1])[::-1], True
    return right, True


def _fine(value: Any) -> bool:
    """Values that are right for some of the parameters."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _short(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 10**100:
        return f"an integer of {value.bit_length()} bits"
    return f"{type(value).__name__} {value!r:.60}".replace("\n", " ")


def _equals(wanted: Any, found: Any) -> bool:
    return bool(found == wanted)

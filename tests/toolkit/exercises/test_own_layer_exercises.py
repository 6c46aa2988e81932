"""The exercises on one's own layer: right answers, and typical wrong ones by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from subbyte.exercises import check_padding, check_quantize, check_requantize
from subbyte.exercises.own_layer import SUMS
from subbyte.numerics import Requantization, quantize, scale_for


def right_scale(a: Any) -> float:
    return max(a.max() / 7, a.min() / -8) or 1.0


def test_the_librarys_own_quantization_is_right() -> None:
    assert check_quantize(lambda a: (quantize(a, scale_for(a)), scale_for(a)))
    assert check_quantize(lambda a: (np.clip(np.rint(a / right_scale(a)), -8, 7), right_scale(a)))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda a: (np.rint(a / np.abs(a).max() * 7), np.abs(a).max() / 7), "not symmetric"),
        (lambda a: (np.rint(a / np.abs(a).max() * 8), np.abs(a).max() / 8), "7 is the largest value"),
        (lambda a: (np.rint(a / np.abs(a).max() * 127), np.abs(a).max() / 127), "int8"),
        (lambda a: (a, np.ptp(a) / 15), "zero stays zero"),
        (lambda a: (a, 1 / right_scale(a)), "upside down"),
        (lambda a: (a, np.abs(a).max()), "largest value of int4"),
        (lambda a: (np.trunc(a / right_scale(a)), right_scale(a)), "cut the fraction off"),
        (lambda a: (np.floor(a / right_scale(a)), right_scale(a)), "round down"),
        (lambda a: (a / right_scale(a), right_scale(a)), "not integers yet"),
        (lambda a: (np.rint(a / right_scale(a)) * 2, right_scale(a)), "times the scale becomes"),
        (lambda a: (np.rint(a[a != 0] / right_scale(a)), right_scale(a)), "values for 6 weights"),
        (lambda a: (np.clip(np.rint(a / max(a.max() / 7, a.min() / -8, 1e-300)), -8, 7),
                    max(a.max() / 7, a.min() / -8)), "for zeros take 1"),
        (lambda a: a, "return values, scale"),
        (lambda a: (a, 7.7), "must not exceed"),
        (3, "Give a function"),
    ],
)  # fmt: skip
def test_a_wrong_quantization_is_named(answer: Any, says: str) -> None:
    feedback = check_quantize(answer)
    assert not feedback
    assert says in feedback.message


def right(total: int, bias: int, multiplier: int, shift: int, clip: tuple[int, int]) -> int:
    return max(clip[0], min(clip[1], ((total + bias) * multiplier + (1 << (shift - 1))) >> shift))


def test_the_exercise_asks_for_what_the_kernels_do() -> None:
    assert check_requantize(right)
    for total, bias, multiplier, shift, clip in SUMS:
        one = np.array([bias], np.int32), np.array([multiplier], np.int32), np.array([shift], np.int32)
        assert Requantization(*one, clip).apply(np.array([total], np.int32))[0] == right(
            total, bias, multiplier, shift, clip
        )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda a, b, m, s, c: max(c[0], min(c[1], ((a + b) * m) >> s)), "nothing is rounded"),
        (lambda a, b, m, s, c: max(c[0], min(c[1], int(((a + b) * m + 2 ** (s - 1)) / 2**s))), "towards zero"),
        (lambda a, b, m, s, c: max(c[0], min(c[1], ((a * m + 2 ** (s - 1)) >> s) + b)), "bias comes after"),
        (lambda a, b, m, s, c: max(c[0], min(c[1], (a * m + 2 ** (s - 1)) >> s)), "bias is missing"),
        (lambda a, b, m, s, c: ((a + b) * m + 2 ** (s - 1)) >> s, "nothing is clipped"),
        (lambda a, b, m, s, c: max(-8, min(7, ((a + b) * m + 2 ** (s - 1)) >> s)), "with a ReLU"),
        (lambda a, b, m, s, c: max(c[0], min(c[1], ((a + b) * m + 2**s) >> s)), "you add 2^shift"),
        (
            lambda a, b, m, s, c: max(c[0], min(c[1], (((a + b) * m + 2**31) % 2**32 - 2**31 + 2 ** (s - 1)) >> s)),
            "left 32 bits",
        ),
        (lambda a, b, m, s, c: max(c[0], min(c[1], round((a + b) * m / 2**s))), "a half goes up"),
        (lambda a, b, m, s, c: float(right(a, b, m, s, c)), "is a float"),
        (lambda a, b, m, s, c: 3, "not 3"),
        (lambda a, b, m, s, c: ..., "Return an integer"),
        (lambda a: a, "raised TypeError"),
    ],
)
def test_a_wrong_requantization_is_named(answer: Callable[..., Any], says: str) -> None:
    feedback = check_requantize(answer)
    assert not feedback
    assert says in feedback.message


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (..., "Replace the ..."), (0.5 * 0.75 * 0.625, "useful share"), (76.6, "in percent"),
        (1 - 0.5 * 0.75, "output channels are padded"), (1 - 0.75 * 0.625, "images are padded to 8"),
        (1 - 0.5 * 0.625, "input channels are padded"), (0.5, "channels are padded, too"),
        (1 / (0.5 * 0.75 * 0.625) - 1, "padding over real work"), (3 - 0.5 - 0.75 - 0.625, "do not add"),
        (0.1, "before, and after padding"), ("half", "Give a number"),
    ],
)  # fmt: skip
def test_a_wrong_share_of_padding_is_named(answer: Any, says: str) -> None:
    feedback = check_padding(answer, "n4h7w7c24k20r3s3p1")
    assert not feedback
    assert says in feedback.message


def test_the_share_of_padding_is_right() -> None:
    assert check_padding(1 - 0.5 * 0.75 * 0.625, "n4h7w7c24k20r3s3p1")
    assert check_padding(0.0, "resnet50.stage2@8")

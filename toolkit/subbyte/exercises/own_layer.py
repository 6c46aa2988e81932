"""Exercises of the notebook on your own layer: quantizing weights, requantizing sums, the cost of padding."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.arguments import checked
from subbyte.exercises.answers import recognise, unanswered
from subbyte.exercises.feedback import Feedback, call, mistake
from subbyte.numerics import quantize, scale_for
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse

Reals = npt.NDArray[np.float64]
WEIGHTS: tuple[tuple[float, ...], ...] = (
    (1.4, -0.2, 0.95, 0.7, -1.1, 0.31),
    (0.7, -0.8, 0.33, 0.05, -0.05, 0.0),
    (-2.0, 0.5, 0.9, -0.13, 1.7, -0.6),
    (0.0, 0.0),
)
SUMS = ((1000, -200, 3, 9, (-8, 7)), (-1000, 24, 3, 9, (-8, 7)), (383, 0, 3, 9, (-8, 7)), (-256, 0, 3, 9, (-8, 7)),
        (100_000, -7, 1_200_000_000, 40, (-8, 7)), (-500, 20, 5, 8, (0, 7)), (2_000_000, 0, 5, 4, (-8, 7)),
        (427, 0, 3, 9, (-8, 7)), (-85, 0, 3, 9, (-8, 7)))  # fmt: skip
"""Sum, bias, multiplier, shift, clip. The fourth case is a tie, where rounding modes differ."""


def check_quantize(answer: Callable[[Reals], tuple[Any, float]]) -> Feedback:
    """Check ``answer(weights)``: int4 values and the smallest scale with which nothing is clipped.

    Values are -8 to 7, value = nearest integer to weight / scale; the scale of all zeros is 1.
    """
    for weights in WEIGHTS:
        array = np.array(weights)
        case = f"weights {', '.join(map(str, weights))}"
        given, problem = call(answer, array.copy(), case=case, arrays=True)
        if problem is not None:
            return problem
        if isinstance(given, np.ndarray):
            return Feedback(False, "Return the values and the scale: return values, scale")
        try:
            values, scale = np.asarray(given[0], dtype=np.float64), float(given[1])
        except (TypeError, ValueError, IndexError, KeyError):
            return Feedback(False, "Return the values and the scale: return values, scale")
        if values.shape != array.shape:
            return Feedback(False, f"For {case}: {values.size} values for {array.size} weights.")
        right = scale_for(array)
        if not np.isclose(scale, right, rtol=1e-9):
            return Feedback(False, f"For {case}: {_about_scale(scale, array, right)}")
        if not np.array_equal(values, quantize(array, right)):
            return Feedback(False, f"For {case}: {_about_values(values, array / right)}")
    return Feedback(True, "All weights agree; the largest one decides how fine the others can be.")


def _no_scale(scale: float) -> bool:
    return not np.isfinite(scale) or scale <= 0


def _about_scale(scale: float, array: Reals, right: float) -> str:
    most, span = float(np.abs(array).max()), float(array.max() - array.min())
    mistakes: list[tuple[Any, str]] = [
        (_no_scale, "the scale must be positive and finite; for zeros take 1."),
        (most / 7, "the range is not symmetric: -8 is a value too, so a large negative weight allows a finer scale."),
        (most / 8, "7 is the largest value, not 8: a positive weight of 8 * scale would be clipped."),
        (most / 127, "that is the scale of int8; int4 goes from -8 to 7."),
        (span / 15, "that scale belongs to a zero point between the values; here zero stays zero: value * scale."),
        (1 / right if right else 0.0, "upside down: weight = value * scale."),
        (float(array.max()) / 7, "negative weights count too: the smallest one must not fall below -8."),
        (most, "divide by the largest value of int4, too."),
    ]
    hint = "the largest weight must not exceed 7 * scale, the smallest not fall below -8 * scale."
    return recognise(scale, mistakes, hint)


def _about_values(values: Reals, exact: Reals) -> str:
    known: dict[str, Callable[[], Any]] = {
        "you cut the fraction off, which moves every value towards zero; take the nearest integer.": (
            np.trunc(exact).tolist
        ),
        "you round down; take the nearest integer.": np.floor(exact).tolist,
        "the values are not integers yet.": exact.tolist,
    }
    found = mistake(values.tolist(), known)
    place = int(np.argmax(values != np.clip(np.rint(exact), -8, 7)))
    return found or f"{exact[place]:.3f} times the scale becomes {np.rint(exact[place]):.0f}, not {values[place]:g}."


def check_requantize(answer: Callable[[int, int, int, int, tuple[int, int]], int]) -> Feedback:
    """Check ``answer(sum, bias, multiplier, shift, clip)``: the int4 output, using integers only.

    ``clip(((sum + bias) * multiplier + 2^(shift-1)) >> shift)``: rounded to nearest, halves up.
    """
    given = []
    for case in SUMS:
        words = "sum {}, bias {}, multiplier {}, shift {}, clip {}".format(*case)
        value, problem = call(answer, *case, case=words)
        if problem is not None:
            return problem
        if unanswered(value):
            return Feedback(False, "Return an integer from -8 to 7.")
        given.append(value)
    right = [_requantized(*case) for case in SUMS]
    if all(isinstance(value, (int, np.integer)) and value == r for value, r in zip(given, right, strict=True)):
        return Feedback(True, f"All {len(SUMS)} sums agree, those below zero and those beyond the range too.")
    place = next(k for k, (a, b) in enumerate(zip(given, right, strict=True)) if a != b or isinstance(a, float))
    words = "sum {}, bias {}, multiplier {}, shift {}, clip {}".format(*SUMS[place])
    if isinstance(given[place], float):
        return Feedback(False, f"For {words}: {given[place]} is a float. Floats round differently on other machines.")

    def each(form: Callable[..., int]) -> Callable[[], Any]:
        return lambda: [form(*case) for case in SUMS]

    known: dict[str, Callable[[], Any]] = {
        "nothing is rounded: >> by itself rounds down; add half of 2^shift first.": each(
            lambda a, b, m, s, c: _clip(((a + b) * m) >> s, c)
        ),
        "you round towards zero below zero; >> on negative numbers rounds down, which is meant.": each(
            lambda a, b, m, s, c: _clip(int(((a + b) * m + (1 << (s - 1))) / (1 << s)), c)
        ),
        "the bias comes after the multiplication; it belongs to the sum.": each(
            lambda a, b, m, s, c: _clip(((a * m + (1 << (s - 1))) >> s) + b, c)
        ),
        "the bias is missing.": each(lambda a, b, m, s, c: _clip((a * m + (1 << (s - 1))) >> s, c)),
        "nothing is clipped: values beyond the range must stay at its ends.": each(
            lambda a, b, m, s, c: ((a + b) * m + (1 << (s - 1))) >> s
        ),
        "the clip is not always -8 to 7: with a ReLU it begins at 0.": each(
            lambda a, b, m, s, c: _clip(((a + b) * m + (1 << (s - 1))) >> s, (-8, 7))
        ),
        "you add 2^shift; half of it rounds to nearest.": each(
            lambda a, b, m, s, c: _clip(((a + b) * m + (1 << s)) >> s, c)
        ),
        "a half goes up, below zero as well; round takes the even neighbour.": each(
            lambda a, b, m, s, c: _clip(round(Fraction((a + b) * m, 1 << s)), c)
        ),
        "the product left 32 bits: sum times multiplier needs 64.": each(
            lambda a, b, m, s, c: _clip((_wrapped((a + b) * m) + (1 << (s - 1))) >> s, c)
        ),
    }
    about = mistake(given, known) or f"it is {right[place]}, not {given[place]}."
    return Feedback(False, f"For {words}: {about}")


def _requantized(total: int, bias: int, multiplier: int, shift: int, clip: tuple[int, int]) -> int:
    return _clip(((total + bias) * multiplier + (1 << (shift - 1))) >> shift, clip)


def _clip(value: int, clip: tuple[int, int]) -> int:
    return max(clip[0], min(clip[1], value))


def _wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


@checked
def check_padding(answer: Any, workload: ConvWorkload | str) -> Feedback:
    """Check the share of multiplications (0 to 1, to within 0.005) that the layer's kernel spends on padding zeros.

    Images are padded to a multiple of 8, input and output channels to multiples of 32.
    """
    w = parse(workload)
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a share between 0 and 1.")
    if isinstance(answer, (bool, str)):
        return Feedback(False, "Give a number between 0 and 1.")
    images, inputs, outputs = w.n / (8 * w.batch_groups), w.c / (32 * w.channel_blocks), w.k / (32 * w.filter_blocks)
    useful = images * inputs * outputs

    def near(value: float, by: float = 0.005) -> Callable[[Any], bool]:
        return lambda a: abs(float(a) - value) < by

    right = 1 - useful
    try:
        if near(right)(answer):
            return Feedback(True, f"Only {useful:.1%} of the work is real: {images:.0%} of the images, {inputs:.0%} of "
                                  f"the input channels and {outputs:.0%} of the output channels.")  # fmt: skip
        mistakes = [
            (near(useful), "that is the useful share; the question is about the rest."),
            (near(100 * right, 0.5), "that is in percent; give a share between 0 and 1."),
            (near(1 - images * inputs), "the output channels are padded, too."),
            (near(1 - inputs * outputs), "the images are padded to 8, too."),
            (near(1 - images * outputs), "the input channels are padded, too."),
            (near(1 - images), "channels are padded, too: input and output."),
            (near(1 / useful - 1), "that is padding over real work; the question is about its share of all work."),
            (near(3 - images - inputs - outputs), "shares of three factors multiply; they do not add."),
        ]
        return Feedback(
            False, recognise(answer, mistakes, "real work over all work: n * c * k before, and after padding.")
        )
    except (TypeError, ValueError, OverflowError):
        return Feedback(False, "Give a number between 0 and 1.")

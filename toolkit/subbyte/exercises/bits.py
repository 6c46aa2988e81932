"""Exercises of the notebooks on bits and planes: a sum of -1 and 1 from bits, a threshold, the word of a bit, loading a
tile; combining planes, instructions of a window, the corner of an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, call_each, mistake, short
from subbyte.numerics.planes import NB8, NHWC, PlaneWords, words_shape
from subbyte.numerics.reference import reference
from subbyte.numerics.thresholds import Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.technique.composition import plane_composition
from subbyte.technique.strides import strides
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import BIPOLAR, BLOCK_BITS, Operand
from subbyte.workload.precision import PADDINGS, Precision

DOTS = ((0, 0, 1), (1, 1, 1), (0b1011, 0b0110, 4), (0b10011, 0b00111, 5), (0xFFFFFFFF, 0, 32), (0b1101, 0b1101, 9))
"""Bits of the weights, bits of the pixels, number of products: the last case has channels whose bits are both 0."""
NORMS = ((1, 0, 3.25, 2), (2, -1, 10, 4), (-1, 0, 3.5, 2), (-2, 1, 4, 4), (1, 1, 6, 2), (-0.5, 0, -3, 1))
"""gamma, beta, mean and standard deviation."""
COUNTS = (((3, 5), (7, 2)), ((0, 1), (0, 0)), ((10, 10), (10, 10)), ((0, 0), (4, 9)))
"""Counts by the plane of the weights, then of the activations."""


@checked
def check_dot(function: Any) -> Feedback:
    """Check ``function(w, x, n)``: the sum of n products of -1 and 1, from words that hold their bits."""
    found, problem = call_each(function, DOTS, lambda w, x, n: f"w={w:#b}, x={x:#b}, n={n}")
    if problem is not None:
        return problem
    for (w, x, n), given in zip(DOTS, found, strict=True):
        right = _dot(w, x, n)
        if not same(given, right):
            named = _known(found, WRONG_DOTS, DOTS)
            return Feedback(
                False, named or f"For w={w:#b}, x={x:#b}, n={n} you return {short(given)}; the right answer is {right}."
            )
    return Feedback(True, "AND, three counts and one constant: S is shared by all channels, P by all pixels.")


def _dot(w: int, x: int, n: int) -> int:
    return 4 * (w & x).bit_count() - 2 * x.bit_count() - 2 * w.bit_count() + n


WRONG_DOTS = {
    "That counts only products of 1 and 1. Two bits 0 are -1 times -1, which is 1 too.": lambda w, x, n: (
        2 * (w & x).bit_count() - n
    ),
    "That is the sum of bits 0 and 1. A bit stands for 2 b - 1 on both sides: multiply that out.": lambda w, x, n: (
        w & x
    ).bit_count(),
    "The constant is missing: every one of the n products adds (-1) times (-1).": lambda w, x, n: _dot(w, x, n) - n,
    "n is the number of products, not the 32 bits of a word: padding bits are not channels.": lambda w, x, n: _dot(
        w, x, 32
    ),
}


@checked
def check_threshold(function: Any) -> Feedback:
    """Check ``function(gamma, beta, mean, deviation)``: (level, flip) such that bit = (sum >= level) != flip."""
    found, problem = call_each(function, NORMS, lambda *norm: f"gamma, beta, mean, deviation = {norm}")
    if problem is not None:
        return problem
    for norm, given in zip(NORMS, found, strict=True):
        right = _threshold(*norm)
        if not (isinstance(given, (tuple, list)) and len(given) == 2):
            return Feedback(False, f"Return two things, (level, flip), not {short(given)}.")
        if not (same(given[0], right[0]) and bool(given[1]) is right[1] and isinstance(given[1], (bool, np.bool_))):
            named = _known(found, WRONG_THRESHOLDS, NORMS)
            shown = f"For gamma, beta, mean, deviation = {norm} you return {short(given)}; the right answer is {right}."
            return Feedback(False, named or shown)
    return Feedback(True, "A batch normalization and a sign are one comparison with an integer, and perhaps a flip.")


def _crossing(gamma: float, beta: float, mean: float, deviation: float) -> Fraction:
    return Fraction(mean) - Fraction(beta) * Fraction(deviation) / Fraction(gamma)


def _threshold(gamma: float, beta: float, mean: float, deviation: float) -> tuple[int, bool]:
    found = Thresholds.from_batch_norm([gamma], beta, mean, deviation**2, eps=0, bits=1)
    return int(found.levels[0, 0]), bool(found.flip[0])


_FLIP = "gamma < 0 reverses the comparison: the bit is 1 below the threshold. Return flip = gamma < 0."
WRONG_THRESHOLDS = {
    "Rounding gives the nearest integer, which may lie on the wrong side. A sum passes at the first integer that is "
    "high enough.": lambda *norm: (round(_crossing(*norm)), norm[0] < 0),
    _FLIP: lambda *norm: (-(-_crossing(*norm) // 1), False),
    _FLIP + " And the level is not rounded.": lambda *norm: (round(_crossing(*norm)), False),
    "With gamma < 0 the crossing itself still gives 1, the next integer does not: the level is one more than the "
    "crossing rounded down.": lambda *norm: (-(-_crossing(*norm) // 1), norm[0] < 0),
}  # fmt: skip


def _known(given: Sequence[Any], wrong: Mapping[str, Callable[..., Any]], cases: Sequence[tuple[Any, ...]]) -> str:
    """The explanation of the first known mistake that gives the same answers in every case; empty if none does."""
    plain = [_plain(one) for one in given]
    ways = {words: [_plain(way(*case)) for case in cases] for words, way in wrong.items()}
    return next((words for words, meant in ways.items() if all(map(same, plain, meant))), "")


def _plain(value: Any) -> Any:
    try:
        return tuple(int(part) for part in value) if isinstance(value, (tuple, list)) else value
    except (TypeError, ValueError, OverflowError):
        return value


@checked
def check_word(function: Any, workload: ConvWorkload | str) -> Feedback:
    """Check ``function(n, h, w, c)``: the index of the 32-bit word of a one-bit workload's input in layout nb8."""
    wl = parse(workload)
    if wl.precision.activations.bits != 1:
        raise InvalidInput(f"workload {wl}: the exercise is for activations of one bit, such as {wl.sizes}:w1a1")
    rng = np.random.default_rng(0)
    sizes = (wl.n, wl.h, wl.w, wl.c)
    places = [tuple(map(int, rng.integers(0, sizes))) for _ in range(40)]
    known = {layout: _index(wl, layout) for layout in (NB8, NHWC)}
    found, problem = call_each(function, places, lambda *place: f"n, h, w, c = {place}")
    if problem is not None:
        return problem
    for place, given in zip(places, found, strict=True):
        right = int(known[NB8](*place))
        if not same(given, right):
            named = mistake([_number(one) for one in found], {
                "That is the plain order, nhwc. In nb8 the 8 images of a block of 128 channels are neighbours.":
                    lambda: [int(known[NHWC](*one)) for one in places],
                "That is the index of the bit: a word has 32 of them.":
                    lambda: [32 * int(known[NB8](*one)) + one[3] % 32 for one in places],
                "Within a block the image comes first, then its 4 words: image % 8 * 4 + word.":
                    lambda: [_turned(int(known[NB8](*one))) for one in places],
            })  # fmt: skip
            return Feedback(
                False, named or f"For n, h, w, c = {place} you return {short(given)}; the right answer is {right}."
            )
    return Feedback(True, "8 images x 128 channels are 32 neighbouring words, a core matrix: nothing is rearranged.")


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, (int, np.integer)) else None


def _index(wl: ConvWorkload, layout: str) -> Any:
    operand, shape = Operand(1, BIPOLAR), (wl.n, wl.h, wl.w, wl.c)
    packed = PlaneWords(np.zeros(words_shape(layout, operand, shape), np.uint32), layout, operand, shape)
    return lambda n, h, w, c: packed.word_index(0, n, h, w, c)


def _turned(index: int) -> int:
    """The index with words before images in a block."""
    block, rest = divmod(index, 32)
    return 32 * block + rest % 4 * 8 + rest // 4


@checked
def check_load(answer: Any, bits: int) -> Feedback:
    """Check (cycles from shared memory, sectors of global memory) for loading a tile from a matrix ``bits`` wide."""
    load = strides([bits]).plain[0]
    if unanswered(answer):
        return Feedback(False, "Replace the ... with two numbers: cycles from shared memory, sectors of global memory.")
    right = (load.wavefronts, len(load.sectors))
    if same(answer, right):
        distance = bits // BLOCK_BITS
        said = f"gcd({distance}, 8) = {load.gcd} rows meet in a bank; each row lies in a sector of its own"
        return Feedback(True, f"{said}, half of which it uses.")
    given = tuple(answer) if isinstance(answer, list) else answer
    mistakes = [
        ((right[0], 4), "4 sectors are what a tile in one piece takes; here every row starts a new sector."),
        ((right[0], 8 * bits // 256), "only the tile's own 16 bytes of each row are loaded."),
        ((8, right[1]), "8 rows meet only where the distance is a multiple of 1,024 bits, all 32 banks."),
        ((1, right[1]), "some rows do meet: 32 banks of 4 bytes are 1,024 bits; which rows begin at the same bank?"),
    ]
    hint = "(cycles, sectors): gcd(bits / 128, 8) rows meet in a bank; how many 32-byte sectors do 8 rows begin?"
    return Feedback(False, recognise(given, mistakes, hint))


@checked
def check_combine(function: Any) -> Feedback:
    """Check ``function(counts)``: the sum of products of 2-bit signed weights and 2-bit unsigned pixels, from the
    ``counts`` of their planes, ``counts[s][t]`` for plane s of the weights and t of the pixels."""
    cases = [(counts,) for counts in COUNTS]
    found, problem = call_each(function, cases, lambda counts: f"counts={counts}")
    if problem is not None:
        return problem
    for (counts,), given in zip(cases, found, strict=True):
        right = _combined(counts, (1, -2), (1, 2))
        if not same(given, right):
            named = _known(found, WRONG_COMBINED, cases)
            return Feedback(
                False, named or f"For counts={counts} you return {short(given)}; the right answer is {right}."
            )
    return Feedback(True, "Each pair of planes has one factor, so planes cost counts, and hardly any additions.")


def _combined(counts: Any, weights: tuple[int, int], pixels: tuple[int, int]) -> int:
    return sum(weights[s] * pixels[t] * counts[s][t] for s in range(2) for t in range(2))


WRONG_COMBINED = {
    "The weights are signed: their top plane counts -2, not 2.": lambda counts: _combined(counts, (1, 2), (1, 2)),
    "That has the sign on the pixels: counts[s][t] is of plane s of the weights.": (
        lambda counts: _combined(counts, (1, 2), (1, -2))
    ),
    "Planes are worth 1 and 2, not the same: multiply each count by both factors.": (
        lambda counts: _combined(counts, (1, 1), (1, 1))
    ),
    "Only one of both planes is counted: multiply the factors of the weights and of the pixels.": (
        lambda counts: _combined(counts, (1, -2), (1, 1))
    ),
}


@checked
def check_instructions(answer: Any, workload: ConvWorkload | str, config: Configuration | None = None) -> Feedback:
    """Check how many one-bit instructions (K = 256) a kernel issues for a tile of 8 pixels of 8 images: all taps, all
    planes. Without a configuration, for the default one."""
    wl = parse(workload)
    record = plane_composition(wl, config)
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of instructions.")
    steps, planes, p = record.steps, record.planes, record.weight_planes
    if same(answer, steps * planes):
        return Feedback(True, f"{steps} for a plane, {planes} planes of activations; those of the weights are columns.")
    pieces = wl.r * wl.s * ceil_div(wl.c, BLOCK_BITS)
    mistakes = [
        (steps * planes * p, f"the {p} planes of the weights are columns of the same instruction."),
        (steps, f"those are for one of {planes} planes of activations."),
        (pieces * planes, "an instruction takes K = 256: two pieces of 128 channels."),
        (pieces, "an instruction takes two pieces of 128 channels, and each plane of activations needs its own."),
        (ceil_div(wl.r * wl.s * wl.c, 256), "channels are filled up to 128 for each tap; and every plane counts."),
    ]
    hint = "taps x blocks of 128 channels, two of them in each instruction (rounded up), times planes of activations."
    return Feedback(False, recognise(answer, mistakes, hint))


@checked
def check_corner(answer: Any, workload: ConvWorkload | str) -> Feedback:
    """Check the sums at output pixel (0, 0) if all weights and pixels of a ``w1a1`` layer are 1, with padding zero,
    minus and plus."""
    wl = parse(workload)
    if wl.precision.weights != wl.precision.activations or wl.precision.activations != Operand(1, BIPOLAR):
        raise InvalidInput(f"workload {wl}: the exercise is for -1 and 1 on both sides, such as {wl.sizes}:w1a1")
    right = tuple(_corner(wl, padding) for padding in PADDINGS)
    if unanswered(answer):
        return Feedback(False, "Replace the ... with three numbers: with padding zero, minus, plus.")
    if same(answer, right):
        return Feedback(True, "zero leaves products out, so the constant n differs at the border; the others keep it.")
    zero, minus, plus = right
    mistakes = [
        ((minus, zero, plus), "zero and minus are swapped."),
        ((minus, minus, plus), "padding zero means the value 0, which no bit has; a bit 0 is -1."),
        ((zero, zero, zero), "minus and plus are real values, -1 and 1, in the taps beyond the border."),
        ((plus, minus, plus), "with padding zero the taps beyond the border add nothing."),
        ((plus, plus, plus), "some taps of pixel (0, 0) lie beyond the border."),
    ]
    hint = f"count the taps inside the image, times {wl.c} channels; then what the others add with each padding."
    return Feedback(False, recognise(answer, mistakes, hint))


def _corner(wl: ConvWorkload, padding: str) -> int:
    types = Precision(wl.precision.weights, wl.precision.activations, padding=padding)
    one = ConvWorkload(1, wl.h, wl.w, wl.c, 1, wl.r, wl.s, wl.pad, wl.stride, wl.dilation, precision=types)
    x, w = np.ones((1, wl.h, wl.w, wl.c), np.int8), np.ones((1, wl.r, wl.s, wl.c), np.int8)
    return int(reference(one, x, w)[0, 0, 0, 0])

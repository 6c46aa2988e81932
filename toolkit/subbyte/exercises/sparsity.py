"""Exercises of the notebook on dual-side sparsity: instructions per k, a column by shift and popcount, the weights'
side, and the baseline of a speed-up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, call_each, short
from subbyte.sparse.bitmap import POSITIONS
from subbyte.sparse.machines import MACHINES
from subbyte.sparse.rows import encode_rows, shifted
from subbyte.sparse.trace import OHMMA_COLUMNS, OHMMA_DENSE, OHMMA_ROWS

WIDTH = 16
"""Pixels per row in the exercise on columns."""
Column = Callable[[int, int], tuple[int, int, int]]


@checked
def check_ohmma(function: Any) -> Feedback:
    """Check ``function(a, b)``: the OHMMA of one k with a and b non-zeros, each from 0 to 32."""
    pairs = [(a, b) for a in range(POSITIONS + 1) for b in range(POSITIONS + 1)]
    found, problem = call_each(function, pairs, lambda a, b: f"a = {a}, b = {b}")
    if problem is not None:
        return problem
    right = [-(-a // OHMMA_ROWS) * -(-b // OHMMA_COLUMNS) for a, b in pairs]
    differing = [at for at, both in enumerate(zip(found, right, strict=True)) if not same(*both)]
    if not differing:
        return Feedback(True, "Whole groups on both sides: that is all that this unit saves, and why it has levels.")
    mistakes: list[tuple[list[Any], str]] = [
        ([-(-a * b // (OHMMA_ROWS * OHMMA_COLUMNS)) for a, b in pairs],
         "That counts products of two non-zeros. An OHMMA takes 8 of A and 16 of B; groups are filled side by side."),
        ([a // OHMMA_ROWS * (b // OHMMA_COLUMNS) for a, b in pairs],
         "A group that is not full is issued too: round up."),
        ([-(-a // OHMMA_COLUMNS) * -(-b // OHMMA_ROWS) for a, b in pairs],
         "The sides are swapped: A goes by 8, B by 16."),
        ([OHMMA_DENSE if a and b else 0 for a, b in pairs],
         "That skips only empty vectors; a condensed vector of few values needs fewer OHMMA."),
    ]  # fmt: skip
    named = next((words for wrong, words in mistakes if same(found, wrong)), "")
    a, b = pairs[differing[0]]
    shown = f"For a = {a}, b = {b} you return {short(found[differing[0]])}; the right answer is {right[differing[0]]}."
    return Feedback(False, f"{len(differing)} of {len(pairs)} counts differ. {named or shown}")


@checked
def check_column(function: Any) -> Feedback:
    """Check ``function(bits, offset)``: for a row of 16 pixels as an integer (bit x: pixel x is not zero) and an offset
    s - pad of -3 to 3, the column's bits for 16 outputs, the index of its first value, and how many values it has."""
    rng = np.random.default_rng(0)
    cases = [(int(bits), offset) for bits in rng.integers(0, 1 << WIDTH, 40) for offset in range(-3, 4)]
    found, problem = call_each(function, cases, lambda bits, offset: f"bits {bits:#x}, offset {offset}")
    if problem is not None:
        return problem
    right = [_column(bits, offset) for bits, offset in cases]
    differing = [at for at, both in enumerate(zip(found, right, strict=True)) if not same(*both)]
    if not differing:
        return Feedback(True, f"All {len(cases)} columns: a shift, a mask and two popcounts each, no loop over pixels.")
    full = (1 << WIDTH) - 1
    mistakes: list[tuple[Column, str]] = [
        (lambda bits, offset: _made(bits >> offset if offset > 0 else bits << -offset, bits, offset),
         "Left shifts leave bits beyond the last output: mask them off."),
        (lambda bits, offset: _made(bits >> abs(offset), bits, offset),
         "A negative offset is padding on the left: shift to the left."),
        (lambda bits, offset: (_column(bits, offset)[0], 0, _column(bits, offset)[2]),
         "The column does not always begin with the row's first value: those that the shift pushed out come before."),
        (lambda bits, offset: (*_column(bits, offset)[:2], bits.bit_count()),
         "The count is that of the row; values that were pushed out or cut off are not in the column."),
        (lambda bits, offset: (_column(bits, offset)[0], max(offset, 0), _column(bits, offset)[2]),
         "The first value's number is a count of non-zeros before it, not of pixels: a popcount of the bits below."),
        (lambda bits, offset: _made((bits << offset if offset > 0 else bits >> -offset) & full, bits, offset),
         "The shift goes the other way: output x reads pixel x + offset, so bits move down by offset."),
    ]  # fmt: skip
    named = next((words for wrong, words in mistakes if same(found, [wrong(*case) for case in cases])), "")
    at = differing[0]
    bits, offset = cases[at]
    shown = f"For bits {bits:#06x} and offset {offset} you return {short(found[at])}; the right answer is {right[at]}."
    return Feedback(False, f"{len(differing)} of {len(cases)} columns differ. {named or shown}")


@cache
def _column(bits: int, offset: int) -> tuple[int, int, int]:
    """The column that sparse im2col makes from a row."""
    pixels = np.array([[bits >> x & 1 for x in range(WIDTH)]])
    one = shifted(encode_rows(pixels), offset, WIDTH)
    return int(one.words[0, 0]), int(one.first[0]), int(one.count[0])


def _made(column: int, bits: int, offset: int) -> tuple[int, int, int]:
    """A column's bits with the counts that follow from them."""
    below = bits & ((1 << offset) - 1) if offset > 0 else 0
    return column, below.bit_count(), column.bit_count()


@checked
def check_sides(answer: Any, nonzeros: int) -> Feedback:
    """Check how many times fewer OHMMA a k takes than dense, (weights on A, weights on B), if this many of 32 weights
    and all activations are non-zero."""
    if isinstance(nonzeros, bool) or nonzeros not in range(1, POSITIONS + 1):
        raise InvalidInput(f"nonzeros {nonzeros!r}: expected 1 to {POSITIONS}")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with two numbers: with the weights on A, and on B.")
    on_a, on_b = -(-nonzeros // OHMMA_ROWS) * 2, 4 * -(-nonzeros // OHMMA_COLUMNS)
    right = (OHMMA_DENSE / on_a, OHMMA_DENSE / on_b)
    if same(answer, right):
        return Feedback(True, f"{on_a} or {on_b} of 8: the finer side is the better one for few weights.")
    mistakes: list[tuple[Any, str]] = [
        (right[::-1], "the sides are swapped: A is skipped by 8, B by 16."),
        ((POSITIONS / nonzeros,) * 2, "that is if every zero were skipped; only whole groups of 8 or 16 are."),
        ((on_a, on_b), "those are the OHMMA that are left; a dense k takes 8."),
    ]
    hint = "a dense k takes 4 groups of A times 2 groups of B; the activations' side keeps all of its groups."
    return Feedback(False, recognise(answer, mistakes, hint))


@checked
def check_core(answer: Any, same_unit: Any) -> Feedback:
    """Check how many times faster than the dense core a layer is that is ``same_unit`` times as fast as the same unit
    dense, compute alone; to two decimals."""
    if isinstance(same_unit, bool) or not isinstance(same_unit, (int, float)) or not same_unit > 0:
        raise InvalidInput(f"same_unit {same_unit!r}: expected a number above 0")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number; a dense k takes the unit 9.08 cycles, the core 8.")
    unit = MACHINES["dstc"]
    factor = unit.inner_k / unit.dense_k
    if _near(answer, same_unit * factor):
        return Feedback(True, f"Times {factor:.2f}: the unit's own dense mode is the slower thing to be compared with.")
    mistakes: list[tuple[Any, str]] = [
        (
            lambda given: _near(given, same_unit),
            "that is right only if the unit without zeros were as fast as the core.",
        ),
        (
            lambda given: _near(given, same_unit / factor),
            "the core is faster than the unit without zeros, so less is left.",
        ),
        (lambda given: _near(given, same_unit - 1 + factor), "the share of the loss is a factor, not a difference."),
    ]
    return Feedback(False, recognise(answer, mistakes, "cycles of the core over cycles of the unit, for the same k."))


def _near(given: Any, right: float) -> bool:
    """Whether a number agrees to two decimals."""
    try:
        return not isinstance(given, (bool, str)) and abs(float(given) - right) < 0.0051
    except (TypeError, ValueError, OverflowError):
        return False

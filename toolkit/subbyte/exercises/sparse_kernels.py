"""Exercises of the notebook on sparsity today: what 2:4 keeps, its metadata, why unstructured zeros are hard to skip,
and what shared memory leaves of the sparse instruction's rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, call_each, short

FOUR = 4
ROWS, COLUMNS = 16, 8
"""Rows and columns of a tile that one warp-level product writes."""
STEP = 64
"""Input channels of a sparse instruction."""


@checked
def check_pair(function: Any) -> Feedback:
    """Check ``function(four)``: the two positions, ascending, that 2:4 pruning by magnitude keeps of a list of four
    weights; the earlier ones if magnitudes are equal."""
    rng = np.random.default_rng(1)
    cases = [([int(value) for value in four],) for four in rng.integers(-8, 8, (60, FOUR))]
    found, problem = call_each(function, cases, lambda four: f"four = {four}")
    if problem is not None:
        return problem
    right = [_pair(four) for (four,) in cases]
    differing = [at for at, both in enumerate(zip(found, right, strict=True)) if not same(*both)]
    if not differing:
        return Feedback(True, "Two of four by magnitude, in the order of their places: what `sparse.prune` keeps.")
    mistakes = [
        ([_places(four, lambda at, value: (-value, at)) for (four,) in cases],
         "Those are the largest values; -7 weighs more than 3: compare magnitudes."),
        ([_by(four) for (four,) in cases], "The right places, but not in ascending order."),
        ([_places(four, lambda at, value: (abs(value), at)) for (four,) in cases],
         "Those are the two that 2:4 pruning drops; the question is about the two that stay."),
    ]  # fmt: skip
    named = next((words for wrong, words in mistakes if same(found, wrong)), "")
    at = differing[0]
    shown = f"Of {cases[at][0]} you keep {short(found[at])}; the right answer is {right[at]}."
    return Feedback(False, f"{len(differing)} of {len(cases)} groups differ. {named or shown}")


def _by(four: list[int]) -> tuple[int, ...]:
    return tuple(sorted(range(FOUR), key=lambda at: (-abs(four[at]), at))[:2])


def _pair(four: list[int]) -> tuple[int, ...]:
    return tuple(sorted(_by(four)))


def _places(four: list[int], key: Any) -> tuple[int, ...]:
    return tuple(sorted(sorted(range(FOUR), key=lambda at: key(at, four[at]))[:2]))


@checked
def check_nibble(function: Any) -> Feedback:
    """Check ``function(first, second)``: the four metadata bits of a group that keeps these two positions."""
    pairs = [(first, second) for first in range(FOUR) for second in range(first + 1, FOUR)]
    found, problem = call_each(function, pairs, lambda first, second: f"places {first} and {second}")
    if problem is not None:
        return problem
    right = [first | second << 2 for first, second in pairs]
    if same(found, right):
        return Feedback(True, "Two indices of two bits, the first in the lower ones: 4, 8, 12, 9, 13 and 14.")
    mistakes = [
        ([first << 2 | second for first, second in pairs], "The first index is in the lower bits."),
        ([1 << first | 1 << second for first, second in pairs],
         "That is a mask of four bits; the hardware wants two indices, of two bits each."),
    ]  # fmt: skip
    named = next((words for wrong, words in mistakes if same(found, wrong)), "")
    at = next(at for at, both in enumerate(zip(found, right, strict=True)) if not same(*both))
    shown = f"For places {pairs[at]} you return {short(found[at])}; the right answer is {right[at]}."
    return Feedback(False, named or shown)


@checked
def check_live(function: Any) -> Feedback:
    """Check ``function(density)``: the share of positions of K at which a tile of 16 rows by 8 columns has a product to
    compute, if each value of both operands is non-zero with this probability."""
    densities = [(0.0,), (0.02,), (0.05,), (0.1,), (0.2,), (0.5,), (1.0,)]
    found, problem = call_each(function, densities, lambda density: f"density {density}")
    if problem is not None:
        return problem
    right = [_live(density, ROWS) * _live(density, COLUMNS) for (density,) in densities]
    if _near(found, right):
        return Feedback(True, "At one value in ten almost half of the positions are live: a tile sees too many rows.")
    mistakes = [
        ([d * d for (d,) in densities],
         "That is one product's chance. A position is live if any of 16 rows and any of 8 columns is."),
        ([_live(d, ROWS + COLUMNS) for (d,) in densities], "Both sides must be alive: the chances are multiplied."),
        ([1 - (1 - d * d) ** (ROWS * COLUMNS) for (d,) in densities],
         "Products of one row share its value, so they are not independent draws; take rows and columns apart."),
    ]  # fmt: skip
    named = next((words for wrong, words in mistakes if _near(found, wrong)), "")
    at = next((at for at, both in enumerate(zip(found, right, strict=True)) if not _near(*([one] for one in both))), 0)
    shown = f"At density {densities[at][0]} you return {short(found[at])}; the right answer is {right[at]:.4f}."
    return Feedback(False, named or shown)


def _live(density: float, lines: int) -> float:
    return float(1 - (1 - density) ** lines)


def _near(found: list[Any], right: list[float]) -> bool:
    """Whether numbers agree to four decimals."""
    try:
        pairs = zip(found, right, strict=True)
        return all(not isinstance(one, (bool, str)) and abs(float(one) - two) < 5e-5 for one, two in pairs)
    except (TypeError, ValueError, OverflowError):
        return False


@checked
def check_from_shared(answer: Any, columns: int) -> Feedback:
    """Check how many times as fast as dense s8 a sparse wgmma with this many columns is with both operands in shared
    memory, to two digits: 64 channels take it 16 + N/2 clocks, and two dense instructions N/2 each."""
    if isinstance(columns, bool) or columns not in range(64, 257, 8):
        raise InvalidInput(f"columns {columns!r}: expected 64, 72, ... 256")
    if unanswered(answer):
        return Feedback(
            False, "Replace the ... with a number: clocks of the dense instructions over those of the sparse one."
        )
    right = columns / (16 + columns / 2)
    if _close(answer, right):
        return Feedback(True, f"{right:.2f}: never 2, which takes weights that are in registers already.")
    mistakes: list[tuple[Any, str]] = [
        (lambda given: _close(given, 2.0), "that is the rate with the kept weights in registers."),
        (lambda given: _close(given, 1 / right), "that is the time; the question is how many times as fast."),
        (lambda given: _close(given, columns / 2 / (16 + columns / 2)),
         f"one dense instruction takes {STEP // 2} channels: {STEP} need two."),
    ]  # fmt: skip
    return Feedback(False, recognise(answer, mistakes, "N clocks dense, 16 + N/2 sparse."))


def _close(given: Any, right: float) -> bool:
    try:
        return not isinstance(given, (bool, str)) and abs(float(given) - right) < 0.0051
    except (TypeError, ValueError, OverflowError):
        return False

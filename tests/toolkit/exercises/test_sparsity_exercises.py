"""The exercises on dual-side sparsity: the right answers, and what each typical mistake is told."""

from __future__ import annotations

from typing import Any

import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises import check_column, check_core, check_ohmma, check_sides


def refused(feedback: Any, words: str) -> None:
    assert not feedback
    assert words in feedback.message


def column(bits: int, offset: int) -> tuple[int, int, int]:
    moved = uncut(bits, offset) & 0xFFFF
    return moved, (bits & ((1 << max(offset, 0)) - 1)).bit_count(), moved.bit_count()


def uncut(bits: int, offset: int) -> int:
    return bits >> offset if offset > 0 else bits << -offset


def test_the_instructions_of_a_k() -> None:
    assert check_ohmma(lambda a, b: -(-a // 8) * -(-b // 16))
    refused(check_ohmma(lambda a, b: -(-a * b // 128)), "products of two non-zeros")
    refused(check_ohmma(lambda a, b: a // 8 * (b // 16)), "round up")
    refused(check_ohmma(lambda a, b: -(-a // 16) * -(-b // 8)), "sides are swapped")
    refused(check_ohmma(lambda a, b: 8 if a and b else 0), "skips only empty vectors")
    refused(check_ohmma(lambda a, b: 1), "For a = 0, b = 0 you return 1; the right answer is 0")


def test_a_column_by_shift_and_popcount() -> None:
    assert check_column(column)
    assert check_column(lambda bits, offset: list(column(bits, offset)))
    for wrong, words in (
        (lambda m, f, c, bits, s: (uncut(bits, s), f, uncut(bits, s).bit_count()),
         "mask them off"),
        (lambda m, f, c, bits, s: (bits >> abs(s), f, (bits >> abs(s)).bit_count()), "shift to the left"),
        (lambda m, f, c, bits, s: (m, 0, c), "pushed out come before"),
        (lambda m, f, c, bits, s: (m, f, bits.bit_count()), "count is that of the row"),
        (lambda m, f, c, bits, s: (m, max(s, 0), c), "a popcount of the bits below"),
        (lambda m, f, c, bits, s: (m, f, c + 1), "For bits"),
    ):  # fmt: skip
        refused(check_column(lambda bits, s, wrong=wrong: wrong(*column(bits, s), bits, s)), words)
    other = lambda bits, s: (bits << s if s > 0 else bits >> -s) & 0xFFFF  # noqa: E731
    refused(
        check_column(lambda bits, s: (other(bits, s), column(bits, s)[1], other(bits, s).bit_count())), "the other way"
    )
    refused(check_column(lambda bits, s: 1 / 0), "raised ZeroDivisionError")


def test_the_side_of_the_weights() -> None:
    assert check_sides((4, 2), 3)
    assert check_sides((2, 2), 12)
    for answer, words in (
        ((2, 4), "swapped"), ((32 / 3, 32 / 3), "every zero"), ((4.0, 4.0), "keeps all"), ((..., ...), "two numbers"),
    ):  # fmt: skip
        refused(check_sides(answer, 3), words)
    refused(check_sides((4, 4), 12), "OHMMA that are left")
    with pytest.raises(InvalidInput, match="1 to 32"):
        check_sides((1, 1), 0)


def test_what_a_speed_up_is_over() -> None:
    assert check_core(2.115, 2.4)
    assert check_core(0.88, 1.0)
    for answer, words in ((2.4, "as fast as the core"), (2.723, "less is left"), (2.281, "a factor"), (7, "cycles of")):
        refused(check_core(answer, 2.4), words)
    refused(check_core(..., 2.4), "Replace")
    with pytest.raises(InvalidInput, match="above 0"):
        check_core(1.0, -1)

"""The exercises on sparsity today: the right answers, and what each typical mistake is told."""

from __future__ import annotations

from typing import Any

import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises import check_from_shared, check_live, check_nibble, check_pair


def refused(feedback: Any, words: str) -> None:
    assert not feedback
    assert words in feedback.message


def by_magnitude(four: list[int]) -> list[int]:
    return sorted(range(4), key=lambda place: (-abs(four[place]), place))


def test_two_of_four_by_magnitude() -> None:
    assert check_pair(lambda four: tuple(sorted(by_magnitude(four)[:2])))
    refused(check_pair(lambda four: tuple(sorted(sorted(range(4), key=lambda at: (-four[at], at))[:2]))), "magnitudes")
    refused(check_pair(lambda four: tuple(by_magnitude(four)[:2])), "ascending")
    refused(check_pair(lambda four: tuple(sorted(by_magnitude(four)[2:]))), "the right answer is")
    refused(check_pair(lambda four: (0, 1)), "you keep (0, 1)")


def test_metadata_of_a_group() -> None:
    assert check_nibble(lambda first, second: first | second << 2)
    refused(check_nibble(lambda first, second: first << 2 | second), "lower bits")
    refused(check_nibble(lambda first, second: 1 << first | 1 << second), "two indices")
    refused(check_nibble(lambda first, second: 4), "the right answer is 8")


def test_live_positions_of_a_tile() -> None:
    assert check_live(lambda d: (1 - (1 - d) ** 16) * (1 - (1 - d) ** 8))
    refused(check_live(lambda d: d * d), "any of 16 rows")
    refused(check_live(lambda d: 1 - (1 - d) ** 24), "multiplied")
    refused(check_live(lambda d: 1 - (1 - d * d) ** 128), "rows and columns apart")
    refused(check_live(lambda d: 1.0), "At density 0.0 you return 1.0")


def test_both_operands_in_shared_memory() -> None:
    assert check_from_shared(1.6, columns=128)
    refused(check_from_shared(2, columns=128), "in registers")
    refused(check_from_shared(0.625, columns=128), "the time")
    refused(check_from_shared(0.8, columns=128), "need two")
    refused(check_from_shared(..., columns=128), "Replace the ...")
    with pytest.raises(InvalidInput, match="columns 12"):
        check_from_shared(1.0, columns=12)

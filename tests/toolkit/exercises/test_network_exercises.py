"""The exercises on a binary network: the right answers, and what each typical mistake is told."""

from __future__ import annotations

from typing import Any

import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises import check_class, check_largest_sum, check_residual

NAME = "tcbnn.resnet18@8"


def refused(feedback: Any, words: str) -> None:
    assert not feedback
    assert words in feedback.message


def test_the_class_of_an_image() -> None:
    assert check_class(lambda sums, m, b: (sums * m + b).argmax())
    assert check_class(lambda sums, m, b: max(range(10), key=lambda i: int(sums[i]) * int(m[i]) + int(b[i])))
    refused(check_class(lambda sums, m, b: sums.argmax()), "3 of 359 classes differ. That is the largest sum")
    refused(check_class(lambda sums, m, b: int((sums * m).argmax())), "The bias is missing")
    refused(check_class(lambda sums, m, b: (sums + b).argmax()), "The multiplier is missing")
    refused(check_class(lambda sums, m, b: (sums * m + b).argmin()), "For test image 0 you return")


def test_what_a_sum_can_be() -> None:
    right = check_largest_sum(9 * 64 + 147 * 128, NAME, "stage1.1b")
    assert right
    assert "16 bits hold that" in right.message
    assert "do not hold" in check_largest_sum(36_096, NAME, "stage4.2b").message
    refused(check_largest_sum(576, NAME, "stage1.1b"), "sums itself")
    refused(check_largest_sum(18_816, NAME, "stage1.1b"), "adds its own")
    refused(check_largest_sum(576 + 147, NAME, "stage1.1b"), "pixels of 8 bits")
    refused(check_largest_sum(576 + 147 * 127, NAME, "stage1.1b"), "can be -128")
    refused(check_largest_sum(576 + 147 * 255, NAME, "stage1.1b"), "less 128")
    refused(check_largest_sum(1152, NAME, "stage1.2b"), "another layer")
    with pytest.raises(InvalidInput, match="adds no residual; these do: stage1"):
        check_largest_sum(1, NAME, "stem")


def test_the_bytes_of_a_residual() -> None:
    read, written = 8 * 28 * 28 * 128 * 2, 8 * 14 * 14 * 256 * 2
    assert check_residual(read + written, NAME, "stage3.1b")
    for answer, words in (
        (read, "those are read"), (written, "those are written"),
        (2 * read, "has not as many"), ((read + written) // 16, "sums, not bits"),
        ((read + written) // 2, "takes 2 bytes"), (2 * (read + written), "16 bits hold"),
        ((read + written) // 8, "one image of 8"), (7, "times the bytes of a sum"),
    ):  # fmt: skip
        refused(check_residual(answer, NAME, "stage3.1b"), words)
    assert check_residual(4 * 8 * 56 * 56 * 64, NAME, "stage1.1b")

"""Numbers as answers: not given yet, the right one, or the number that a typical mistake leads to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def unanswered(answer: Any) -> bool:
    """Whether an answer is still the placeholder ``...`` (or None), or contains one."""
    if isinstance(answer, Mapping):
        return not answer or any(unanswered(value) for value in answer.values())
    if isinstance(answer, (tuple, list)):
        return not answer or any(unanswered(value) for value in answer)
    return answer is None or answer is ...


def same(answer: Any, right: Any) -> bool:
    """Whether a number, or each number of a sequence, is the right one."""
    if isinstance(right, (tuple, list)):
        return isinstance(answer, (tuple, list)) and len(answer) == len(right) and all(map(same, answer, right))
    return not isinstance(answer, (bool, str)) and _number(answer) and abs(float(answer) - float(right)) < 1e-9


def recognise(answer: Any, mistakes: Iterable[tuple[Any, str]], otherwise: str) -> str:
    """The explanation of the first mistake that leads to this number; ``otherwise`` if none does.

    A mistake is (the answer it leads to, or a test of the answer; what went wrong).
    """
    for wrong, words in mistakes:
        if wrong(answer) if callable(wrong) else same(answer, wrong):
            return words
    return otherwise


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True

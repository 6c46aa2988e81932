"""Feedback on an answer: right or not yet, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from subbyte.errors import shown
from subbyte.html import element


@dataclass(frozen=True)
class Feedback:
    """The result of a checker. It is true in a condition if the answer is right."""

    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __str__(self) -> str:
        return ("Right. " if self.right else "Not yet. ") + self.message

    def _repr_html_(self) -> str:
        colour, mark = ("#009e73", "\u2713 Right.") if self.right else ("#d55e00", "\u2192 Not yet.")
        style = f"border-left: 4px solid {colour}; padding: 8px 14px; max-width: 820px"
        return element("div", element("b", mark), f" {self.message}", style=style)


def call(function: Any, *arguments: Any, case: str, arrays: bool = False) -> tuple[Any, Feedback | None]:
    """The answer function's result for a case, or feedback if it is not a function, or raises.

    Arrays are converted to lists, which can be compared with anything, unless ``arrays`` is set.
    """
    if not callable(function):
        return None, Feedback(False, f"Give a function, not {short(function)}.")
    try:
        result = function(*arguments)
        return (result.tolist() if getattr(result, "ndim", 0) and not arrays else result), None
    except Exception as problem:
        # Whatever a reader's code raises is reported to them.
        return None, Feedback(False, f"For {case} your function raised {type(problem).__name__}: {problem}")


def call_each(
    function: Any, cases: Iterable[tuple[Any, ...]], said: Callable[..., str]
) -> tuple[list[Any], Feedback | None]:
    """The results for the arguments of each case, or feedback on the first case that raises; ``said`` describes a case
    in words."""
    found: list[Any] = []
    for arguments in cases:
        given, problem = call(function, *arguments, case=said(*arguments))
        if problem is not None:
            return found, problem
        found.append(given)
    return found, None


def mistake(given: Any, known: Mapping[str, Callable[[], Any]]) -> str:
    """The explanation of the first known wrong answer that equals the given one; empty if none does."""
    given = given.tolist() if getattr(given, "ndim", 0) else given
    return next((words for words, wrong in known.items() if wrong() == given), "")


def short(value: Any) -> str:
    """A value as text of at most 60 characters."""
    try:
        text = repr(value)
    except Exception:  # an integer of many digits, or a class of the reader's own
        text = shown(value)
    return text if len(text) <= 60 else text[:57] + "..."

"""Sliders go to the nearest value that can be drawn; the view says so, and its picture stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subbyte.errors import SubbyteError


def clamped(change: Any, draw: Callable[[int], None]) -> tuple[int, str]:
    """Draw with a control's new number, or with the nearest possible one on the way back to its old number.

    ``change`` is the control's; ``draw(value)`` raises SubbyteError for a value that it cannot draw. Returns the value
    that is drawn, and the reason if it is not the requested one, else nothing. Raises the error if no value on the way
    can be drawn.
    """
    asked, before = change.new, change.old
    try:
        draw(asked)
        return asked, ""
    except SubbyteError as problem:
        reason = problem
    step = 1 if before > asked else -1
    for value in range(asked + step, before + step, step):
        try:
            draw(value)
        except SubbyteError:
            continue
        words = str(reason).rstrip(".")
        return value, f"{change.owner.description} {asked} was asked, {value} is shown: {words}."
    raise reason

"""Sliders go to the nearest value that can be drawn, the view says so, and its picture stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subbyte.errors import SubbyteError


def clamped(change: Any, draw: Callable[[int], None]) -> tuple[int, str]:
    """Draw with the number that a control was moved to, else with the nearest one on the way back to where it was.

    ``change`` is the control's; ``draw(value)`` raises SubbyteError for a value that it cannot draw. Returns the value
    that is drawn, and what to say: why it is another than what was asked, else nothing. Raises the refusal where
    nothing on the way can be drawn.
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

"""Integers in text that people write: one definition of what counts as one."""

from __future__ import annotations

MOST_DIGITS = 18


def natural(text: str) -> int | None:
    """The number that a text of 1 to 18 digits 0 to 9 stands for; None for anything else.

    ``str.isdigit`` accepts a superscript two, which ``int`` rejects, and ``int`` rejects thousands of digits.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None

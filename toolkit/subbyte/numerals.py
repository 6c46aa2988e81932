"""Whole numbers in texts that people write: one answer to what counts as one."""

from __future__ import annotations

MOST_DIGITS = 18


def natural(text: str) -> int | None:
    """The number that a text of 1 to 18 digits 0 to 9 says; None for anything else.

    ``str.isdigit`` takes a superscript two, which ``int`` refuses, and ``int`` refuses thousands of digits.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None

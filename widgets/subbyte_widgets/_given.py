"""Checks that a view was given what it draws; anything else is rejected with a message that says what to give."""

from __future__ import annotations

from typing import Any

from subbyte.errors import InvalidInput


def expect(view: object, given: Any, kinds: type | tuple[type, ...], instead: str) -> None:
    """Raise InvalidInput unless ``given``, or each item of a list or tuple, is one of ``kinds``.

    ``instead`` is the sentence that says what to give.
    """
    several = list(given) if isinstance(given, list | tuple) else [given]
    wrong = [one for one in several if not isinstance(one, kinds)]
    if wrong:
        text = repr(wrong[0])
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise InvalidInput(f"{type(view).__name__} cannot draw {shown}: {instead}")

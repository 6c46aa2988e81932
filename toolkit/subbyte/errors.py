"""The errors that a user of subbyte can meet, each with its exit code on the command line.

Every message names the rejected input, the values that would be accepted and what to do next; no exception of another
library reaches the user. Long inputs are shortened in messages.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_LONG_WORD = re.compile(r"\S{300,}")
LONGEST_VALUE = 160
"""Most characters of a value in a message."""


class SubbyteError(Exception):
    """Base of every error raised on purpose. ``exit_code`` is what the command line returns.

    Words of more than 300 characters and messages of more than ``longest`` are cut in the middle.
    """

    exit_code = 1
    longest = 1_200

    def __init__(self, message: str = "", *more: object) -> None:
        words = _LONG_WORD.sub(lambda word: shortened(word[0], LONGEST_VALUE), str(message))
        super().__init__(shortened(words, self.longest), *more)


class WrongResult(SubbyteError):
    """A kernel ran, and at least one output element differs from the reference."""

    exit_code = 1


class InvalidInput(SubbyteError, ValueError):
    """The request itself is wrong: unknown name, impossible knob value, wrong dtype or shape."""

    exit_code = 2


class Unsupported(InvalidInput):
    """A valid convolution or configuration that no kernel covers; the message says why."""


class BrokenRecord(InvalidInput):
    """A record log or landscape file is damaged; the message gives the line number."""


class MissingDependency(SubbyteError):
    """This machine lacks something (a GPU, a compiler, an optional package)."""

    exit_code = 3


class NotWritten(SubbyteError):
    """A result could not be written: the disk is full or gone, or standard output cannot be written."""

    exit_code = 3


class BuildFailed(SubbyteError):
    """A configuration passed every constraint, but could not be lowered or compiled."""

    longest = 4_000  # including what the compiler said


def shortened(text: str, most: int) -> str:
    """``text`` in at most ``most`` characters: if it is longer, its length replaces its middle."""
    if len(text) <= most:
        return text
    said = f" ... ({len(text):,} characters) ... "
    kept = max(0, most - len(said))
    return text[: kept - kept // 3] + said + text[len(text) - kept // 3 :]


def shown(value: object, most: int = LONGEST_VALUE) -> str:
    """A value as a message shows it: its ``repr``, or a description where that is long, has several lines or fails."""
    if isinstance(value, str | bytes) and len(value) > most:
        value = value[:most]  # the repr of a long value takes time in proportion to its length
        return shortened(f"{value!r}...", most)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"a {type(value).__name__} of {getattr(value, 'dtype', 'values')} {list(shape)}"[:most]
    if isinstance(value, int) and value.bit_length() > 2 * most:
        return f"an integer of {value.bit_length():,} bits"
    try:
        found = repr(value)
    except Exception:  # a caller's own class may raise anything
        return f"a {type(value).__name__}"
    return shortened(" ".join(found.split()), most)


def in_words(error: BaseException, most: int = 500) -> str:
    """An exception from a caller's own code in words: its type and message, or the type alone where that fails."""
    try:
        said = str(error)
    except Exception:  # such a class may raise anything
        said = ""
    return f"{type(error).__name__}: {said}".strip(": ")[:most]


def did_you_mean(given: object, allowed: Iterable[str], limit: int = 3) -> str:
    """Part of a sentence that lists the closest allowed values, or all of them when none is close."""
    names = sorted(map(str, allowed))
    wrong = given if isinstance(given, str) else shown(given)
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(wrong[:LONGEST_VALUE].casefold(), folded, n=limit, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(folded[name] for name in close) + "?"
    first = names if len(names) <= 16 else [*names[:12], "..."]
    return f"allowed: {', '.join(first)}"

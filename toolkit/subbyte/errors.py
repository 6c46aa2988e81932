"""The errors a user of subbyte can meet, each with the exit code the command line gives it.

Every message names the input that was refused, the values that would be accepted and what to do
next; nothing in the toolkit lets an exception of another library reach the user. Of a long input a message repeats
a part.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_LONG_WORD = re.compile(r"\S{300,}")
LONGEST_VALUE = 160
"""Characters of a value in a message."""


class SubbyteError(Exception):
    """Base of every error raised on purpose. ``exit_code`` is what the command line returns.

    A word of more than 300 characters, and a message of more than ``longest``, are cut in their middle.
    """

    exit_code = 1
    longest = 1_200

    def __init__(self, message: str = "", *more: object) -> None:
        words = _LONG_WORD.sub(lambda word: shortened(word[0], LONGEST_VALUE), str(message))
        super().__init__(shortened(words, self.longest), *more)


class WrongResult(SubbyteError):
    """A kernel ran and at least one output element differs from the reference."""

    exit_code = 1


class InvalidInput(SubbyteError, ValueError):
    """The request itself is wrong: unknown name, impossible knob, wrong dtype or shape."""

    exit_code = 2


class Unsupported(InvalidInput):
    """A valid convolution (or configuration) that no kernel of the toolkit covers, with the reason."""


class BrokenRecord(InvalidInput):
    """A record log or landscape file is damaged; the message gives the line number."""


class MissingDependency(SubbyteError):
    """This machine lacks something (a GPU, a compiler, an optional package)."""

    exit_code = 3


class NotWritten(SubbyteError):
    """What was computed could not be written: the disk is full or gone, the standard output cannot be written."""

    exit_code = 3


class BuildFailed(SubbyteError):
    """A configuration that passed every constraint could not be lowered or compiled."""

    longest = 4_000  # with what the compiler said


def shortened(text: str, most: int) -> str:
    """``text`` of at most ``most`` characters: where it is longer, with its length in place of its middle."""
    if len(text) <= most:
        return text
    said = f" ... ({len(text):,} characters) ... "
    kept = max(0, most - len(said))
    return text[: kept - kept // 3] + said + text[len(text) - kept // 3 :]


def shown(value: object, most: int = LONGEST_VALUE) -> str:
    """A value as a message shows it: its ``repr``, or what it is where that is long, has several lines or fails."""
    if isinstance(value, str | bytes) and len(value) > most:
        value = value[:most]  # the repr of a long one takes as long as it is
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
    """An exception of a caller's own code in words: its type and what it says, the type alone where that fails."""
    try:
        said = str(error)
    except Exception:  # such a class may raise anything
        said = ""
    return f"{type(error).__name__}: {said}".strip(": ")[:most]


def did_you_mean(given: object, allowed: Iterable[str], limit: int = 3) -> str:
    """A sentence part listing the closest allowed values, or all of them when none is close."""
    names = sorted(map(str, allowed))
    wrong = given if isinstance(given, str) else shown(given)
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(wrong[:LONGEST_VALUE].casefold(), folded, n=limit, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(folded[name] for name in close) + "?"
    first = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"allowed: {first}"

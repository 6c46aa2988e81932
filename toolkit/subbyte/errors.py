"""The errors a user of subbyte can meet, each with the exit code the command line gives it.

Every message names the input that was refused, the values that would be accepted and what to do
next; nothing in the toolkit lets an exception of another library reach the user.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SubbyteError(Exception):
    """Base of every error raised on purpose. ``exit_code`` is what the command line returns."""

    exit_code = 1


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


def did_you_mean(given: object, allowed: Iterable[str], limit: int = 3) -> str:
    """A sentence part listing the closest allowed values, or all of them when none is close."""
    names = sorted(map(str, allowed))
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(str(given).casefold(), folded, n=limit, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(folded[name] for name in close) + "?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"allowed: {shown}"

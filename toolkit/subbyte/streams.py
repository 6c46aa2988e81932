"""Standard output and standard error of a program, which may be closed, full, or without a reader."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, Any

from subbyte.errors import NotWritten


def say(text: str, end: str = "\n") -> None:
    """A message on stderr, at once. Where nobody can read it, it is left out: work goes on for the result."""
    if sys.stderr is None:  # ``print`` would take stdout instead
        return
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # ValueError: closed by this process
        _abandon(sys.stderr)


def is_terminal() -> bool:
    """Whether somebody watches stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def put(text: str, end: str = "\n") -> None:
    """A result on stdout, at once. Raises NotWritten where it cannot be written, BrokenPipeError without a reader."""
    _try(lambda: print(text, end=end, flush=True))


def flush() -> None:
    """Whatever was printed elsewhere leaves now. Raises as :func:`put`."""
    if sys.stdout is not None:
        _try(sys.stdout.flush)


def open_closed() -> bool:
    """Open what was closed at the start, so that no file of ours gets its number. False when stdout was closed."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        return False
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that this terminal's encoding lacks
    return True


def _try(write: Any) -> None:
    try:
        write()
    except BrokenPipeError:
        _abandon(sys.stdout)
        raise
    except OSError as error:
        _abandon(sys.stdout)
        raise NotWritten(
            f"the standard output cannot be written: {error.strerror or error}; send it to another file or a pipe"
        ) from None


def _abandon(stream: IO[str]) -> None:
    """Whatever the interpreter flushes at its end must not complain again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)

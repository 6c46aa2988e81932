"""Standard output and standard error of a program, which may be closed, full, or without a reader."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, Any

from subbyte.errors import NotWritten


def say(text: str, end: str = "\n") -> None:
    """Write a message to stderr, unbuffered. If nobody can read it, it is dropped: the work goes on for the result."""
    if sys.stderr is None:  # ``print`` would write to stdout instead
        return
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # ValueError: closed by this process
        _abandon(sys.stderr)


def is_terminal() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def put(text: str, end: str = "\n") -> None:
    """Write a result to stdout, unbuffered. Raises NotWritten if it cannot be written, BrokenPipeError without a
    reader."""
    _try(lambda: print(text, end=end, flush=True))


def flush() -> None:
    """Flush what was printed elsewhere. Raises like :func:`put`."""
    if sys.stdout is not None:
        _try(sys.stdout.flush)


def open_closed() -> bool:
    """Open streams that were closed at the start, so that no file of ours gets their number. False when stdout was
    closed."""
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
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that this terminal's encoding cannot represent
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
    """Keep the interpreter's flush at exit from complaining again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)

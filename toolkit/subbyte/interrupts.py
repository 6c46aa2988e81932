"""Ctrl-C on the command line: one line and exit code 130, from the first line of this package to the last.

While a command is still being loaded the process ends at once. Later Ctrl-C is a KeyboardInterrupt, so that what was
found is printed and processes are ended; but never in the middle of an import, where foreign code would make another
error of it: there the process ends at once too, or, where results are kept (:func:`keeping`), when the import is done.
Processes that the package starts are in sessions of their own (:mod:`subbyte.processes`), which Ctrl-C does not reach;
whoever started them ends them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

EXIT_CODE = 130
"""128 + SIGINT, as shells report it."""
LINE = "interrupted"
_AGAIN_S = 0.01
_kept: list[bool] = []


def end_at_once() -> None:
    """From now on Ctrl-C ends this process with one line. Where Ctrl-C is ignored (``nohup``) it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_from_now() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, outside of imports; only where :func:`end_at_once` was called."""
    if signal.getsignal(signal.SIGINT) is not _end:
        return
    sys.unraisablehook = _unraisable
    signal.signal(signal.SIGALRM, _raise)
    signal.signal(signal.SIGINT, _raise)


@contextmanager
def keeping() -> Iterator[None]:
    """There are results inside that an interruption must not lose."""
    _kept.append(True)
    try:
        yield
    finally:
        _kept.pop()


def ignore() -> None:
    """From now on Ctrl-C does nothing: the command is done, only the interpreter still has to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(_number: int, _frame: FrameType | None) -> None:
    end()


def end() -> NoReturn:
    """End this process with one line, with ``--json`` one object, past everything that may not be loaded yet."""
    ignore()
    if "--json" in sys.argv:
        words = [word for word in sys.argv[1:] if not word.startswith("-")]
        command = f'"{words[0]}"' if words and words[0].isalpha() and words[0].isascii() else "null"
        error = f'{{"kind": "Interrupted", "message": "{LINE}", "exit_code": {EXIT_CODE}}}'
        _write(1, f'{{"schema": 1, "command": {command}, "error": {error}}}\n')
    _write(2, f"subbyte: {LINE}\n")
    os._exit(EXIT_CODE)


def _write(descriptor: int, text: str) -> None:
    try:
        os.write(descriptor, text.encode())
    except OSError:  # closed or full: there is nobody to tell
        return


def _raise(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            if not _kept:
                end()
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _unraisable(happened: Any) -> None:
    """A KeyboardInterrupt that fell into a place that cannot raise, such as ``__del__``, is raised soon after."""
    if isinstance(happened.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(happened)

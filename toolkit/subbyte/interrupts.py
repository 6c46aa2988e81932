"""Ctrl-C on the command line: one line and exit code 130, from the first line of this package to the last.

While a command is still being loaded, the process ends at once. After that Ctrl-C raises KeyboardInterrupt, so that
results found so far are printed and processes are ended. It is never raised in the middle of an import, where foreign
code would turn it into another error: there the process ends at once too or, where results are kept (:func:`keeping`),
when the import is done. Processes that the package starts are in sessions of their own (:mod:`subbyte.processes`),
which Ctrl-C does not reach; whoever started them ends them.
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
    """From now on Ctrl-C ends this process with one line. Where Ctrl-C is ignored (``nohup``), it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_from_now() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt outside imports; only after :func:`end_at_once` was called."""
    if signal.getsignal(signal.SIGINT) is not _end:
        return
    sys.unraisablehook = _unraisable
    signal.signal(signal.SIGALRM, _raise)
    signal.signal(signal.SIGINT, _raise)


@contextmanager
def keeping() -> Iterator[None]:
    """Context manager: an interruption must not lose the results of the code inside."""
    _kept.append(True)
    try:
        yield
    finally:
        _kept.pop()


def ignore() -> None:
    """From now on Ctrl-C does nothing: the command is done, and only the interpreter has yet to exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(_number: int, _frame: FrameType | None) -> None:
    end()


def end() -> NoReturn:
    """End this process with one line (one object with ``--json``), bypassing anything that may not be loaded yet."""
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
    except OSError:  # closed or full: nobody can read the message
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
    """Raise a KeyboardInterrupt again, soon after it fell into a place that cannot raise, such as ``__del__``."""
    if isinstance(happened.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(happened)

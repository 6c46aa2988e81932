"""The one way in which this package starts worker processes.

Each runs in a session of its own: Ctrl-C in a terminal never reaches it, and ending it also ends what it started.
Whoever started it ends it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_PATIENCE_S = 10.0
"""Seconds that a killed process may take to exit: one inside a driver can be slow."""


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command in its own session, with the import path of this process. ``options`` are those of Popen.

    Raises OSError when it cannot be started.
    """
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return subprocess.Popen(command, start_new_session=True, env={**os.environ, "PYTHONPATH": paths}, **options)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and everything it started, at once. Does nothing to one that has ended."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_S)


def run_apart(command: Sequence[str]) -> int:
    """Run a command whose standard output nobody needs and return its exit status. If waiting for it is interrupted,
    for example by Ctrl-C, the command is ended too."""
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        return process.wait()
    finally:
        end(process)

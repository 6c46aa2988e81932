"""The one way in which this package starts processes that work for it.

Each is in a session of its own: Ctrl-C of a terminal never reaches it, from its first instruction on, and ending it
ends what it started along. Whoever started it ends it.
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
"""How long a killed process may take to be gone: one inside a driver may take its time."""


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command in its own session, with the import path of this process. ``options`` are those of Popen.

    Raises OSError when it cannot be started.
    """
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return subprocess.Popen(command, start_new_session=True, env={**os.environ, "PYTHONPATH": paths}, **options)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and what it started, at once. Does nothing to one that has ended."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_S)


def run_apart(command: Sequence[str]) -> int:
    """Run a command whose standard output nobody needs and return its exit status; it ends with this process's wait
    for it, as after Ctrl-C."""
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        return process.wait()
    finally:
        end(process)

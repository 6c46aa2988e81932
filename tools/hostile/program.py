"""The program ``subbyte`` as a process of its own, and what must never come of it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostile.harness import TRACEBACK, UNCLEAR, WRONG, Failure

LAYER = "resnet50.stage2@8"
EXIT_CODES = (0, 1, 2, 3, 130, 141)
NOISE = ("Traceback", "Exception ignored", "Fatal Python error", "fault of subbyte", "object address")
_MARK = "SUBBYTE_HOSTILE"
_STARTED = """\
import os, sys
from subbyte.__main__ import program
os.write({descriptor}, b"x")
sys.exit(program())
"""


def judge(status: int, out: str | None, err: str | None, argv: Sequence[str]) -> str:
    """stdout of a program that ended well. Raises Failure for a traceback, a signal, an unknown exit code, several
    lines for one failure; SubbyteError for a refusal. ``out`` and ``err`` are None where they could not be read."""
    from subbyte.errors import SubbyteError

    said = err or ""
    if status not in EXIT_CODES or any(word in said for word in NOISE):
        raise Failure(TRACEBACK, f"exit {status}: {said[-400:]}")
    if "--json" in argv and out is not None and status != 141:
        try:
            json.loads(out)
        except ValueError:
            raise Failure(UNCLEAR, f"stdout is not one object: {out[:200]!r}") from None
    if status:
        if status != 130 and err is not None and not said.strip() and status != 141:
            raise Failure(UNCLEAR, f"exit {status} without a word")
        raise SubbyteError(said.strip() or f"exit {status}")
    return out or ""


def environment(changes: Mapping[str, str | None] | None = None) -> tuple[dict[str, str], str]:
    """This process's environment with changes (None removes) and a mark that children inherit; the mark."""
    mark = secrets.token_hex(8)
    wanted: dict[str, str | None] = {**os.environ, **(changes or {}), _MARK: mark}
    return {name: value for name, value in wanted.items() if value is not None}, mark


def survivors(mark: str, patience_s: float = 2.0) -> list[int]:
    """Processes that still run with this mark in their environment."""
    end = time.monotonic() + patience_s
    while found := [pid for pid in _processes() if mark in _environ(pid)]:
        if time.monotonic() > end:
            return found
        time.sleep(0.05)
    return []


def start(argv: Sequence[str], env: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    """Start the program as the leader of a process group; returns when its first line is about to run."""
    read, write = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _STARTED.format(descriptor=write), *argv], env=dict(env), pass_fds=[write],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=_hear,  # noqa: PLW1509 - no other thread runs here
            **options,
        )  # fmt: skip
    finally:
        os.close(write)
    os.read(read, 1)
    os.close(read)
    return process


def _hear() -> None:
    """A shell's background job is started with Ctrl-C ignored, and what it starts inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def must(condition: object, detail: str) -> None:
    """Raise Failure when something is wrong."""
    if not condition:
        raise Failure(WRONG, detail)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environ(pid: int) -> str:
    try:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return ""
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""

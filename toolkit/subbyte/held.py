"""Temporary folders that show whether their owner is still alive, and locks between processes."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

YOUNG = 60.0
"""Seconds: the owner of a folder this young may be about to take its lock."""
STALE = 3600.0
"""Seconds after which a file that takes milliseconds to write is considered abandoned."""


def hold_folder(parent: Path | None, prefix: str) -> tuple[Path, int]:
    """Create a folder for this user only, in ``parent`` or among the system's temporary files, and open the handle that
    keeps it: while the handle is open, in this process or in a child, :func:`sweep` leaves the folder alone.

    Raises OSError if no folder can be created.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    _lock(handle, wait=False)
    return folder, handle


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file or folder; False when another process holds it, or where there are no locks. In that case
    nobody waits and nothing is swept: the atomic rename alone keeps the files correct."""
    try:
        import fcntl
    except ImportError:
        return False
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False


def sweep(parent: Path, prefix: str, *patterns: str) -> None:
    """Delete what killed processes left behind in ``parent``: this user's folders whose names start with ``prefix`` and
    that nobody holds, and files matching ``patterns`` that are older than ``STALE``."""
    with suppress(OSError):
        for folder in parent.glob(f"{prefix}*"):
            with suppress(OSError):
                _sweep_folder(folder)
        for pattern in patterns:
            for file in parent.glob(pattern):
                with suppress(OSError):
                    if _mine(file.lstat(), STALE) and not file.is_dir():
                        file.unlink()


def _sweep_folder(folder: Path) -> None:
    """Delete a folder of this user that is not young and that nobody holds."""
    if not _mine(folder.lstat(), YOUNG):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _lock(handle, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _mine(found: os.stat_result, age: float) -> bool:
    return found.st_uid == os.getuid() and time.time() - found.st_mtime > age


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, created if missing, so that parallel processes do the same work only once. Without locks, or if
    the file cannot be created, nobody waits."""
    handle = None
    with suppress(OSError):
        # not blocking: a named pipe in its place must not stop us
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC, 0o600)
    try:
        if handle is not None and stat.S_ISREG(os.fstat(handle).st_mode):
            _lock(handle, wait=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)

"""Where subbyte keeps what it built: one folder, safe to delete at any time."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from subbyte.errors import MissingDependency
from subbyte.files import home_folder, replace_file

VARIABLE = "SUBBYTE_CACHE"


def cache_root() -> Path:
    """The cache folder: ``$SUBBYTE_CACHE``, else ``$XDG_CACHE_HOME/subbyte``, else ``~/.cache/subbyte``."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home_folder() / ".cache") / "subbyte"


def cache_folder(part: str) -> Path:
    """The folder of one kind of thing (``kernels``, ``emulator``), made if need be.

    Where the cache cannot be written, a folder that lives as long as this process stands in for it.
    """
    try:
        folder = cache_root() / part
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except (OSError, MissingDependency):  # no home folder
        writable = False
    if not writable:
        folder = _stand_in() / part
        folder.mkdir(exist_ok=True)
    return folder


@lru_cache(maxsize=1)
def _stand_in() -> Path:
    folder = tempfile.mkdtemp(prefix="subbyte-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def cache_bytes() -> int:
    """Bytes the cache holds."""
    files = cache_root().rglob("*") if cache_root().is_dir() else ()
    total = 0
    for file in files:
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def clear_cache() -> int:
    """Delete everything in the cache; returns the bytes that were freed."""
    size = cache_bytes()
    shutil.rmtree(cache_root(), ignore_errors=True)
    return size


def read_cached(path: Path) -> bytes | None:
    """A cached file's content, None when it is not there or was damaged since it was written."""
    try:
        digest, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return data if digest == _digest(data) else None


def _digest(data: bytes) -> bytes:
    """First line of a cached file: what the rest must hash to."""
    return hashlib.sha256(data).hexdigest().encode()


def write_cached(path: Path, data: bytes) -> None:
    """Write a cached file in one step, so that a parallel process sees all of it or nothing.

    A full or read-only disk costs the cache entry, not the build.
    """
    with contextlib.suppress(OSError):
        replace_file(path, _digest(data) + b"\n" + data)

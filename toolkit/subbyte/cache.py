"""Where subbyte keeps what it built: one folder per user, safe to delete at any time."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import stat
from functools import lru_cache
from pathlib import Path

from subbyte.errors import MissingDependency
from subbyte.files import home_folder, reason_of, replace_file
from subbyte.held import hold_folder, sweep

VARIABLE = "SUBBYTE_CACHE"
PARTS = ("kernels", "emulator")
"""The kinds of cached things, one folder each."""
BUILDING = "build-"
"""Prefix of folders in which something is being built; they are swept if their builder was killed."""
_STAND_IN = "subbyte-stand-in-"
_LEFT_BEHIND = ("*.partial", "tmp*", "*.cpp")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_root() -> Path:
    """This user's cache folder: ``$SUBBYTE_CACHE``, else ``$XDG_CACHE_HOME/subbyte``, else ``~/.cache/subbyte``.

    If that folder belongs to another user, or others may write to it, its subfolder ``user-<uid>`` is used instead.
    Without a home directory it is a folder that lives as long as this process.
    """
    named = _named()
    if named is None:
        return stand_in()
    with contextlib.suppress(OSError):
        if not _private(named.stat()):
            return named / f"user-{os.getuid()}"
    return named


def _named() -> Path | None:
    """The folder that the environment names; None without a home directory."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else home_folder() / ".cache") / "subbyte"
    except MissingDependency:
        return None


def _private(found: os.stat_result) -> bool:
    """Whether a file or folder is this user's and nobody else may write to it: only such code is run."""
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & _OTHERS)


def cache_folder(part: str) -> Path:
    """The folder for one kind of thing (``kernels``, ``emulator``), created if missing, accessible to this user only.

    If the cache cannot be written, or others could write to it, a folder that lives as long as this process is used
    instead.
    """
    root = cache_root()
    folder = root / part
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        for one in (root, folder):
            one.mkdir(mode=0o700, exist_ok=True)
        usable = _own_folder(root) and _private(folder.stat()) and os.access(folder, os.W_OK)
    except OSError:
        usable = False
    if not usable:
        folder = stand_in() / part
        folder.mkdir(parents=True, exist_ok=True)
    _sweep_once(folder)
    return folder


def _own_folder(root: Path) -> bool:
    """Whether the cache's folder is private. Among other users' folders it must be a real folder, not a link, which
    another user may have planted there."""
    return _private(root.stat() if root == _named() else root.lstat())


def why_not_kept() -> str:
    """Why nothing will be kept for the next process; empty when it will be."""
    root, named = cache_root(), _named()
    if named is None:
        return "this user has no home directory"
    above = next((one for one in (root, *root.parents) if os.path.exists(one)), root)
    if not above.is_dir():
        return f"{above} is not a folder"
    if not os.access(above, os.W_OK):
        return f"{above} cannot be written"
    return "" if above != root or _own_folder(root) else f"{root} belongs to somebody else, or others may write it"


@lru_cache(maxsize=1)
def stand_in() -> Path:
    """A temporary folder that lives as long as this process. Raises MissingDependency if none can be created."""
    try:
        folder, _ = hold_folder(None, _STAND_IN)  # the handle stays open until this process ends
    except OSError as error:
        raise MissingDependency(
            f"there is no folder to keep builds in ({reason_of(error)}): name a folder with {VARIABLE} or TMPDIR"
        ) from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sweep(folder.parent, _STAND_IN)
    return folder


@lru_cache(maxsize=64)
def _sweep_once(folder: Path) -> None:
    sweep(folder, BUILDING, *_LEFT_BEHIND)


def cache_bytes() -> int:
    """Size of this user's cache in bytes."""
    total = 0
    with contextlib.suppress(OSError):
        for file in cache_root().rglob("*"):
            with contextlib.suppress(OSError):
                total += file.stat().st_size if file.is_file() else 0
    return total


def clear_cache() -> int:
    """Delete what this user's cache keeps, and nothing else in its folder; returns the number of bytes freed."""
    before, root = cache_bytes(), cache_root()
    for part in PARTS:
        shutil.rmtree(root / part, ignore_errors=True)
    if _named() is not None:  # the stand-in is still in use
        with contextlib.suppress(OSError):  # it holds other things, which are not ours
            root.rmdir()
    return before - cache_bytes()


def read_cached(path: Path) -> bytes | None:
    """Content of a cached file; None when it is missing, was damaged since it was written, or was written by or for
    another user.

    The file is opened once: what is returned is what was checked.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not _private(found):
                return None
            digest, _, data = file.read().partition(b"\n")
    except OSError:
        return None
    return data if digest == _digest(path, data) else None


def _digest(path: Path, data: bytes) -> bytes:
    """First line of a cached file: a hash of its name and the rest, so that no file passes for another."""
    return hashlib.sha256(path.name.encode() + b"\0" + data).hexdigest().encode()


def write_cached(path: Path, data: bytes) -> None:
    """Write a cached file atomically, so that a parallel process sees all of it or nothing, even after a power cut.

    A full or read-only disk costs the cache entry, not the build.
    """
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        replace_file(path, _digest(path, data) + b"\n" + data, private=True)

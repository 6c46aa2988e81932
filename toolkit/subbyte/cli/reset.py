"""Implements ``subbyte lab --reset``: restores a notebook as it was shipped, without losing the reader's work."""

from __future__ import annotations

import os
import subprocess
from itertools import count
from pathlib import Path

from subbyte.errors import MissingDependency, NotWritten

BACKUP = ".backup-"
"""Marks a reader's own copy in its name, before its number; no other notebook's name contains it."""


def is_backup(path: Path) -> bool:
    """Whether a file is a copy that a reset kept."""
    return BACKUP in path.name


def names_of_shipped(folder: Path) -> list[str]:
    """File names of the notebooks that the project ships in ``folder``, including deleted ones.

    Raises MissingDependency if git does not know them.
    """
    names = _git(folder, "ls-files", "-z", "--", "*.ipynb").decode().split("\0")
    return [name for name in names if name and "/" not in name]  # git also finds the records below the folder


def reset(notebook: Path) -> Path | None:
    """Restore a notebook as it was shipped; returns the copy of its previous content, which is beside it, or None if
    there was none or nothing had changed.

    Raises MissingDependency if git does not know the notebook, NotWritten if the folder cannot be written.
    """
    shipped = _git(notebook.parent, "show", f"HEAD:./{notebook.name}")
    try:
        own = notebook.read_bytes() if notebook.exists() else None
        if own == shipped:
            return None
        backup = None if own is None else _keep(notebook, own)
        fresh = notebook.with_name(f".{notebook.name}.{os.getpid()}")
        fresh.write_bytes(shipped)
        os.replace(fresh, notebook)
    except OSError as error:
        raise NotWritten(f"{notebook}: cannot be reset ({error.strerror}); the folder must be writable") from None
    return backup


def _keep(notebook: Path, own: bytes) -> Path:
    for number in count(1):
        backup = notebook.with_name(f"{notebook.stem}{BACKUP}{number}.ipynb")
        try:
            with backup.open("xb") as file:  # never overwrite an existing copy
                file.write(own)
        except FileExistsError:
            continue
        return backup
    raise AssertionError("numbers end nowhere")


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        raise MissingDependency(
            f"{folder}: git does not know the shipped notebooks of this folder; "
            "a notebook can be reset inside a git checkout of subbyte, with git installed"
        ) from None
    return done.stdout

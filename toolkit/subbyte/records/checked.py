"""Checks of the tuner's arguments that are paths or spaces; other arguments are checked by :mod:`subbyte.arguments`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from subbyte.arguments import callables, integer, number, several, whole, wholes
from subbyte.errors import InvalidInput, Unsupported, shown

LONGEST_NAME = 255
"""The most bytes in a file name."""
__all__ = [
    "callables", "file_path", "integer", "new_folder", "number", "searchable", "several", "whole", "wholes",
]  # fmt: skip


def file_path(value: Any, what: str) -> Path:
    """``value`` as a path. Raises InvalidInput if it is neither text nor a path, or cannot be a file's name."""
    if not isinstance(value, str | os.PathLike) or not _nameable(os.fspath(value)):
        raise InvalidInput(f"{what} {shown(value)}: expected a path, as text or pathlib.Path")
    return Path(value)


def _nameable(path: Any) -> bool:
    """Whether a file can have this name: no zero byte, no part longer than file systems allow."""
    if not isinstance(path, str) or "\0" in path:
        return False
    try:
        return all(len(os.fsencode(part)) <= LONGEST_NAME for part in path.split(os.sep))
    except UnicodeEncodeError:
        return False


def new_folder(value: Any, what: str) -> Path:
    """``value`` as an existing folder, created if missing. Raises InvalidInput if that is not possible."""
    found = file_path(value, what)
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{what} {found}: cannot make this folder ({error.strerror}); give one that is new or can be written"
        ) from None
    return found


def searchable(space: Any) -> None:
    """Raises InvalidInput when ``space`` cannot be searched, Unsupported when the sizes of its workload leave
    it empty."""
    if not all(hasattr(space, name) for name in ("knobs", "check", "__len__")):
        raise InvalidInput(
            f"space {shown(space)}: expected subbyte.space(WORKLOAD), subbyte.parameter_space(NAME, PARAMETERS), or "
            "the space_of(LANDSCAPE) of subbyte.records.recorded_space"
        )
    reason = getattr(space, "hopeless", None)
    if reason is not None:
        raise Unsupported(
            f"the {space.kind} space of {space.workload.label} has no configuration that can be built: {reason}"
        )

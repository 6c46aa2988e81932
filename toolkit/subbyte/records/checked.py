"""Arguments of the tuner that are paths or spaces; what else a caller gives is checked by :mod:`subbyte.arguments`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from subbyte.arguments import callables, integer, number, several, whole, wholes
from subbyte.errors import InvalidInput, Unsupported, shown

LONGEST_NAME = 255
"""Bytes of a file's name."""
__all__ = [
    "callables", "file_path", "integer", "new_folder", "number", "searchable", "several", "whole", "wholes",
]  # fmt: skip


def file_path(value: Any, what: str) -> Path:
    """``value`` as a path. Raises InvalidInput when it is neither text nor a path, or no file can have this name."""
    if not isinstance(value, str | os.PathLike) or not _nameable(os.fspath(value)):
        raise InvalidInput(f"{what} {shown(value)}: expected a path, as text or pathlib.Path")
    return Path(value)


def _nameable(path: Any) -> bool:
    """Some file may be called so: no zero byte, no name longer than file systems take."""
    if not isinstance(path, str) or "\0" in path:
        return False
    try:
        return all(len(os.fsencode(part)) <= LONGEST_NAME for part in path.split(os.sep))
    except UnicodeEncodeError:
        return False


def new_folder(value: Any, what: str) -> Path:
    """``value`` as a folder that exists, made where it does not. Raises InvalidInput when that cannot be."""
    found = file_path(value, what)
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{what} {found}: cannot make this folder ({error.strerror}); give one that is new or can be written"
        ) from None
    return found


def searchable(space: Any) -> None:
    """Raises InvalidInput when ``space`` is nothing that can be searched, Unsupported where sizes of its workload leave
    nothing of it."""
    if not all(hasattr(space, name) for name in ("knobs", "check", "__len__")):
        raise InvalidInput(
            f"space {shown(space)}: expected subbyte.space(WORKLOAD), subbyte.parameter_space(NAME, PARAMETERS), or "
            "the space_of(LANDSCAPE) of subbyte.records.recorded_space"
        )
    reason = getattr(space, "hopeless", None)
    if reason is not None:
        raise Unsupported(f"the {space.kind} space of {space.workload.label} holds nothing that can be built: {reason}")

"""Arguments of the wrong kind become one clear error instead of whatever the first line that meets them raises."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from subbyte.errors import InvalidInput


def file_path(value: Any, what: str) -> Path:
    """``value`` as a path. Raises InvalidInput when it is neither text nor a path."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidInput(f"{what} {value!r}: expected a path, as text or pathlib.Path")
    return Path(value)


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


def whole(value: Any, name: str, least: int = 0) -> int:
    """``value`` as an integer. Raises InvalidInput when it is none, or smaller than ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
        raise InvalidInput(f"{name}={value!r}: must be an integer >= {least}")
    return int(value)


def integer(value: Any, name: str) -> int:
    """``value`` as it is. Raises InvalidInput when it is no Python integer."""
    if type(value) is not int:
        raise InvalidInput(f"{name}={value!r}: must be an integer")
    return value


def several(values: Any, what: str) -> list[Any]:
    """``values`` as a list. Raises InvalidInput for text, bytes, and what cannot be gone through."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} {values!r}: expected a list of them")
    return list(values)


def callables(values: Any, what: str) -> list[Any]:
    """``values`` as a list of functions. Raises InvalidInput."""
    found = several(values, what)
    if not all(callable(value) for value in found):
        raise InvalidInput(f"{what} {values!r}: expected a list of functions")
    return found


def searchable(space: Any) -> None:
    """Raises InvalidInput when ``space`` is nothing that can be searched."""
    if not all(hasattr(space, name) for name in ("knobs", "why_not", "__len__")):
        raise InvalidInput(
            f"space {space!r}: expected subbyte.space(WORKLOAD), or subbyte.tune.recorded.space_of(LANDSCAPE)"
        )


def number(value: Any, name: str, positive: bool = False) -> float:
    """``value`` as a float. Raises InvalidInput when it is no number, negative, or 0 where it must be positive."""
    try:
        found = float(value) if not isinstance(value, str | bool) else math.nan
    except (TypeError, ValueError):
        found = math.nan
    if not (found > 0 or (found == 0 and not positive)):
        raise InvalidInput(f"{name}={value!r}: must be a number {'> 0' if positive else '>= 0'}")
    return found


def wholes(values: Any, name: str) -> tuple[int, ...]:
    """``values`` as different integers, at least one. Raises InvalidInput."""
    listed = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else ()
    found = tuple(whole(value, name) for value in listed)
    if not found or len(set(found)) != len(found):
        raise InvalidInput(f"{name}={values!r}: expected one or more different numbers, such as (0, 1)")
    return found

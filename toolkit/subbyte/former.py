"""Fields of public records and arguments of public functions that had other names in earlier versions.

Files and ``--json`` output keep the original names; using an old attribute or argument gives a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = ParamSpec("P")
R = TypeVar("R")


class FormerFields:
    """A dataclass some of whose fields can also be read by their old names, with a DeprecationWarning: those that the
    class lists in ``former={old: today}``."""

    former: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, former: Mapping[str, str] | None = None) -> None:
        super().__init_subclass__()
        cls.former = cls.former if former is None else former

    if not TYPE_CHECKING:  # a type checker knows today's names only

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            if name not in kind.former:
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            said = f"{kind.__name__}.{name} is now {kind.__name__}.{kind.former[name]}"
            warnings.warn(f"{said}; the old name goes in the next minor version", DeprecationWarning, stacklevel=2)
            return getattr(self, kind.former[name])


def written(record: DataclassInstance) -> dict[str, Any]:
    """The fields of a dataclass, under the names used in files."""
    old = {today: name for name, today in getattr(record, "former", {}).items()}
    return {old.get(one.name, one.name): getattr(record, one.name) for one in fields(record)}


def former_arguments(**today: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keyword arguments of earlier versions (old name = today's name) are accepted with a
    DeprecationWarning."""

    def known(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in kwargs.keys() & today.keys():
                said = f"{old}= is now {today[old]}=; the old name goes in the next minor version"
                warnings.warn(said, DeprecationWarning, stacklevel=2)
                kwargs.setdefault(today[old], kwargs.pop(old))
            return function(*args, **kwargs)

        return call

    return known

"""Fields of public records and arguments of public functions that had another name in earlier versions.

What files and ``--json`` hold keeps the names it always had; the attribute or argument of the old name warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import Field, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

FORMER = "former"


def was(old: str, **options: Any) -> Any:
    """A dataclass field that was called ``old``; ``options`` are those of ``dataclasses.field``."""
    return field(metadata={FORMER: old}, **options)


def written_name(one: Field[Any]) -> str:
    """What a field is called where it is written down."""
    return str(one.metadata.get(FORMER, one.name))


class FormerFields:
    """A dataclass with such fields: they are read by their old names too, with a DeprecationWarning."""

    if not TYPE_CHECKING:  # a checker knows the names of today alone

        def __getattr__(self, name: str) -> object:
            kind = type(self).__name__
            for one in fields(self):
                if one.metadata.get(FORMER) == name:
                    said = f"{kind}.{name} is now {kind}.{one.name}; the old name goes in the next minor version"
                    warnings.warn(said, DeprecationWarning, stacklevel=2)
                    return getattr(self, one.name)
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def former_arguments(**today: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keyword arguments of earlier versions (old name = name of today) are taken, with a
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

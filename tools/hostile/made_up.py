"""Records made up from their annotations, with one text wherever one may stand: what somebody's file holds."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from typing import Any

import numpy as np

from subbyte.device.arch import Arch
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.config import WgmmaConfig


def made_up(kind: Any, name: str, given: dict[str, Any] | None = None) -> Any:
    """A value of an annotated type. A dataclass is made without its own checks; ``given`` sets some of its fields.

    Raises TypeError for a type it does not know.
    """
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    plain = {str: name, int: 1, float: 1.5, bool: True, type(None): None, Any: name, object: name}
    if kind in plain:
        return plain[kind]
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(*(made_up(one, name) for one in _hints(kind).values()))
    if origin in (typing.Union, types.UnionType):
        return made_up(next(one for one in inside if one is not type(None)), name)
    if origin is typing.Literal:
        return inside[0]
    if origin is tuple:
        each = inside[:-1] * 2 if inside[-1:] == (...,) else inside
        return tuple(made_up(one, name) for one in each)
    if origin in (list, collections.abc.Sequence, collections.abc.Iterable):
        return [made_up(inside[0], name)] * 2
    if origin in (set, frozenset):
        return origin({made_up(inside[0], name)})
    if origin in (dict, collections.abc.Mapping):
        return {made_up(inside[0], name): made_up(inside[1], name)}
    if origin is np.ndarray:
        return np.ones((2, 2), np.int32)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        made = object.__new__(kind)
        for field in dataclasses.fields(kind):
            value = given[field.name] if given and field.name in given else made_up(hints[field.name], name)
            object.__setattr__(made, field.name, value)
        return made
    raise TypeError(f"nothing can be made up for {kind}")


def _hints(kind: type) -> dict[str, Any]:
    """The annotations of a class; some name types that its module imports for type checkers alone."""
    late = {"MmaConfig": MmaConfig, "WgmmaConfig": WgmmaConfig, "Arch": Arch}
    return typing.get_type_hints(kind, localns=late)

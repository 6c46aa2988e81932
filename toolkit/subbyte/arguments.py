"""Checks of arguments that Python callers pass: each returns the value, or raises InvalidInput with one sentence.

:func:`checked` checks the arguments of a public function against its annotations, so that callers never see a
``TypeError`` from an inner line, and no value of a wrong type is silently accepted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial, wraps
from inspect import Parameter, signature, unwrap
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from subbyte.errors import InvalidInput, did_you_mean, shown

P = ParamSpec("P")
R = TypeVar("R")


def whole(value: Any, name: str, least: int = 0, most: int | None = None) -> int:
    """``value`` as an integer. Raises InvalidInput when it is not an integer, or not between ``least`` and ``most``."""
    if not is_whole(value) or int(value) < least or (most is not None and int(value) > most):
        allowed = f">= {least}" if most is None else f"from {least} to {most}"
        raise InvalidInput(f"{name}={shown(value)}: must be an integer {allowed}")
    return int(value)


def integer(value: Any, name: str) -> int:
    """``value`` unchanged. Raises InvalidInput when it is not a Python integer."""
    if type(value) is not int:
        raise InvalidInput(f"{name}={shown(value)}: must be an integer")
    return value


def number(value: Any, name: str, positive: bool = False) -> float:
    """``value`` as a float. Raises InvalidInput when it is not a number, is negative, or is 0 where it must be
    positive."""
    try:
        found = float(value) if is_number(value) else math.nan
    except OverflowError:
        found = math.nan
    if not (found > 0 or (found == 0 and not positive)):
        raise InvalidInput(f"{name}={shown(value)}: must be a number {'> 0' if positive else '>= 0'}")
    return found


def share(value: Any, name: str) -> float:
    """``value`` as a float from 0 to 1. Raises InvalidInput for anything else."""
    found = number(value, name)
    if found > 1:
        raise InvalidInput(f"{name}={shown(value)}: expected a share from 0 (all zeros) to 1 (none), such as 0.05")
    return found


def flag(value: Any, name: str) -> bool:
    """``value`` as a bool. Raises InvalidInput for anything but True and False."""
    if not _is_flag(value):
        raise InvalidInput(f"{name}={shown(value)}: expected True or False")
    return bool(value)


def text(value: Any, name: str, such: str = "") -> str:
    """``value`` unchanged. Raises InvalidInput when it is not text; ``such`` is an example for the message."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={shown(value)}: expected text{such and f', such as {such!r}'}")
    return value


def one_of(value: Any, name: str, allowed: Iterable[str]) -> str:
    """``value`` unchanged. Raises InvalidInput, naming the closest matches, when it is not one of the allowed texts."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        raise InvalidInput(f"{name}={shown(value)}: {did_you_mean(shown(value), names)}")
    return value


def several(values: Any, what: str) -> list[Any]:
    """``values`` as a list. Raises InvalidInput for text, bytes, and anything that is not iterable."""
    if not is_several(values):
        raise InvalidInput(f"{what} {shown(values)}: expected a list of them")
    return list(values)


def callables(values: Any, what: str) -> list[Any]:
    """``values`` as a list of functions. Raises InvalidInput for anything else."""
    found = several(values, what)
    if not all(callable(value) for value in found):
        raise InvalidInput(f"{what} {shown(values)}: expected a list of functions")
    return found


def wholes(values: Any, name: str) -> tuple[int, ...]:
    """``values`` as a tuple of distinct integers, at least one. Raises InvalidInput for anything else."""
    listed = tuple(values) if is_several(values) else ()
    found = tuple(whole(value, name) for value in listed)
    if not found or len(set(found)) != len(found):
        raise InvalidInput(f"{name}={shown(values)}: expected one or more different numbers, such as (0, 1)")
    return found


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a call whose arguments do not match the annotations raises InvalidInput naming the argument.

    Checked are integers, numbers, booleans, text, paths, sequences, mappings, functions and classes, and unions of
    them; arrays and protocols are left to the function, which knows their shapes.
    """
    bind = signature(function).bind

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            check = _checks(function).get(name)
            if check is not None and not check[0](value):
                raise InvalidInput(f"{name}={shown(value)}: expected {check[1]}")
            if check is not None and is_whole(value):
                bound.arguments[name] = int(value)  # numpy's integers wrap around
        return function(*bound.args, **bound.kwargs)

    return call


Check = tuple[Callable[[Any], bool], str]
"""Tells whether a value is allowed, and what is allowed, in words."""


@cache
def _checks(function: Callable[..., Any]) -> dict[str, Check]:
    found: dict[str, Check] = {}
    for name, parameter in signature(function).parameters.items():
        if parameter.annotation is Parameter.empty or parameter.kind in (
            Parameter.VAR_KEYWORD,
            Parameter.VAR_POSITIONAL,
        ):
            continue
        check = _check(str(parameter.annotation), unwrap(function).__globals__)
        if check is not None:
            found[name] = check
    return found


def _check(annotation: str, names: Mapping[str, Any]) -> Check | None:
    """The check for an annotation; None where any value is allowed."""
    parts = [_alternative(part, names) for part in _split(annotation, "|")]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]
    words = list(dict.fromkeys(said for _, said in known))
    return (lambda value: any(right(value) for right, _ in known)), " or ".join(words)


def _alternative(annotation: str, names: Mapping[str, Any]) -> Check | None:
    name, _, inside = annotation.partition("[")
    items = _split(inside[:-1], ",") if inside else []
    simple = _SIMPLE.get(name)
    if simple is not None:
        return simple
    if name in ("Sequence", "Iterable", "Collection", "list", "tuple"):
        return _collection(name, items, names)
    given: Any = names
    for part in name.split("."):
        given = given.get(part) if isinstance(given, Mapping) else getattr(given, part, None)
    if given is None and name.isidentifier():  # imported for type checkers only: known by its name
        return partial(_is_named, name=name), _a(name)
    if (
        given is not Any
        and isinstance(given, type)
        and not getattr(given, "_is_protocol", False)
        and given.__module__ != "numpy"
    ):
        return (lambda value: isinstance(value, given)), _a(given.__name__)
    return None


def _collection(name: str, items: Sequence[str], names: Mapping[str, Any]) -> Check:
    inner = [_check(item, names) for item in items if item != "..."]
    if name == "tuple" and "..." not in items and inner:

        def each(value: Any) -> bool:
            return hasattr(value, "__getitem__") and _is_listed(value) and len(value) == len(inner) and all(
                one is None or one[0](element) for one, element in zip(inner, value, strict=True)
            )  # fmt: skip

        said = {one[1] for one in inner if one is not None}
        return each, f"{len(inner)} values" + (f", each {said.pop()}" if len(said) == 1 else "")
    element = inner[0] if inner else None

    def all_of(value: Any) -> bool:
        if name in ("Sequence", "list", "tuple") and not (_is_listed(value) and hasattr(value, "__getitem__")):
            return False
        right = element is None or not _is_listed(value) or all(map(element[0], value))
        return is_several(value) and right

    return all_of, "a list" + (f", each {element[1]}" if element is not None else "")


def _split(annotation: str, separator: str) -> list[str]:
    """Parts of an annotation between separators outside brackets."""
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == separator and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _is_named(value: Any, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(value).__mro__)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, Python's or numpy's; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, Python's or numpy's; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def is_several(value: Any) -> bool:
    """Whether a value is iterable, and neither text nor a mapping."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_listed(value: Any) -> bool:
    """Whether a value has a length and can be iterated more than once."""
    return is_several(value) and hasattr(value, "__len__")


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"


_SIMPLE: dict[str, Check] = {
    "None": (lambda value: value is None, "None"),
    "bool": (_is_flag, "True or False"),
    "int": (lambda value: is_whole(value) and abs(value) < 1 << 63, "an integer"),
    "float": (lambda value: is_number(value) and not (is_whole(value) and abs(value) >= 1 << 63), "a number"),
    "str": (lambda value: isinstance(value, str), "text"),
    "os.PathLike": (lambda value: isinstance(value, os.PathLike), "a path"),
    "Path": (lambda value: isinstance(value, os.PathLike), "a path"),
    "Mapping": (lambda value: isinstance(value, Mapping), "a mapping"),
    "dict": (lambda value: isinstance(value, Mapping), "a mapping"),
    "Callable": (callable, "a function"),
}

"""Strategies propose configurations and are told the results. They know indices, never a GPU.

A strategy is a class with a ``name``, an ``OPTIONS`` table and ``ask`` / ``tell``; ``register`` makes it available as
``NAME`` or ``NAME:key=value:key=value`` everywhere a strategy is accepted.
"""

from __future__ import annotations

import random
from collections import UserDict
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.records.checked import integer, searchable, whole
from subbyte.records.describe import SpaceLike
from subbyte.records.result import Result


@runtime_checkable
class Strategy(Protocol):
    """Proposes indices of valid configurations.

    ``ask(n)`` returns at most ``n`` indices, none of which it has proposed or been told before; fewer than ``n`` when
    the space is exhausted. ``tell`` is called once per result, in the order of the record; its index may be one that
    was never asked for (from a loaded record, or a person's choice). Proposals depend only on the seed, the options and
    the sequence of calls, so that a record can be resumed. Optional: ``next_batch``, how many trials a study that waits
    for all their results anyway should ask for at a time now.
    """

    name: str
    options: Mapping[str, Any]

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices."""
        ...

    def tell(self, index: int, result: Result) -> None:
        """Learn the result of ``index``."""
        ...


@dataclass(frozen=True)
class Option:
    """An option of a strategy: how its text is read, its default, one line of meaning."""

    parse: Callable[[Any], Any]
    default: Any
    meaning: str


def choice(*allowed: str) -> Callable[[Any], str]:
    """A parser for text options with a fixed list of values."""

    def parse(value: Any) -> str:
        if str(value).lower() not in allowed:
            raise InvalidInput(did_you_mean(str(value), allowed))
        return str(value).lower()

    return parse


_Made = TypeVar("_Made", bound=type)


class _Registry(UserDict[str, Any]):
    """Strategy classes by name. A text ``module:Class`` stands for one that is imported on first use."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = self.data[name] = getattr(import_module(module), attribute)
        return found


STRATEGIES: MutableMapping[str, Any] = _Registry(
    {
        name: f"subbyte.tune.search.{place}"
        for name, place in {
            "auto": "auto:Auto",
            "autotvm": "autotvm:AutoTvm",
            "diverse": "diverse:Diverse",
            "genetic": "genetic:Genetic",
        }.items()
    }
    | {"optuna": "subbyte.tune.optuna_strategy:Optuna"}
)
"""Registered strategy classes by name; each is called with ``(space, seed, **options)``."""


def register(cls: _Made) -> _Made:
    """Class decorator: make a strategy available by its ``name``. Raises InvalidInput for anything else."""
    made: Any = cls
    if not isinstance(made, type) or not all(hasattr(made, name) for name in ("name", "OPTIONS", "ask", "tell")):
        raise InvalidInput(f"strategy {shown(cls)}: expected a class with name, OPTIONS, ask and tell")
    STRATEGIES[cls.name] = cls  # type: ignore[attr-defined]
    return cls


def parse_strategy(text: str) -> tuple[str, dict[str, Any]]:
    """Name and all options of ``NAME[:key=value...]``. Raises InvalidInput that suggests the closest names."""
    if not isinstance(text, str):
        raise InvalidInput(f"strategy {shown(text)}: expected text such as autotvm:loss=reg")
    name, *parts = text.strip().split(":")
    name = name.lower()
    if name not in STRATEGIES:
        raise InvalidInput(f"unknown strategy {shown(name)}: {did_you_mean(name, STRATEGIES)}")
    known: Mapping[str, Option] = STRATEGIES[name].OPTIONS
    options = {key: option.default for key, option in known.items()}
    for part in parts:
        key, equals, value = part.partition("=")
        key = key.strip().lower().replace("-", "_")
        if not equals:
            raise InvalidInput(f"strategy {shown(text)}: write options as {name}:key=value, not {shown(part)}")
        if key not in known:
            offer = did_you_mean(key, known) if known else f"{name} has no options"
            raise InvalidInput(f"unknown option {shown(key)} of strategy {name}: {offer}")
        try:
            options[key] = known[key].parse(value.strip())
        except ValueError as error:
            raise InvalidInput(f"option {key}={shown(value)} of strategy {name}: {error}") from None
    return name, options


def describe_strategies() -> str:
    """Every strategy with its options, their defaults and meanings, one per line."""
    lines = []
    for name in sorted(STRATEGIES):
        cls = STRATEGIES[name]
        lines.append(f"{name}: {(cls.__doc__ or '').strip().splitlines()[0]}")
        lines += [f"  {key}={option.default}: {option.meaning}" for key, option in cls.OPTIONS.items()]
    return "\n".join(lines)


@checked
def make_strategy(text: str, space: SpaceLike, seed: int) -> Strategy:
    """The strategy ``NAME[:key=value...]`` for ``space``. Raises InvalidInput."""
    searchable(space)
    whole(integer(seed, "seed"), "seed")
    name, options = parse_strategy(text)
    made: Strategy = STRATEGIES[name](space, seed, **options)
    return made


def made_strategy(given: str | Strategy, space: SpaceLike, seed: int) -> Strategy:
    """``given`` itself if it is a strategy, else the one that its text names. Raises InvalidInput."""
    return given if isinstance(given, Strategy) else make_strategy(given, space, seed)


@register
class Random:
    """Uniform over the valid configurations, without replacement.

    Draws a random permutation of all combinations lazily (Fisher-Yates on a sparse table) and skips those that a
    constraint rejects, so a large space is never enumerated.
    """

    name: ClassVar[str] = "random"
    OPTIONS: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, space: SpaceLike, seed: int) -> None:
        self.options: Mapping[str, Any] = {}
        self._space = space
        self._rng = random.Random(seed)
        self._left = len(space)
        self._moved: dict[int, int] = {}
        self._told: set[int] = set()

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices."""
        found: list[int] = []
        while self._left and len(found) < n:
            index = self._draw()
            if index not in self._told and self._space.check(index) is None:
                found.append(index)
        return found

    def tell(self, index: int, result: Result) -> None:
        """Remember that ``index`` is done; random learns nothing else."""
        self._told.add(index)

    def _draw(self) -> int:
        self._left -= 1
        place = self._rng.randrange(self._left + 1)
        drawn = self._moved.get(place, place)
        self._moved[place] = self._moved.pop(self._left, self._left)
        return drawn


@register
class Exhaustive:
    """Every valid configuration once, in ascending or descending index order."""

    name: ClassVar[str] = "exhaustive"
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "order": Option(choice("ascending", "descending"), "ascending", "index order: ascending or descending"),
    }

    def __init__(self, space: SpaceLike, seed: int, order: str = "ascending") -> None:
        self.options: Mapping[str, Any] = {"order": order}
        self._space = space
        size = len(space)
        self._ahead = iter(range(size) if order == "ascending" else range(size - 1, -1, -1))
        self._told: set[int] = set()

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices."""
        found: list[int] = []
        while len(found) < n:
            index = next(self._ahead, None)
            if index is None:
                break
            if index not in self._told and self._space.check(index) is None:
                found.append(index)
        return found

    def tell(self, index: int, result: Result) -> None:
        """Remember that ``index`` is done."""
        self._told.add(index)

"""Kernels that are not ours: a workload, a configuration and a space known only from a table of results.

The knobs of such a space may hold anything a table holds: numbers that are not powers of two, booleans, text. What
a constraint of the other tuner rejected is not in the table, so the recorded rows are the valid ones; rows that failed
are kept, because a search of the space pays for them too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.html import table
from subbyte.spaces.former_names import FormerNames

FOREIGN = "foreign"
"""Kind of the space of an imported table."""
Value = bool | int | float | str
LARGEST, LEAST = 2**63 - 1, -(2**63)
"""Range of the integers that file readers accept; also the most configurations of a space."""
LONGEST_TEXT, LONGEST_KNOB = 10_000, 200


@dataclass(frozen=True)
class ForeignWorkload:
    """A kernel by name and the problem size it was tuned for. Its number of operations is unknown."""

    name: str
    problem_size: tuple[int | str, ...] = ()

    @property
    def spec(self) -> str:
        """Name and problem size: ``convolution_kernel:4096x4096``."""
        return ":".join([self.name, *(["x".join(map(str, self.problem_size))] if self.problem_size else [])])

    @property
    def label(self) -> str:
        """The name."""
        return self.name

    @property
    def operations(self) -> None:
        """Unknown."""
        return None

    def __str__(self) -> str:
        return self.spec


@dataclass(frozen=True)
class ForeignConfig:
    """Knob values, in the order of the space."""

    items: tuple[tuple[str, Value], ...]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ForeignConfig:
        """The configuration with these knobs, in this order. Raises InvalidInput for a value that is not a scalar."""
        for name, value in data.items():
            check_value(name, value)
        return cls(tuple(data.items()))

    @property
    def key(self) -> str:
        """``name=value`` of every knob, separated by commas."""
        return ",".join(f"{name}={value}" for name, value in self.items)

    def to_dict(self) -> dict[str, Value]:
        """Plain data, ready for JSON."""
        return dict(self.items)

    def __str__(self) -> str:
        return self.key


class ProductSpace(FormerNames):
    """All combinations of the knob values of a kernel that is not ours.

    ``arch`` names the device. Index = mixed radix over ``knobs``, first knob fastest. Raises InvalidInput when a knob
    has no values or repeated ones, or there are too many configurations.
    """

    kind = FOREIGN

    def __init__(self, workload: ForeignWorkload, arch: str, knobs: Mapping[str, Sequence[Value]]) -> None:
        self.workload = workload
        self.arch = arch
        self.knobs: dict[str, tuple[Value, ...]] = {name: tuple(values) for name, values in knobs.items()}
        self.fixed: dict[str, Any] = {}
        for name, values in self.knobs.items():
            if not values or len(set(values)) < len(values):
                raise InvalidInput(f"knob {name}: its values {list(values)} must be distinct, and at least one")
        if prod(map(len, self.knobs.values())) > LARGEST:
            raise InvalidInput(f"the knobs {', '.join(self.knobs):.200} make more than {LARGEST} configurations")

    def __len__(self) -> int:
        return prod(len(values) for values in self.knobs.values())

    def config(self, index: int) -> ForeignConfig:
        """The configuration at ``index``. Raises InvalidInput when it is out of range."""
        if not 0 <= index < len(self):
            raise InvalidInput(f"configuration index {index}: allowed: 0 to {len(self) - 1}")
        items = []
        for name, values in self.knobs.items():
            index, digit = divmod(index, len(values))
            items.append((name, values[digit]))
        return ForeignConfig(tuple(items))

    def index(self, config: ForeignConfig | Mapping[str, Any]) -> int:
        """The index of a configuration. Raises InvalidInput naming the knob that does not belong to this space."""
        given = dict(config) if isinstance(config, Mapping) else config.to_dict()
        if set(given) != set(self.knobs):
            odd = sorted(set(given) ^ set(self.knobs))
            raise InvalidInput(f"knobs {', '.join(odd)}: the space has {', '.join(self.knobs)}")
        return index_of(given, self.knobs)


class ForeignSpace(ProductSpace):
    """An imported table: the ``recorded`` indices of the product are valid, and nothing is known about the others.

    Raises InvalidInput as :class:`ProductSpace` does, and for an index outside the product.
    """

    listed = True

    def __init__(
        self, workload: ForeignWorkload, arch: str, knobs: Mapping[str, Sequence[Value]], recorded: Iterable[int]
    ) -> None:
        super().__init__(workload, arch, knobs)
        self.valid = tuple(sorted(set(recorded)))
        if self.valid and not 0 <= self.valid[0] <= self.valid[-1] < len(self):
            raise InvalidInput(f"recorded index {self.valid[-1]}: the space has {len(self)} configurations")

    def check(self, which: int | ForeignConfig) -> str | None:
        """``unrecorded: ...`` for configurations that the table does not hold, else None."""
        index = which if isinstance(which, int) else self.index(which)
        return None if index in self._recorded else "unrecorded: the imported table does not hold this configuration"

    @cached_property
    def _recorded(self) -> frozenset[int]:
        return frozenset(self.valid)

    @property
    def refused(self) -> dict[str, int]:
        """Configurations of the product that the table does not hold."""
        missing = len(self) - len(self.valid)
        return {"unrecorded": missing} if missing else {}

    @cached_property
    def hash(self) -> str:
        """Hexadecimal digest of kernel, problem size, device, knobs and recorded indices."""
        data = [self.workload.spec, self.arch, {name: list(values) for name, values in self.knobs.items()}, self.valid]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]

    def _repr_html_(self) -> str:
        rows = ((name, ", ".join(map(str, values))) for name, values in self.knobs.items())
        caption = f"imported space of {self.workload} on {self.arch}: {len(self.valid):,} of {len(self):,} recorded"
        return table(rows, caption=caption)


def check_value(name: object, value: Any) -> None:
    """Raise InvalidInput for a knob value that no file can hold."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_KNOB:
        raise InvalidInput(f"knob {name!r:.80}: its name must be a text of at most {LONGEST_KNOB} characters")
    if isinstance(value, bool):
        return
    fits = (
        LEAST <= value <= LARGEST if isinstance(value, int)
        else isfinite(value) if isinstance(value, float)
        else isinstance(value, str) and len(value) <= LONGEST_TEXT
    )  # fmt: skip
    if not fits:
        raise InvalidInput(f"knob {name!s:.80}={value!r:.80}: a finite number, a truth value or text is expected")


def index_of(values: Mapping[str, Any], knobs: Mapping[str, Sequence[Any]]) -> int:
    """Mixed-radix index of knob values, first knob fastest. Raises InvalidInput naming the knob that does not fit."""
    index, weight = 0, 1
    for name, choices in knobs.items():
        value = values[name]
        place = choices.index(value) if value in choices else None
        if place is None or isinstance(choices[place], bool) != isinstance(value, bool):
            raise InvalidInput(
                f"{name!s:.80}={value!s:.80}: not in the space; allowed: {', '.join(map(str, choices))!s:.300}"
            )
        index += place * weight
        weight *= len(choices)
    return index


def foreign_workload(data: Mapping[str, Any]) -> ForeignWorkload:
    """The workload a file's header describes. Raises BrokenRecord."""
    name, size = data.get("name"), data.get("problem_size")
    if not isinstance(name, str) or not name or not isinstance(size, list | tuple):
        raise BrokenRecord(f"workload {dict(data)}: a kernel has a name and a problem size")
    return ForeignWorkload(name, tuple(size))

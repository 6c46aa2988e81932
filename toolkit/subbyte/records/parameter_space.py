"""The space of a user's own kernel: parameters with their values, and constraints as functions of a configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, shown
from subbyte.html import table
from subbyte.records.checked import callables, several
from subbyte.records.foreign import ForeignConfig, ForeignWorkload, ProductSpace, Value, check_value

Constraint: TypeAlias = Callable[[Mapping[str, Value]], bool]
"""Called with the values of all parameters; true accepts a configuration."""
LISTED = 1_000_000
"""Spaces with at most this many configurations are checked completely at once; of larger ones, only proposals are
checked."""
_PROBES = 4096


class ParameterSpace(ProductSpace):
    """All combinations of the parameters' values except those that a constraint rejects. See
    :func:`parameter_space`."""

    def __init__(
        self, workload: ForeignWorkload, arch: str, knobs: Mapping[str, Sequence[Value]],
        constraints: Sequence[Constraint],
    ) -> None:  # fmt: skip
        super().__init__(workload, arch, knobs)
        self._constraints = [(_name(one, place), one) for place, one in enumerate(constraints, start=1)]
        self.listed = len(self) <= LISTED

    @cached_property
    def valid(self) -> tuple[int, ...]:
        """Indices that no constraint rejects, ascending; checks every configuration."""
        return tuple(index for index in range(len(self)) if self.check(index) is None)

    def check(self, which: int | ForeignConfig) -> str | None:
        """``constraint NAME`` of the first constraint that rejects it, else None. Raises InvalidInput when a constraint
        raises."""
        config = self.config(which) if isinstance(which, int) else which
        values = config.to_dict()
        for name, constraint in self._constraints:
            try:
                if not constraint(values):
                    return f"constraint {name}"
            except (Exception, SystemExit) as error:  # the user's own code
                raise InvalidInput(
                    f"constraint {name} raised {type(error).__name__}: {error!s:.200} for {config.key:.200}; it is "
                    "called with a dictionary of all parameters and must return True or False"
                ) from None
        return None

    @property
    def refused(self) -> dict[str, int]:
        """How many configurations each constraint is the first to reject, by its name."""
        found: dict[str, int] = {}
        for index in range(len(self)) if self._constraints else ():
            if (reason := self.check(index)) is not None:
                found[reason] = found.get(reason, 0) + 1
        return found

    @cached_property
    def hash(self) -> str:
        """Hexadecimal digest of kernel, problem size, device, parameters, and the constraints' results for 4,096
        configurations (all in a smaller space)."""
        knobs = {name: list(values) for name, values in self.knobs.items()}
        probes = sorted({int(index) for index in np.linspace(0, len(self) - 1, min(len(self), _PROBES))})
        verdicts = "".join("01"[self.check(index) is None] for index in probes)
        data = [self.workload.spec, self.arch, knobs, verdicts]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ParameterSpace({self.workload.spec!r}, {len(self):,} configurations)"

    def _repr_html_(self) -> str:
        rows = ((name, ", ".join(map(str, values))) for name, values in self.knobs.items())
        count = f", {len(self.valid):,} valid" if self.listed else ""
        return table(rows, caption=f"parameters of {self.workload}: {len(self):,} configurations{count}")


@checked
def parameter_space(
    name: str,
    parameters: Mapping[str, Sequence[Value]],
    constraints: Iterable[Constraint] | Constraint = (),
    problem_size: Sequence[int | str] = (),
    arch: str = "any",
) -> ParameterSpace:
    """The search space of a kernel of your own, for :class:`subbyte.Study`.

    ``parameters`` maps each parameter to its values: distinct numbers, booleans or strings. Each of the
    ``constraints`` is a function that takes a dictionary with a value for every parameter and returns False for a
    configuration that must not be tried. ``name``, ``problem_size`` and ``arch`` say what is tuned and for which
    device; they are written to the log, and only a log with the same three can be resumed. Raises InvalidInput for
    anything else, and when no configuration is left.
    """
    if not (name and callable(getattr(parameters, "items", None)) and parameters):
        raise InvalidInput(
            f"parameter_space({shown(name)}, {shown(parameters)}): expected a name and a dictionary from parameters to "
            'lists of values, such as {"block": [64, 128]}'
        )
    knobs: dict[str, tuple[Any, ...]] = {}
    for parameter, values in parameters.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InvalidInput(f"parameter {parameter}={shown(values)}: expected a list of its values")
        knobs[parameter] = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
        for value in knobs[parameter]:
            check_value(parameter, value)
    given = [constraints] if callable(constraints) else several(constraints, "constraints")
    size = tuple(several(problem_size, "problem_size"))
    found = ParameterSpace(ForeignWorkload(name, size), arch, knobs, callables(given, "constraints"))
    if found.listed and not found.valid:
        raise InvalidInput(f"parameter_space({name!r}): the constraints reject all {len(found):,} configurations")
    return found


def _name(constraint: Constraint, place: int) -> str:
    own = getattr(constraint, "__name__", "<lambda>")
    return str(place) if own == "<lambda>" else own

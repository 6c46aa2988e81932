"""How much each technique contributes on the same schedules, measured with every combination of the switches.

The records behind Figures 15 and 16 of Choi et al. 2022. Speed-ups are geometric means over schedules, each schedule
compared with itself under other switches, with bootstrap intervals over the schedules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from subbyte.analysis.contributions import (
    ALL_OFF,
    EIGHT,
    TECHNIQUES,
    Factor,
    Switches,
    add,
    contributions,
    name_of,
    without,
)
from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.families.registry import kind_named
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.technique.record import InfoRecord, Table

__all__ = ["TECHNIQUES", "Ablation", "Factor", "ablation"]

LEAST_SCHEDULES = 10
"""Intervals come from resampling schedules; with fewer than these, even a wide interval would say little. Every record
says how many schedules it has."""


@dataclass(frozen=True)
class Ablation(InfoRecord):
    """Speed-ups of one workload on one device, from ``schedules`` common schedules.

    ``combinations`` compares every combination of switches with all off; ``accumulated`` adds the techniques in
    ``order`` (Figure 15); ``marginal`` is what is lost when one technique is removed from all on (Figure 16);
    ``shapley`` splits the whole gain fairly into factors whose product is the speed-up of all on; ``sharing`` compares
    no sharing, sharing in shared memory, and sharing in registers as well, with the other techniques on. ``fastest`` is
    the best time of each combination within the sample, in microseconds, each with its own schedule. ``pairs`` holds
    the single schedules behind ``accumulated`` (``"+ layout"``), ``marginal`` (``"- layout"``) and ``sharing``
    (``"sharing full"``): one speed-up for each of ``indices``, the schedules' indices in the space.
    """

    workload: str
    device: str
    schedules: int
    combinations: dict[str, Factor]
    accumulated: dict[str, Factor]
    marginal: dict[str, Factor]
    shapley: dict[str, Factor]
    sharing: dict[str, Factor]
    fastest: dict[str, float]
    order: tuple[str, ...] = TECHNIQUES
    indices: tuple[int, ...] = ()
    pairs: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def title(self) -> str:
        """One line that names what the record shows."""
        return f"{self.workload} on {self.device}: speed-ups over {self.schedules} schedules (95 % intervals)"

    def table(self) -> Table:
        """One row for each bar of the figures."""
        return factor_table(self)


def factor_table(record: object) -> Table:
    """One row for each factor of a record that has the fields of Contributions."""
    parts = {
        "accumulated": "accumulated", "marginal": "marginal", "Shapley": "shapley", "sharing": "sharing",
        "all off to": "combinations",
    }  # fmt: skip
    rows = tuple(
        (kind, name, str(factor)) for kind, field in parts.items() for name, factor in getattr(record, field).items()
    )
    return Table(("figure", "step", "speed-up"), rows)


@checked
def ablation(landscapes: Iterable[Landscape], seed: int = 0, order: Sequence[str] = TECHNIQUES) -> Ablation:
    """The contributions of the techniques, from one or more landscapes for each combination of switches.

    Only schedules measured with every combination count. If a schedule was measured twice, the later result counts, by
    the landscape's date, so that all of a schedule's times were taken together. Raises InvalidInput when the landscapes
    are of different workloads or devices, when a combination is missing, or when fewer than :data:`LEAST_SCHEDULES`
    schedules are common.
    """
    given = sorted(landscapes, key=lambda one: str(one.header["created"]))
    times: dict[Switches, dict[int, float]] = {}
    for one in given:
        times.setdefault(_switches(one), {}).update(_times(one))
    _check(given, set(times))
    first = given[0]
    common = sorted(set.intersection(*(set(one) for one in times.values())))
    if len(common) < LEAST_SCHEDULES:
        raise InvalidInput(
            f"only {len(common)} schedules were measured with every combination: at least {LEAST_SCHEDULES} needed"
        )
    logs = {key: np.log([one[index] for index in common]) for key, one in times.items()}
    parts = contributions(logs, order, seed)
    return Ablation(
        workload=first.workload.label,
        device=str(first.device["name"]),
        schedules=len(common),
        fastest={name_of(key): min(one[index] for index in common) for key, one in sorted(times.items())},
        indices=tuple(common),
        pairs=_pairs({key: np.exp(values) for key, values in logs.items()}, parts.order),
        **{one.name: getattr(parts, one.name) for one in fields(parts)},
    )


def _pairs(times: Mapping[Switches, np.ndarray], order: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """The speed-up of every schedule, for each step of Figures 15 and 16 and for the ways of sharing."""
    ends: dict[str, tuple[Switches, Switches]] = {}
    switches = ALL_OFF
    for technique in order:
        switches = add(switches, technique)
        ends[f"+ {technique}"] = (ALL_OFF, switches)
    ends |= {f"- {technique}": (without(technique), switches) for technique in TECHNIQUES}
    for name in ("shared", "full"):
        ends[f"sharing {name}"] = (("none", True, "nhwcnc"), (name, True, "nhwcnc"))
    return {
        name: tuple(round(float(factor), 4) for factor in times[slow] / times[fast])
        for name, (slow, fast) in ends.items()
        if fast in times
    }


def _switches(one: Landscape) -> Switches:
    fixed = one.header["space"]["fixed"]
    return str(fixed["duplicate_aware"]), bool(fixed["register_packing"]), str(fixed["layout"])


def _check(given: Sequence[Landscape], found: set[Switches]) -> None:
    for what in ("workload", "device"):
        values = {one.workload.spec if what == "workload" else str(one.device["name"]) for one in given}
        if len(values) > 1:
            raise InvalidInput(f"landscapes of several {what}s cannot be compared: {', '.join(sorted(values))}")
    knobs: dict[Switches, dict[str, list[Any]]] = {}
    for one in given:
        listed = meant(one.header["space"]["knobs"], one.kind)
        if knobs.setdefault(_switches(one), listed) != listed:
            raise InvalidInput(f"landscapes with {name_of(_switches(one))} of two spaces: an index is not one schedule")
    missing = set(EIGHT) - found
    if missing:
        raise InvalidInput(f"no landscape with {', '.join(sorted(map(name_of, missing)))}; record every combination")


def meant(knobs: Mapping[str, Sequence[Any]], kind: str) -> dict[str, list[Any]]:
    """The knobs of a space that determine what an index means: not those with only their usual value, which may have
    been removed since the space was described, or added after it."""
    family = kind_named(kind)[1]
    usual = {**family.removed, **family.configurations[0]().to_dict()}
    return {name: list(values) for name, values in knobs.items() if list(values) != [usual.get(name, values[0])]}


def _times(one: Landscape) -> dict[int, float]:
    return {index: r.microseconds for index, r in one.results.items() if isinstance(r, Measured)}

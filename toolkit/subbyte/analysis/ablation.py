"""What each technique contributes: the same schedules measured with every combination of the switches.

The records behind Figures 15 and 16 of Choi et al. 2022. Speed-ups are geometric means over schedules, each schedule
against itself with other switches, with bootstrap intervals over the schedules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subbyte.errors import InvalidInput
from subbyte.measure.result import Measured
from subbyte.technique.record import InfoRecord, Table
from subbyte.tune.landscape import Landscape

TECHNIQUES = ("duplicate_aware", "register_packing", "layout")
"""The order in which the paper adds them."""
Switches = tuple[str, bool, str]
ALL_OFF: Switches = ("none", False, "nhwc")
ALL_ON: Switches = ("full", True, "nhwcnc")
RESAMPLES = 2000
_LEVEL = 0.95


@dataclass(frozen=True)
class Factor:
    """A speed-up: geometric mean over schedules, and its 95 % interval."""

    speed_up: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.speed_up:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Ablation(InfoRecord):
    """Speed-ups of one workload on one device, from ``schedules`` common schedules.

    ``combinations`` is every combination of switches against all off; ``accumulated`` adds the techniques in order
    (Figure 15); ``marginal`` is what is lost when one is taken from all on (Figure 16); ``shapley`` divides the whole
    gain fairly, its factors multiply to that of all on; ``sharing`` compares no sharing, sharing in shared memory and
    sharing in registers as well, with the other techniques on. ``fastest`` is the best time of each combination within
    the sample, in microseconds, each at its own schedule.
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

    def title(self) -> str:
        """One line that names what the record shows."""
        return f"{self.workload} on {self.device}: speed-ups over {self.schedules} schedules (95 % intervals)"

    def table(self) -> Table:
        """One row for each figure's bar."""
        parts = {
            "accumulated": self.accumulated, "marginal": self.marginal, "Shapley": self.shapley,
            "sharing": self.sharing, "all off to": self.combinations,
        }  # fmt: skip
        rows = tuple((kind, name, str(factor)) for kind, found in parts.items() for name, factor in found.items())
        return Table(("figure", "step", "speed-up"), rows)


def ablation(landscapes: Iterable[Landscape], seed: int = 0) -> Ablation:
    """The contributions of the techniques from one landscape for each combination of switches.

    Only schedules measured with every combination count. Raises InvalidInput when the landscapes are of several
    workloads or devices, when a combination is missing, or when fewer than 10 schedules are common.
    """
    found = {_switches(one): one for one in landscapes}
    _check(found)
    first = next(iter(found.values()))
    times = {key: _times(one) for key, one in found.items()}
    common = sorted(set.intersection(*(set(one) for one in times.values())))
    if len(common) < 10:
        raise InvalidInput(f"only {len(common)} schedules were measured with every combination: at least 10 needed")
    logs = {key: np.log([one[index] for index in common]) for key, one in times.items()}
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(common), size=(RESAMPLES, len(common)))

    def factor(gain: npt.NDArray[np.float64]) -> Factor:
        low, high = np.quantile(gain[draws].mean(axis=1), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
        return Factor(math.exp(gain.mean()), math.exp(low), math.exp(high))

    def gain(slow: Switches, fast: Switches) -> npt.NDArray[np.float64]:
        return np.asarray(logs[slow] - logs[fast])

    steps = list(itertools.accumulate(TECHNIQUES, _add, initial=ALL_OFF))
    return Ablation(
        workload=first.workload.label,
        device=str(first.device["name"]),
        schedules=len(common),
        combinations={_name(key): factor(gain(ALL_OFF, key)) for key in sorted(found) if key != ALL_OFF},
        accumulated={t: factor(gain(ALL_OFF, step)) for t, step in zip(TECHNIQUES, steps[1:], strict=True)},
        marginal={t: factor(gain(_without(t), ALL_ON)) for t in TECHNIQUES},
        shapley={t: factor(_shapley(t, logs)) for t in TECHNIQUES},
        sharing={
            name: factor(gain(("none", True, "nhwcnc"), (name, True, "nhwcnc")))
            for name in ("shared", "full")
            if (name, True, "nhwcnc") in found
        },
        fastest={_name(key): min(one[index] for index in common) for key, one in sorted(times.items())},
    )


def _switches(one: Landscape) -> Switches:
    fixed = one.header["space"]["fixed"]
    return str(fixed["duplicate_aware"]), bool(fixed["register_packing"]), str(fixed["layout"])


def _check(found: Mapping[Switches, Landscape]) -> None:
    for what in ("workload", "device"):
        values = {one.workload.spec if what == "workload" else str(one.device["name"]) for one in found.values()}
        if len(values) > 1:
            raise InvalidInput(f"landscapes of several {what}s cannot be compared: {', '.join(sorted(values))}")
    wanted = set(itertools.product(("none", "full"), (False, True), ("nhwc", "nhwcnc")))
    missing = wanted - set(found)
    if missing:
        raise InvalidInput(f"no landscape with {', '.join(sorted(map(_name, missing)))}; record every combination")


def _times(one: Landscape) -> dict[int, float]:
    return {index: r.microseconds for index, r in one.results.items() if isinstance(r, Measured)}


def _set(switches: Switches, technique: str, on: bool) -> Switches:
    place = TECHNIQUES.index(technique)
    value = (ALL_ON if on else ALL_OFF)[place]
    changed = [value if i == place else old for i, old in enumerate(switches)]
    return changed[0], changed[1], changed[2]  # type: ignore[return-value]


def _add(switches: Switches, technique: str) -> Switches:
    return _set(switches, technique, True)


def _without(technique: str) -> Switches:
    return _set(ALL_ON, technique, False)


def _shapley(technique: str, logs: Mapping[Switches, npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Mean log gain of adding the technique, over all orders in which the three can be added."""
    orders = list(itertools.permutations(TECHNIQUES))
    total = np.zeros_like(logs[ALL_OFF])
    for order in orders:
        before = ALL_OFF
        for name in order[: order.index(technique)]:
            before = _add(before, name)
        total += logs[before] - logs[_add(before, technique)]
    return total / len(orders)


def _name(switches: Switches) -> str:
    sharing, packing, layout = switches
    return f"sharing {sharing}, packing {'on' if packing else 'off'}, {layout}"

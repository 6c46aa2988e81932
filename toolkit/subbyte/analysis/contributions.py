"""How much each technique contributes, from the logarithms of the times with every combination of the switches.

Shared by the comparison on the same schedules (:mod:`subbyte.analysis.ablation`) and that of the retuned optima
(:mod:`subbyte.analysis.retuned`). A *draw* is the unit of repetition: a schedule in the first, a round of the finals in
the second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subbyte.errors import InvalidInput

TECHNIQUES = ("duplicate_aware", "register_packing", "layout")
"""The order in which the paper adds the techniques."""
Switches = tuple[str, bool, str]
"""Values of the three techniques, in that order."""
ALL_OFF: Switches = ("none", False, "nhwc")
ALL_ON: Switches = ("full", True, "nhwcnc")
Logs = Mapping[Switches, npt.NDArray[np.float64]]
"""Natural logarithm of the microseconds by combination: float64 [draws], the same draws in each."""
RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Factor:
    """A speed-up: geometric mean over the draws, and its 95 % interval (percentile bootstrap over the draws)."""

    speed_up: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.speed_up:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Contributions:
    """Speed-ups by name. ``combinations`` compares every combination with all off; ``accumulated`` adds the techniques
    in ``order`` (Figure 15); ``marginal`` is what is lost when one technique is removed from all on (Figure 16);
    ``shapley`` is the mean over all orders of adding, factors whose product is the speed-up of all on; ``sharing``
    compares no sharing with sharing in shared memory, and in registers as well, with the other techniques on."""

    order: tuple[str, ...]
    combinations: dict[str, Factor]
    accumulated: dict[str, Factor]
    marginal: dict[str, Factor]
    shapley: dict[str, Factor]
    sharing: dict[str, Factor]


def contributions(logs: Logs, order: Sequence[str] = TECHNIQUES, seed: int = 0) -> Contributions:
    """The contributions, from at least the eight combinations of ``none`` and ``full`` sharing.

    Raises InvalidInput when one of the eight is missing, or ``order`` is not an order of the three techniques.
    """
    if sorted(order) != sorted(TECHNIQUES):
        raise InvalidInput(f"order={tuple(order)}: must hold {', '.join(TECHNIQUES)}, once each")
    missing = set(EIGHT) - set(logs)
    if missing:
        raise InvalidInput(f"nothing recorded with {', '.join(sorted(map(name_of, missing)))}; measure every one")

    def factor(gain: npt.NDArray[np.float64]) -> Factor:
        return factor_of(gain, seed)

    def gain(slow: Switches, fast: Switches) -> npt.NDArray[np.float64]:
        return np.asarray(logs[slow] - logs[fast])

    steps = list(itertools.accumulate(order, add, initial=ALL_OFF))
    return Contributions(
        order=tuple(order),
        combinations={name_of(key): factor(gain(ALL_OFF, key)) for key in sorted(logs) if key != ALL_OFF},
        accumulated={t: factor(gain(ALL_OFF, step)) for t, step in zip(order, steps[1:], strict=True)},
        marginal={t: factor(gain(without(t), ALL_ON)) for t in TECHNIQUES},
        shapley={t: factor(_shapley(t, logs)) for t in TECHNIQUES},
        sharing={
            name: factor(gain(("none", True, "nhwcnc"), (name, True, "nhwcnc")))
            for name in ("shared", "full")
            if (name, True, "nhwcnc") in logs
        },
    )


def factor_of(gain: npt.NDArray[np.float64], seed: int = 0) -> Factor:
    """The speed-up whose logarithms are ``gain``, float64 [draws], with its interval."""
    draws = np.random.default_rng(seed).integers(len(gain), size=(RESAMPLES, len(gain)))
    low, high = np.quantile(gain[draws].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Factor(math.exp(gain.mean()), math.exp(low), math.exp(high))


EIGHT: tuple[Switches, ...] = tuple(
    (sharing, packing, layout)
    for sharing in ("none", "full")
    for packing in (False, True)
    for layout in ("nhwc", "nhwcnc")
)
"""The combinations needed to attribute anything."""


def add(switches: Switches, technique: str) -> Switches:
    """``switches`` with a technique turned on."""
    return _set(switches, technique, True)


def without(technique: str) -> Switches:
    """All techniques on except one."""
    return _set(ALL_ON, technique, False)


def name_of(switches: Switches) -> str:
    """The combination in words."""
    sharing, packing, layout = switches
    return f"sharing {sharing}, packing {'on' if packing else 'off'}, {layout}"


def _set(switches: Switches, technique: str, on: bool) -> Switches:
    place = TECHNIQUES.index(technique)
    value = (ALL_ON if on else ALL_OFF)[place]
    changed = [value if i == place else old for i, old in enumerate(switches)]
    return changed[0], changed[1], changed[2]  # type: ignore[return-value]


def _shapley(technique: str, logs: Logs) -> npt.NDArray[np.float64]:
    """Mean log gain of adding the technique, over all orders in which the three can be added."""
    orders = list(itertools.permutations(TECHNIQUES))
    total = np.zeros_like(logs[ALL_OFF])
    for one in orders:
        before = ALL_OFF
        for name in one[: one.index(technique)]:
            before = add(before, name)
        total += logs[before] - logs[add(before, technique)]
    return total / len(orders)

"""Two participants compared: the difference of their areas with intervals, and what can be concluded from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subbyte.analysis.bootstrap import Interval, PairedBootstrap

MARGIN = 0.01
"""Differences below this share of the area count as no difference."""
LEAST_SEEDS = 5
OUTCOMES = ("better", "worse", "equivalent", "undecided")


@dataclass(frozen=True)
class Comparison:
    """``a`` against ``b`` over ``trials`` trials, paired by seed.

    ``measure`` is what was compared and what ``area_a`` and ``area_b`` hold: the ``area``, or the ``fraction`` of the
    optimum after the last trial. ``difference`` is area(a) - area(b) as a share of area(b); ``interval`` is its 95 %
    interval. ``joint`` is the interval behind ``better`` and ``worse``, and ``equivalence`` the one of the equivalence
    test (two one-sided tests at 5 %, hence 90 %); both allow for the number of ``pairs`` compared (Bonferroni). The
    intervals are None with fewer than five paired seeds. ``scope`` is the landscape, or the device whose landscapes
    were pooled.
    """

    a: str
    b: str
    scope: str
    landscapes: int
    seeds: int
    trials: int
    area_a: float
    area_b: float
    difference: float
    interval: Interval | None
    joint: Interval | None
    equivalence: Interval | None
    margin: float
    pairs: int
    outcome: str
    measure: str = "area"

    @property
    def verdict(self) -> str:
        """The outcome in words, with the numbers it rests on."""
        where = self.scope if self.landscapes == 1 else f"{self.landscapes} landscapes of {self.scope}"
        basis = f"on {where}, {self.seeds} seeds, {self.trials} trials"
        if self.interval is None:
            return f"{self.a} against {self.b} {basis}: undecided, {LEAST_SEEDS} paired seeds are the least"
        numbers = (
            f"{self.measure} {self.area_a:.4f} against {self.area_b:.4f}, difference {_percent(self.difference)} "
            f"(95 % interval {_percent(self.interval.low)} to {_percent(self.interval.high)}"
        )
        if self.pairs > 1 and self.joint is not None:
            low, high = _percent(self.joint.low), _percent(self.joint.high)
            numbers += f"; jointly with the other {self.pairs - 1} comparisons {low} to {high}"
        numbers += ")"
        return f"{self.a} against {self.b} {basis}: {self._words()}; {numbers}"

    def _words(self) -> str:
        percent = f"{100 * self.margin:g} %"
        if self.outcome == "equivalent":
            return f"equivalent, a difference of {percent} of the {self.measure} or more is ruled out"
        if self.outcome == "undecided":
            return f"undecided, neither a difference nor equivalence within {percent} of the {self.measure} is shown"
        assert self.equivalence is not None
        small = self.equivalence.within(-self.margin, self.margin)
        return self.outcome + (f", but by less than {percent} of the {self.measure}" if small else "")


def compare(
    a: str,
    b: str,
    scope: str,
    trials: int,
    areas: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]],
    pairs: int = 1,
    seed: int = 0,
    margin: float = MARGIN,
    measure: str = "area",
) -> Comparison:
    """Compare areas (or fractions, see ``measure``) of ``a`` and ``b``: for each landscape two paired arrays [seeds].

    The verdict is a difference when the joint interval excludes zero, and equivalence when the equivalence interval
    lies within the margin; anything else is undecided.
    """
    area_a = float(np.mean([left.mean() for left, _ in areas]))
    area_b = float(np.mean([right.mean() for _, right in areas]))
    scale = area_b if area_b > 0 else 1.0
    seeds = min(len(left) for left, _ in areas)
    difference = (area_a - area_b) / scale
    if seeds < LEAST_SEEDS:
        return Comparison(a, b, scope, len(areas), seeds, trials, area_a, area_b, difference, None, None, None, margin,
                          pairs, "undecided", measure)  # fmt: skip
    bootstrap = PairedBootstrap([(left - right) / scale for left, right in areas], seed)
    joint, equivalence = bootstrap.interval(1 - 0.05 / pairs), bootstrap.interval(1 - 0.10 / pairs)
    if joint.excludes(0.0):
        outcome = "better" if difference > 0 else "worse"
    else:
        outcome = "equivalent" if equivalence.within(-margin, margin) else "undecided"
    return Comparison(a, b, scope, len(areas), seeds, trials, area_a, area_b, difference, bootstrap.interval(0.95),
                      joint, equivalence, margin, pairs, outcome, measure)  # fmt: skip


def in_words(comparisons: Sequence[Comparison], participants: Sequence[str]) -> str:
    """One sentence for one scope: which participants are beaten by no other, and why."""
    if not comparisons:
        return "nothing to compare: one participant"
    beaten: dict[str, list[str]] = {name: [] for name in participants}
    for c in comparisons:
        if c.outcome == "better":
            beaten[c.b].append(c.a)
        elif c.outcome == "worse":
            beaten[c.a].append(c.b)
    ahead = [name for name in participants if not beaten[name]]
    behind = [name for name in participants if beaten[name]]
    among = [c for c in comparisons if c.a in ahead and c.b in ahead]
    if not behind:
        if all(c.outcome == "equivalent" for c in among):
            return f"no difference: all are equivalent within {100 * among[0].margin:g} % of the area"
        return "no verdict: no participant is shown to be better than another"
    if len(ahead) == 1:
        return (
            f"{ahead[0]} is ahead of {_listed(behind)}"
            if _beats_all(ahead[0], behind, beaten)
            else (f"{ahead[0]} is not beaten; each of {_listed(behind)} is beaten by another participant")
        )
    draw = "equivalent" if among and all(c.outcome == "equivalent" for c in among) else "not told apart"
    return f"{_listed(ahead)} are not beaten ({draw} among themselves); behind: {_listed(behind)}"


def _beats_all(name: str, behind: Sequence[str], beaten: dict[str, list[str]]) -> bool:
    return all(name in beaten[other] for other in behind)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percent(share: float) -> str:
    return f"{100 * share:+.2f} %"

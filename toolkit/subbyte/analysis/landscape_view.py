"""A landscape by its knobs: best and median time over any two of them, and the effect of each knob alone."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from subbyte.arguments import checked
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families import space as space_of
from subbyte.families.registry import family_of_kind
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.spaces.configuration import Configuration
from subbyte.technique.record import InfoRecord, Table

ALL_REFUSED = 20_000
"""Up to this size of a space, rejected configurations are listed beside the measured ones."""


@dataclass(frozen=True)
class LandscapePoints(InfoRecord):
    """Every measured configuration and, in spaces of up to ALL_REFUSED, every rejected one, by index.

    ``digits``: the position of each knob's value in its list; ``microseconds`` is None without a time, and then
    ``reasons`` says why ("kind: details"; a failed candidate or a constraint of the space), else it is empty.
    """

    name: str
    workload: str
    device: str
    size: int
    knobs: dict[str, tuple[int, ...]]
    indices: tuple[int, ...]
    digits: tuple[tuple[int, ...], ...]
    microseconds: tuple[float | None, ...]
    reasons: tuple[str, ...]

    @property
    def measured(self) -> int:
        """Configurations with a time."""
        return sum(time is not None for time in self.microseconds)

    @property
    def refused(self) -> dict[str, int]:
        """Configurations without a time, by kind of reason, the most frequent first."""
        kinds = Counter(reason.split(":")[0] for reason in self.reasons if reason)
        return dict(kinds.most_common())

    @property
    def constant(self) -> tuple[str, ...]:
        """Knobs that have the same value in every measured configuration."""
        timed = [digits for digits, time in zip(self.digits, self.microseconds, strict=True) if time is not None]
        return tuple(name for name, column in zip(self.knobs, zip(*timed, strict=True), strict=False)
                     if len(set(column)) == 1)  # fmt: skip

    def title(self) -> str:
        """What was measured, and where."""
        return f"Space of {self.workload}, measured on {self.device or 'an unnamed device'}"

    def table(self) -> Table:
        """One row per configuration."""
        rows = zip(self.indices, self.digits, self.microseconds, self.reasons, strict=True)
        values = list(self.knobs.values())
        cells = [
            (index, *(values[i][digit] for i, digit in enumerate(digits)), time, reason)
            for index, digits, time, reason in rows
        ]
        return Table(("index", *self.knobs, "microseconds", "reason"), tuple(cells))


@dataclass(frozen=True)
class MapCell:
    """The configurations that share two knob values. Times in microseconds, None when none of them was measured.

    ``index`` is the fastest one, or a rejected one if all are rejected; ``reason`` then says why that one is.
    """

    best: float | None
    median: float | None
    measured: int
    refused: int
    index: int
    reason: str


@dataclass(frozen=True)
class LandscapeMap(InfoRecord):
    """Two knobs against each other; ``cells[i][j]`` belongs to ``y_values[i]`` and ``x_values[j]``."""

    x: str
    y: str
    x_values: tuple[int, ...]
    y_values: tuple[int, ...]
    cells: tuple[tuple[MapCell, ...], ...]

    def title(self) -> str:
        """The two knobs."""
        return f"{self.y} against {self.x}: best time in microseconds over all other knobs"

    def table(self) -> Table:
        """Best times, one row per value of ``y``."""
        rows = [(v, *(c.best for c in row)) for v, row in zip(self.y_values, self.cells, strict=True)]
        return Table((f"{self.y} \\ {self.x}", *map(str, self.x_values)), tuple(rows))


@dataclass(frozen=True)
class KnobEffect(InfoRecord):
    """The effect of one knob. Lists are in the order of ``values``; times in microseconds, None where nothing was
    measured.

    ``share``: the part of the variance of log(time) that the knob's value alone explains (eta squared), 0 to 1.
    ``loss``: how much slower the best gets when the knob is held at its worst value (1.0: not at all).
    """

    knob: str
    values: tuple[int, ...]
    best: tuple[float | None, ...]
    median: tuple[float | None, ...]
    measured: tuple[int, ...]
    refused: tuple[int, ...]
    share: float
    loss: float

    def title(self) -> str:
        """The knob and its share."""
        return f"{self.knob}: explains {self.share:.0%} of the variance, costs up to {self.loss:.2f} times the best"

    def table(self) -> Table:
        """One row per value."""
        rows = zip(self.values, self.best, self.median, self.measured, self.refused, strict=True)
        return Table((self.knob, "best", "median", "measured", "refused"), tuple(rows))


@lru_cache(maxsize=8)
def landscape_points(landscape: Landscape) -> LandscapePoints:
    """All configurations of a landscape with their times, or the reason why there is none."""
    header = landscape.header["space"]
    knobs = {name: tuple(values) for name, values in header["knobs"].items()}
    size = int(header["size"])
    rows = {}
    for index, result in landscape.results.items():
        timed = isinstance(result, Measured)
        rows[index] = (result.microseconds, "") if timed else (None, f"{result.kind}: {result.reason}")  # type: ignore[union-attr]
    if size <= ALL_REFUSED:
        rows.update(_refused(landscape, size, rows))
    chosen = sorted(rows)
    return LandscapePoints(
        landscape.name, landscape.workload.label, str(landscape.device.get("name", "")), size, knobs, tuple(chosen),
        tuple(_digits(index, knobs.values()) for index in chosen),
        tuple(rows[index][0] for index in chosen), tuple(rows[index][1] for index in chosen),
    )  # fmt: skip


def index_of(landscape: Landscape, config: Configuration) -> int:
    """Index of a configuration in the landscape's space, rejected ones included; -1 when it is not in this space."""
    family, described = family_of_kind(landscape.kind), landscape.header["space"]
    if family is None or not family.owns(config):
        return -1
    knobs = {name: tuple(values) for name, values in described["knobs"].items()}
    space = family.recorded_space(landscape.workload, arch(landscape.arch), landscape.kind, knobs, described["fixed"])
    try:
        index = space.index(config)
    except InvalidInput:
        return -1
    return index if landscape.config(index) == config else -1


@checked
def landscape_map(landscape: Landscape, x: str, y: str) -> LandscapeMap:
    """Best and median time over two knobs, over all values of the others. Raises InvalidInput for an unknown knob."""
    points = landscape_points(landscape)
    names = list(points.knobs)
    for name in (x, y):
        if name not in points.knobs:
            raise InvalidInput(f"unknown knob {name!r}: {did_you_mean(name, names)}")
    if x == y:
        raise InvalidInput(f"a map needs two knobs, given {x!r} twice; allowed: {', '.join(names)}")
    across, down = names.index(x), names.index(y)
    groups: dict[tuple[int, int], list[int]] = {}
    for place, digits in enumerate(points.digits):
        groups.setdefault((digits[down], digits[across]), []).append(place)
    cells = [
        tuple(_cell(points, groups.get((i, j), [])) for j in range(len(points.knobs[x])))
        for i in range(len(points.knobs[y]))
    ]
    return LandscapeMap(x, y, points.knobs[x], points.knobs[y], tuple(cells))


@checked
def knob_effects(landscape: Landscape) -> tuple[KnobEffect, ...]:
    """The effect of each knob, the largest first. Raises InvalidInput when nothing was measured."""
    points = landscape_points(landscape)
    timed = [i for i, time in enumerate(points.microseconds) if time is not None]
    if not timed:
        raise InvalidInput(f"landscape {points.name}: no configuration was measured, so no knob has an effect")
    effects = []
    for column, (knob, values) in enumerate(points.knobs.items()):
        groups: list[list[int]] = [[] for _ in values]
        for place, digits in enumerate(points.digits):
            groups[digits[column]].append(place)
        cells = [_cell(points, group) for group in groups]
        bests = [cell.best for cell in cells if cell.best is not None]
        effects.append(
            KnobEffect(
                knob, values, tuple(cell.best for cell in cells), tuple(cell.median for cell in cells),
                tuple(cell.measured for cell in cells), tuple(cell.refused for cell in cells),
                _share([[_log(points, i) for i in group if points.microseconds[i] is not None] for group in groups]),
                max(bests) / min(bests),
            )
        )  # fmt: skip
    return tuple(sorted(effects, key=lambda effect: -effect.share))


@checked
def shared_by_fastest(landscape: Landscape, part: float = 0.05) -> str:
    """Which knob values the fastest ``part`` of the measured configurations share, in one sentence.

    It names the knobs for which at least 80 % of these have the same value, with that share and the value's share among
    all measured configurations; knobs that have the same value in every measured configuration are left out.
    """
    points = landscape_points(landscape)
    timed = sorted((time, i) for i, time in enumerate(points.microseconds) if time is not None)
    fast = [i for _, i in timed[: max(1, round(part * len(timed)))]]
    shared = []
    for column, (knob, values) in enumerate(points.knobs.items()):
        everywhere = Counter(points.digits[i][column] for _, i in timed)
        digit, count = Counter(points.digits[i][column] for i in fast).most_common(1)[0]
        if len(everywhere) > 1 and count >= 0.8 * len(fast):
            of_all = everywhere[digit] / len(timed)
            shared.append(f"{knob} {values[digit]} ({count / len(fast):.0%}, of all {of_all:.0%})")
    return f"The fastest {part:.0%} ({len(fast)}) share: {', '.join(shared) or 'no value of any knob'}."


def _refused(landscape: Landscape, size: int, known: dict[int, Any]) -> dict[int, tuple[None, str]]:
    header = landscape.header["space"]
    space = space_of(landscape.workload, landscape.arch, landscape.kind, **header["fixed"])
    if space.hash != landscape.space_hash:  # recorded under other rules: today's reasons would be wrong
        return {}
    reasons = ((index, space.check(index)) for index in range(size) if index not in known)
    return {index: (None, reason or "not measured: allowed, but without a record") for index, reason in reasons}


def _digits(index: int, knobs: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    digits = []
    for values in knobs:
        index, digit = divmod(index, len(values))
        digits.append(digit)
    return tuple(digits)


def _cell(points: LandscapePoints, places: list[int]) -> MapCell:
    times = [(time, place) for place in places if (time := points.microseconds[place]) is not None]
    if times:
        best, where = min(times)
        median = statistics.median(time for time, _ in times)
        return MapCell(best, median, len(times), len(places) - len(times), points.indices[where], "")
    if not places:
        return MapCell(None, None, 0, 0, -1, "not measured")
    # The most frequent reason stands for the cell.
    common = Counter(points.reasons[place].split(":")[0] for place in places).most_common(1)[0][0]
    place = next(place for place in places if points.reasons[place].startswith(common))
    return MapCell(None, None, 0, len(places), points.indices[place], points.reasons[place])


def _log(points: LandscapePoints, place: int) -> float:
    time = points.microseconds[place]
    assert time is not None
    return math.log(time)


def _share(groups: list[list[float]]) -> float:
    """Eta squared: variance between the groups over the variance of all."""
    everything = [value for group in groups for value in group]
    mean = statistics.fmean(everything)
    total = sum((value - mean) ** 2 for value in everything)
    between = sum(len(group) * (statistics.fmean(group) - mean) ** 2 for group in groups if group)
    return between / total if total else 0.0

"""What ``tune`` measures, and in which order: every layer a little, then those with most to gain."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.network.builders import usual_values, value_of
from benchmarks.network.layers import STAGES
from benchmarks.network.searches import ARCH, searches_in
from subbyte.device.arch import arch
from subbyte.errors import SubbyteError
from subbyte.families.registry import config_from_dict, family_of_kind
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.former import FormerConfig
from subbyte.families.wgmma.space import SMALL, WGMMA, wgmma_space
from subbyte.records.result import Measured
from subbyte.tune import Study
from subbyte.workload import ConvWorkload, workloads

FIRST, FURTHER = 32, 32
"""Trials of a study's first turn, and of every later one."""
PATIENCE = 24
"""A study whose best has not improved in so many trials waits until all others have come to that."""
WORTH = 0.002
"""What counts as an improvement, as a share of the time."""
KEPT_EARLIER = 12
"""Fastest configurations of earlier runs that a study begins with."""
GOAL = 1.5
"""Ratio to the best baseline from which on a layer is as good as it has to be."""
ESTIMATED = (
    "tile_width",
    "tile_rows",
    "consumers_m",
    "consumers_n",
    "consumers_rows",
    "segments",
    "cluster_split_k",
    "stages",
    "channel_groups",
)
"""Knobs whose values the estimate is left to choose."""
LOOKED_AT = 300
"""Configurations with an untried value that are compared with what was good."""
LEAST_NEED, MOST_NEED = 0.5, 3.0


@dataclass(frozen=True)
class Task:
    """One study: a layer, a kind of space, and how many results it should hold at most; None: as time allows."""

    workload: ConvWorkload
    kind: str
    trials: int | None = None

    @property
    def name(self) -> str:
        """Stem of its log."""
        return f"{self.workload.label}.{self.kind}"


def tasks(
    needs: Mapping[str, float], most: int | None = None, known: Mapping[str, Known] | None = None,
    layers: Sequence[ConvWorkload] = (),
) -> list[Task]:  # fmt: skip
    """All studies in the order of their first turns; ``most`` bounds their trials. Of ``layers`` that are named the
    wgmma space alone.

    First the wgmma space of every layer, those that no earlier run searched before those that one left while they
    still improved, these before those that have a knob nobody has tried yet, and these before all others, each by need;
    then the spaces that become landscapes, whole; then the mma family, which may win on small 1x1 layers.
    """
    if layers:
        return [Task(one, WGMMA, most) for one in layers]
    every = list(dict.fromkeys(workloads(["resnet50@8", "resnet50@64", "resnet50@256", "resnet18@8", "vgg16@8"])))
    every.sort(key=lambda one: (-(known or {}).get(one.spec, Known()).promise(one), -needs.get(one.spec, 1.0)))
    stages = workloads([f"{stage}@8" for stage in STAGES])
    others = [one for one in every if one.n == 8 and one not in stages]
    found = [Task(one, WGMMA, most) for one in every]
    found += [Task(one, SMALL, most) for one in stages]
    found += [Task(one, "paper", min(24, most or 24)) for one in others if one.r == one.s == 1]
    found += [Task(one, "paper", min(8, most or 8)) for one in [*stages, *others] if one.r > 1]
    return found


# ---- which study goes on ---------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Going:
    """A study that has begun in this process."""

    task: Task
    study: Study
    need: float
    begun_with: int = 0
    """Trials of the log that it was continued from."""
    closed: bool = field(default=False)

    @property
    def times(self) -> list[float]:
        """Microseconds by trial, infinity for those that failed."""
        return [math.inf if t.microseconds is None else t.microseconds for t in self.study.trials]

    def done(self) -> bool:
        """No trial is left to be asked for."""
        most = self.task.trials
        return self.closed or (most is not None and len(self.study.trials) >= most)


def gain(times: Sequence[float], window: int = PATIENCE) -> float:
    """How much faster the best became within the last ``window`` trials, as a share; infinity for the first of all."""
    before, now = min(times[:-window], default=math.inf), min(times, default=math.inf)
    if before == math.inf:
        return math.inf if now < math.inf or len(times) < 2 * window else 0.0
    return before / now - 1.0


class Turns:
    """Which study goes on next, for the threads of one process: one that nobody has begun, else of its own the one
    that improves most where it is needed most. ``begin`` gives the next study nobody has begun, or None."""

    def __init__(self, begin: Callable[[], Going | None], patience: int = PATIENCE) -> None:
        self._begin, self._patience = begin, patience
        self._lock = threading.Lock()
        self._waiting: list[Going] = []
        self.begun: list[Going] = []

    def take(self) -> Going | None:
        """The study to go on with, for this caller alone until it gives it back; None when nothing is left."""
        fresh = self._begin()
        with self._lock:
            if fresh is not None:
                self.begun.append(fresh)
                return fresh
            self._waiting = [one for one in self._waiting if not one.done()]
            if not self._waiting:
                return None
            chosen = max(self._waiting, key=self.worth)
            self._waiting.remove(chosen)
            return chosen

    def give_back(self, going: Going) -> None:
        """It may go on later."""
        with self._lock:
            self._waiting.append(going)

    def worth(self, going: Going) -> tuple[int, float]:
        """For comparison: as long as it improves within its patience it goes first, and of those that do not the one
        that has been tried least, for its need."""
        times = going.times
        recent = gain(times, self._patience)
        if recent > WORTH:
            return 1, going.need * min(recent, 1.0)
        return 0, going.need / (1 + len(times) - going.begun_with)


# ---- what is known before --------------------------------------------------------------------------------------------


def needs_of(record: Path | None) -> dict[str, float]:
    """By workload spec: how far a layer is from being ``GOAL`` times as fast as its best baseline, from a record of
    ``baselines compare``; 1 at the goal."""
    if record is None:
        return {}
    found = {}
    for cell in json.loads(record.read_text(encoding="utf-8"))["cells"]:
        if cell.get("opponents") and "ours" in cell:
            best = min(line["microseconds"] for line in cell["opponents"])
            ratio = best / cell["ours"]["microseconds"]
            found[cell["spec"]] = min(max(GOAL / ratio, LEAST_NEED), MOST_NEED)
    return found


@dataclass
class Known:
    """What earlier runs say of a layer: by family the fastest configurations, and by knob of the wgmma family the
    values that were tried."""

    best: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    values: dict[str, list[int]] = field(default_factory=dict)
    improving: bool = False
    """The last search of its wgmma space found something better within its last ``PATIENCE`` trials."""

    def promise(self, workload: ConvWorkload) -> int:
        """3 for a layer that nobody has searched, 2 for one that still improved, 1 for one with a knob of which nobody
        has tried but the usual value."""
        if not self.values:
            return 3
        usual = usual_values()
        new = (name for name, values in wgmma_space(workload, arch(ARCH), WGMMA).knobs.items()
               if self.values.get(name) == [usual[name]] and set(values) - {usual[name]})  # fmt: skip
        return 2 if self.improving else int(any(new))

    def configs(self, family: str) -> list[Any]:
        """The fastest configurations of a family, as far as they exist today."""
        found = []
        for data in self.best.get(family, ()):
            with suppress(SubbyteError):
                found.append(config_from_dict(data))
        return [config for config in found if not isinstance(config, FormerConfig)]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Known:
        """What :meth:`to_dict` gave."""
        return cls(**data)


def earlier_best(paths: Iterable[Path], count: int = KEPT_EARLIER) -> dict[str, Known]:
    """By workload spec what earlier runs measured, from folders of logs and from records.

    The times of different runs, and of different generators, serve to choose what is measured anew, and nothing else.
    """
    timed: dict[tuple[str, str], dict[str, tuple[float, dict[str, Any]]]] = {}
    found: dict[str, Known] = {}
    for search in (search for path in paths for search in searches_in(path)):
        made = family_of_kind(search.kind)
        if made is None:
            continue
        family = made.name
        held = timed.setdefault((search.spec, family), {})
        known = found.setdefault(search.spec, Known())
        for config, result in search.trials:
            data = config.to_dict()
            if isinstance(config, WgmmaConfig):
                for name in usual_values():
                    values, value = known.values.setdefault(name, []), value_of(config, name)
                    values += [value] if value is not None and value not in values else []
            if isinstance(result, Measured):
                before = held.get(config.key, (math.inf, {}))
                held[config.key] = min(before, (result.microseconds, data), key=lambda entry: entry[0])
        if search.kind == WGMMA:
            times = [one.microseconds if isinstance(one, Measured) else math.inf for _, one in search.trials]
            known.improving = gain(times) > WORTH
    for (spec, family), held in timed.items():
        fastest = sorted(held.values(), key=lambda entry: entry[0])[:count]
        found[spec].best[family] = [config for _, config in fastest]
    return found


def neighbours(
    space: Any, by_estimate: Sequence[int], best: Sequence[Any], tried: Mapping[str, Sequence[int]]
) -> list[Any]:
    """For every value that nobody has tried of a knob not in ESTIMATED, and each of ``best``: the listed configuration
    with that value that differs from it in the fewest knobs; of several the first of ``by_estimate``. What a new knob
    makes of what was good without it, with whatever must go together with it."""
    fresh = {(name, value) for name, values in space.knobs.items() for value in values
             if tried and name not in ESTIMATED and value not in tried.get(name, ())}  # fmt: skip
    found: dict[Any, None] = {}
    listed = [space.config(index) for index in by_estimate] if fresh else []
    for name, value in sorted(fresh):
        having = [config for config in listed if value_of(config, name) == value][:LOOKED_AT]
        for config in best if having else ():
            distances = [_distance(space.knobs, one, config) for one in having]
            found[having[distances.index(min(distances))]] = None
    return list(found)


def _distance(names: Iterable[str], one: Any, other: Any) -> int:
    """Knobs in which two configurations differ."""
    return sum(value_of(one, name) != value_of(other, name) for name in names)

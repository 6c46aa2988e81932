"""The result of a race: every run as recorded, and the statistics computed from it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from subbyte.analysis.comparison import MARGIN, Comparison, compare, in_words
from subbyte.analysis.curves import Curve, Fractions, Standing, curve_of, fractions, standing_of
from subbyte.analysis.runs import LandscapeFacts, Run
from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.files import write_file
from subbyte.records.checked import file_path, several, whole
from subbyte.records.describe import now, to_line
from subbyte.records.reading import json_file, typed
from subbyte.records.shapes import Count, Name
from subbyte.technique.record import InfoRecord, Table, columns_text, plain

FORMAT = "subbyte-race"
SCHEMA = 2
"""Schema 1 stored every point of the curves."""
SUFFIX = ".json.gz"


MOST_POINTS = 10**8
"""Most trials of all runs of a race in a file."""


class RaceShape(msgspec.Struct, frozen=True):
    """A race file."""

    schema: Count
    landscapes: tuple[LandscapeFacts, ...]
    participants: tuple[Name, ...]
    trials: Count
    runs: tuple[dict[str, Any], ...]
    statistics_seed: Count
    created: Name
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    skipped: tuple[str, ...]
    command: str
    versions: dict[Name, Name]


@dataclass(frozen=True, eq=False)
class Race(InfoRecord):
    """Participants on landscapes: ``runs`` for every participant, landscape and seed.

    Statistics depend only on the runs and on ``statistics_seed``. Landscapes of one GPU are pooled; those of different
    GPUs are shown side by side and never ranked together. ``skipped`` says what was asked for and left out, and why.
    """

    landscapes: tuple[LandscapeFacts, ...]
    participants: tuple[str, ...]
    trials: int
    runs: tuple[Run, ...]
    statistics_seed: int = 0
    created: str = ""
    seconds: float = 0.0
    skipped: tuple[str, ...] = ()
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    # ---- statistics --------------------------------------------------------------------------------------------

    @cached_property
    def _sorted(self) -> dict[tuple[str, str], list[Run]]:
        groups: dict[tuple[str, str], list[Run]] = {}
        for run in sorted(self.runs, key=lambda run: run.seed):
            groups.setdefault((run.landscape, run.participant), []).append(run)
        return groups

    def runs_of(self, landscape: str, participant: str) -> tuple[Run, ...]:
        """The runs of one participant on one landscape, by seed."""
        return tuple(self._sorted.get((landscape, participant), ()))

    def fractions(self, landscape: str, participant: str) -> Fractions:
        """float[seeds, trials]: fraction of the optimum. Raises InvalidInput for a pair that did not run."""
        runs = self.runs_of(landscape, participant)
        facts = {facts.name: facts for facts in self.landscapes}.get(landscape)
        if not runs or facts is None:
            raise InvalidInput(f"no run of {participant!r} on {landscape!r} in this race")
        return fractions(runs, facts)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """Best-so-far curves of every participant, by scope: each landscape, and all landscapes of a device
        together."""
        return tuple(
            curve_of(scope, participant, np.concatenate([self.fractions(name, participant) for name in names]))
            for scope, names in self.scopes.items()
            for participant in self.participants
            if all(self.runs_of(name, participant) for name in names)
        )

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """Area, fractions, trials to targets, diversity and model quality for every landscape and participant."""
        return tuple(standing_of(*key, self.runs_of(*key), self.fractions(*key)) for key in self._pairs())

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return (
            (facts.name, name)
            for facts in self.landscapes
            for name in self.participants
            if self.runs_of(facts.name, name)
        )

    @cached_property
    def scopes(self) -> dict[str, tuple[str, ...]]:
        """Landscapes by scope: each alone, then by device if several landscapes share one."""
        found: dict[str, tuple[str, ...]] = {facts.name: (facts.name,) for facts in self.landscapes}
        for device in dict.fromkeys(facts.device for facts in self.landscapes):
            names = tuple(facts.name for facts in self.landscapes if facts.device == device)
            if len(names) > 1 and device != "unknown":
                found[device] = names
        return found

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every pair of participants, on every landscape and pooled over those of each device."""
        return tuple(c for scope in self.scopes for c in self.compare_in(scope))

    def compare_in(self, scope: str, margin: float = MARGIN) -> tuple[Comparison, ...]:
        """Every pair of participants that ran on all landscapes of ``scope``, paired by seed."""
        if scope not in (known := list(self.scopes)):
            raise InvalidInput(f"unknown scope {scope!r}: {did_you_mean(scope, known)}")
        names = self.scopes[scope]
        here = [p for p in self.participants if all(self.runs_of(name, p) for name in names)]
        pairs = list(combinations(here, 2))
        made = [self._duel(a, b, scope, names, None, margin, len(pairs)) for a, b in pairs]
        return tuple(comparison for comparison in made if comparison is not None)

    def duel(
        self,
        a: str,
        b: str,
        landscapes: Sequence[str] = (),
        scope: str = "",
        at: int | None = None,
        margin: float = MARGIN,
        pairs: int = 1,
    ) -> Comparison:
        """``a`` against ``b``, paired by seed, pooled over ``landscapes`` (all by default; ``scope`` names them).

        Compared by area or, with ``at``, by the fraction of the optimum after that many trials. ``pairs`` is the number
        of comparisons made in all. Raises InvalidInput for a pair without common runs, or a trial outside the race.
        """
        names = tuple(several(landscapes, "landscapes")) or tuple(facts.name for facts in self.landscapes)
        if at is not None and not 1 <= whole(at, "at") <= self.trials:
            raise InvalidInput(f"at={at}: the race has trials 1 to {self.trials}")
        made = self._duel(a, b, scope or (names[0] if len(names) == 1 else "the race"), names, at, margin, pairs)
        if made is None:
            raise InvalidInput(f"{a!r} and {b!r} share no seed on {', '.join(names)}")
        return made

    def _duel(
        self, a: str, b: str, scope: str, names: Sequence[str], at: int | None, margin: float, pairs: int
    ) -> Comparison | None:
        values = [self._paired(name, a, b, at) for name in names]
        if not all(len(left) for left, _ in values):
            return None
        return compare(a, b, scope, at or self.trials, values, pairs, self.statistics_seed, margin,
                       "area" if at is None else "fraction")  # fmt: skip

    def _paired(self, landscape: str, a: str, b: str, at: int | None) -> tuple[Fractions, Fractions]:
        """Areas (or fractions after ``at`` trials) of both on the seeds they share."""
        rows = {}
        for p in (a, b):
            curves = self.fractions(landscape, p)
            values = curves.mean(axis=1) if at is None else curves[:, at - 1]
            rows[p] = dict(zip([run.seed for run in self.runs_of(landscape, p)], values, strict=True))
        seeds = sorted(set(rows[a]) & set(rows[b]))
        return np.array([rows[a][seed] for seed in seeds]), np.array([rows[b][seed] for seed in seeds])

    @property
    def verdict(self) -> str:
        """The conclusions, one sentence for each scope; devices are not ranked together."""
        lines = []
        for scope, names in self.scopes.items():
            here = [p for p in self.participants if all(self.runs_of(name, p) for name in names)]
            comparisons = [c for c in self.comparisons if c.scope == scope]
            what = scope if len(names) == 1 else f"{scope}, {len(names)} landscapes together"
            lines.append(f"{what}: {in_words(comparisons, here)}.")
        devices = list(dict.fromkeys(facts.device for facts in self.landscapes))
        if len(devices) > 1:
            lines.append(f"Results of unlike GPUs are not ranked together: {'; '.join(devices)}.")
        return "\n".join(lines)

    # ---- showing -----------------------------------------------------------------------------------------------

    def title(self) -> str:
        """What was run."""
        seeds = max((s.runs for s in self.standings), default=0)
        return (
            f"Race of {len(self.participants)} participants on {len(self.landscapes)} "
            f"landscape{'s' * (len(self.landscapes) != 1)}, {self.trials} trials, {seeds} seeds"
        )

    def table(self) -> Table:
        """One row per landscape and participant."""
        marks = list(self.standings[0].fractions) if self.standings else []
        targets = [f"to {round(100 * reach.target)}%" for reach in self.standings[0].reach] if self.standings else []
        columns = ("landscape", "participant", "area", "se", *(f"@{t}" for t in marks), *targets, "optimum",
                   "distinct", "spearman")  # fmt: skip
        rows = tuple(
            (
                s.landscape, s.participant, *_fixed(s.area, s.area_error, *(s.fractions[t] for t in marks)),
                *(_trials(reach.median, reach.share, self.trials) for reach in s.reach),
                f"{100 * s.optimum_found:.0f}%", *(_fixed(s.hamming, s.spearman)),
            )
            for s in self.standings
        )  # fmt: skip
        return Table(columns, rows)

    def text(self) -> str:
        """Table, comparisons and verdict for a terminal."""
        notes = (
            "area: mean fraction of the optimum over the trials; @t: mean fraction after t trials; to p%: median\n"
            "trials to p% of the optimum and the share of runs that got there; optimum: runs that found it;\n"
            "distinct: mean share of knobs in which two of a batch differ; spearman: the model's ranks against those\n"
            "measured next. An interval on one landscape speaks for other seeds there; a pooled one also for other\n"
            "landscapes"
        )
        compared = "\n".join(f"  {comparison.verdict}" for comparison in self.comparisons)
        skipped = "".join(f"\nleft out: {line}" for line in self.skipped)
        parts = [self.title() + skipped, columns_text(self.table()), notes, compared, self.verdict]
        return "\n\n".join(part for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """The statistics, ready for JSON. The runs themselves are in the file that :meth:`save` writes."""
        return {
            "trials": self.trials, "participants": list(self.participants), "runs": len(self.runs),
            "landscapes": [asdict(facts) for facts in self.landscapes], "standings": plain(self.standings),
            "curves": plain(self.curves),
            "comparisons": [{**plain(c), "verdict": c.verdict} for c in self.comparisons],
            "verdict": self.verdict, "skipped": list(self.skipped), "statistics_seed": self.statistics_seed,
            "created": self.created, "seconds": self.seconds, "command_line": self.command,
            "versions": dict(self.versions),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Race({', '.join(self.participants)}; {', '.join(facts.name for facts in self.landscapes)})"

    # ---- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write every run, gzip-compressed JSON; the name must end in .json.gz. Raises InvalidInput, NotWritten."""
        target = file_path(path, "race file")
        if not target.name.endswith(SUFFIX):
            raise InvalidInput(f"race file {target}: the name must end in {SUFFIX}")
        data = {
            "format": FORMAT, "schema": SCHEMA, "created": self.created or now(), "command": self.command,
            "versions": dict(self.versions),
            "trials": self.trials, "participants": list(self.participants), "statistics_seed": self.statistics_seed,
            "seconds": self.seconds, "skipped": list(self.skipped),
            "landscapes": [asdict(facts) for facts in self.landscapes], "runs": [run.to_dict() for run in self.runs],
        }  # fmt: skip
        write_file(target, gzip.compress((to_line(data) + "\n").encode(), mtime=0), "race file")
        return target

    @classmethod
    def join(cls, races: Sequence[Race]) -> Race:
        """Races on different landscapes joined into one. Raises InvalidInput for different numbers of trials, or for a
        landscape that is in two of them."""
        races = several(races, "races")
        if not all(isinstance(race, Race) for race in races):
            raise InvalidInput("races are joined as Race objects; Race.load(FILE) reads one")
        names = [facts.name for race in races for facts in race.landscapes]
        if not races or len({race.trials for race in races}) > 1 or len(set(names)) < len(names):
            raise InvalidInput("joined races have the same number of trials, and each landscape is in one only")
        first = races[0]
        return cls(
            tuple(facts for race in races for facts in race.landscapes),
            tuple(dict.fromkeys(name for race in races for name in race.participants)), first.trials,
            tuple(run for race in races for run in race.runs), first.statistics_seed,
            max(race.created for race in races), round(sum(race.seconds for race in races), 3),
            tuple(dict.fromkeys(line for race in races for line in race.skipped)),
            "; ".join(dict.fromkeys(race.command for race in races)), dict(first.versions),
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Race:
        """The race in a file. Raises InvalidInput (no such file), BrokenRecord (damaged, or not a race)."""
        source = file_path(path, "race file")
        data: Any = json_file(source, "race file")
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("schema") != SCHEMA:
            raise BrokenRecord(f"{path}: not a file of format {FORMAT}, schema {SCHEMA}")
        shape: RaceShape = typed(data, RaceShape, str(path))
        if shape.trials * len(shape.runs) > MOST_POINTS:
            raise BrokenRecord(f"{path}: more than {MOST_POINTS:,} trials in all, which no race has; fetch it again")
        made = cls(
            shape.landscapes, shape.participants, shape.trials,
            tuple(_run(run, shape.trials, source) for run in shape.runs),
            shape.statistics_seed, shape.created, shape.seconds, shape.skipped, shape.command, shape.versions,
        )  # fmt: skip
        names = {facts.name for facts in made.landscapes}
        if len(names) < len(made.landscapes) or len(set(made.participants)) < len(made.participants):
            raise BrokenRecord(f"{path}: a landscape or a participant occurs twice; the file is damaged")
        for run in made.runs:
            if run.landscape not in names or len(run.best_microseconds) != made.trials:
                raise BrokenRecord(f"{path}: run of {run.participant}, seed {run.seed}, does not fit the race")
        return made


def _run(data: Mapping[str, Any], trials: int, source: Path) -> Run:
    """A run of a race file. Raises BrokenRecord; a curve is expanded only when it is as long as the others."""
    if data.get("trials") != trials:
        who = f"run of {data.get('participant')!s:.80}, seed {data.get('seed')!s:.40}"
        raise BrokenRecord(f"{source}: {who}, does not fit the race")
    return Run.from_dict(data)


def _fixed(*values: float | None) -> tuple[str, ...]:
    return tuple("-" if value is None else f"{value:.3f}" for value in values)


def _trials(median: float | None, share: float, trials: int) -> str:
    return f"{f'>{trials}' if median is None else f'{median:.0f}'} ({100 * share:.0f}%)"

"""A study while it runs, as plain columns: outcomes, best so far, predicted against measured, knob values, the GPU.

The monitor view and the notebooks draw these records; all statistics in them are computed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subbyte.records.result import Failed, Measured
from subbyte.technique.record import InfoRecord, Table
from subbyte.tune.record import StudyRecord, Trial, best_curve
from subbyte.tune.search.kept import Selection, SelectionLog
from subbyte.tune.search.quality import Proposal, spearman
from subbyte.tune.strategy import STRATEGIES
from subbyte.tune.study import Study

READINGS = (("sm_mhz", "SM clock", "MHz"), ("power_watts", "power", "W"), ("temperature_c", "temperature", "\u00b0C"))
"""Which telemetry of the GPU is shown: name in the record, label, unit."""


@dataclass(frozen=True)
class Reading:
    """One of the GPU's readings for each trial, None where it was not taken; with its minimum and maximum."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    low: float
    high: float


@dataclass(frozen=True)
class KnobUse:
    """How often each value of a knob was tried, and which share of its mutants the diversity rule kept (None where
    there is no such share: another strategy, or a value that no mutant had)."""

    name: str
    values: tuple[str, ...]
    tried: tuple[int, ...]
    kept: tuple[float | None, ...]


@dataclass(frozen=True)
class ModelFit:
    """How good one fit of the cost model was: for ``trials`` that were predicted and then measured, the rank
    correlation of score and speed (None for fewer than two, or when all are equal)."""

    fit: int
    trials: int
    spearman: float | None


@dataclass(frozen=True)
class StudyState(InfoRecord):
    """A study as it is now, one entry per result, in the order in which results arrived.

    ``microseconds`` is None for a failure, whose kind is in ``failures``. ``origins`` say why a configuration was
    proposed (see :class:`~subbyte.tune.search.quality.Proposal`), empty for strategies that give no reason. ``fits`` is
    the number of the model fit that predicted it (0: none), ``predicted`` the rank of its score among those of this
    fit, from 0 (worst) to 1 (best); ``speeds`` the measured speed relative to the best of the study, 0 for a failure.
    ``digits`` hold the position of each knob's value, one character (base 36) per knob.
    """

    workload: str
    strategy: str
    seed: int
    numbers: tuple[int, ...]
    indices: tuple[int, ...]
    digits: tuple[str, ...]
    microseconds: tuple[float | None, ...]
    best_microseconds: tuple[float | None, ...]
    failures: tuple[str, ...]
    origins: tuple[str, ...]
    fits: tuple[int, ...]
    predicted: tuple[float | None, ...]
    speeds: tuple[float, ...]
    outcomes: dict[str, int]
    knobs: tuple[KnobUse, ...]
    models: tuple[ModelFit, ...]
    selection: dict[str, float | int] | None
    readings: tuple[Reading, ...]
    throttled: int

    @property
    def covered(self) -> tuple[int, int]:
        """How many of all knob values were tried at least once, and how many there are."""
        tried = [count for knob in self.knobs for count in knob.tried]
        return sum(count > 0 for count in tried), len(tried)

    @property
    def judged(self) -> tuple[ModelFit, ...]:
        """The fits with a known rank correlation."""
        return tuple(model for model in self.models if model.spearman is not None)

    @property
    def typical_correlation(self) -> float | None:
        """The median rank correlation of those fits; None if there are none."""
        return float(np.median([model.spearman for model in self.judged])) if self.judged else None

    @property
    def best_number(self) -> int | None:
        """Number of the first trial that was as fast as the best."""
        best = self.best_microseconds[-1] if self.best_microseconds else None
        return None if best is None else self.numbers[self.microseconds.index(best)]

    def title(self) -> str:
        """Workload, strategy and seed."""
        return f"{self.workload}, {self.strategy}, seed {self.seed}"

    def table(self) -> Table:
        """One row per trial."""
        columns = ("trial", "index", "microseconds", "best", "failure", "origin", "fit", "predicted", "speed")
        return Table(columns, tuple(zip(
            self.numbers, self.indices, self.microseconds, self.best_microseconds, self.failures, self.origins,
            self.fits, self.predicted, self.speeds, strict=True,
        )))  # fmt: skip


def study_state(source: Study | StudyRecord) -> StudyState:
    """The current state of a study, callable from any thread; or of a record (without origins and predictions)."""
    trials = source.trials
    header = source.record.header if isinstance(source, Study) else source.header
    strategy = source.strategy if isinstance(source, Study) else None
    proposals: Mapping[int, Proposal] = getattr(strategy, "proposals", {})
    found = [proposals.get(trial.index) for trial in trials]
    curve = best_curve(trials)
    best = curve.best_microseconds[-1] if trials else None
    speeds = [best / trial.microseconds if best and trial.microseconds else 0.0 for trial in trials]
    predicted, models = _predictions(found, speeds)
    plans = _plans(strategy)
    knobs = header["space"]["knobs"]
    places = _digits([trial.index for trial in trials], [len(values) for values in knobs.values()])
    label = source.space.workload.label if isinstance(source, Study) else source.workload.label
    return StudyState(
        label, _strategy(header["strategy"]), int(header["seed"]),
        curve.numbers, tuple(trial.index for trial in trials), tuple("".join(map(_character, row)) for row in places),
        _rounded(curve.microseconds, 4), _rounded(curve.best_microseconds, 4), curve.failures,
        tuple(one.origin if one else "" for one in found),
        tuple(one.fit if one and one.score is not None else 0 for one in found),
        _rounded(predicted, 3), tuple(round(speed, 3) for speed in speeds),
        dict(Counter(kind or "measured" for kind in curve.failures)),
        _knob_uses(knobs, places, plans[-1:]), models, _in_short(plans), _readings(trials),
        sum(bool(_clocks(trial).get("throttle")) for trial in trials),
    )  # fmt: skip


def _strategy(described: Mapping[str, Any]) -> str:
    """Name and the options that differ from their defaults."""
    known: Mapping[str, Any] = getattr(STRATEGIES.get(described["name"]), "OPTIONS", {})
    unusual = [f":{k}={v}" for k, v in described["options"].items() if k not in known or known[k].default != v]
    return str(described["name"]) + "".join(unusual)


def _predictions(
    found: Sequence[Proposal | None], speeds: Sequence[float]
) -> tuple[list[float | None], tuple[ModelFit, ...]]:
    """The rank of each score among those of its fit, and the rank correlation of every fit."""
    groups: dict[int, list[int]] = {}
    for place, one in enumerate(found):
        if one is not None and one.score is not None:
            groups.setdefault(one.fit, []).append(place)
    shares: list[float | None] = [None] * len(found)
    models = []
    for fit, members in sorted(groups.items()):
        scores = np.array([one.score for place in members if (one := found[place]) is not None], dtype=np.float64)
        equal = (scores[:, None] == scores[None, :]).sum(axis=1) - 1
        below = (scores[:, None] > scores[None, :]).sum(axis=1) + 0.5 * equal
        for place, rank in zip(members, below.tolist(), strict=True):
            shares[place] = rank / (len(members) - 1) if len(members) > 1 else 0.5
        correlation = spearman(scores, [speeds[place] for place in members])
        models.append(ModelFit(fit, len(members), None if correlation is None else round(correlation, 3)))
    return shares, tuple(models)


def _plans(strategy: Any) -> tuple[Selection, ...]:
    log = getattr(strategy, "selection", None)
    return log.plans if isinstance(log, SelectionLog) else ()


def _in_short(plans: Sequence[Selection]) -> dict[str, float | int] | None:
    """The latest selection without its lists; None if nothing was selected."""
    if not plans:
        return None
    last = plans[-1]
    return {
        "results": last.results, "mutants": last.mutants, "kept": last.kept, "copies": last.copies,
        "copies_kept": last.copies_kept, "hamming": round(last.hamming, 4), "hamming_kept": round(last.hamming_kept, 4),
    }  # fmt: skip


def _knob_uses(
    knobs: Mapping[str, Sequence[Any]], places: Sequence[Sequence[int]], plans: Sequence[Selection]
) -> tuple[KnobUse, ...]:
    uses = []
    for k, (name, values) in enumerate(knobs.items()):
        tried = Counter(row[k] for row in places)
        kept: list[float | None] = [None] * len(values)
        for plan in plans:
            both = zip(plan.kept_values[k], plan.proposed_values[k], strict=True)
            kept = [round(some / of, 3) if of else None for some, of in both]
        counts = tuple(tried[place] for place in range(len(values)))
        uses.append(KnobUse(name, tuple(str(value) for value in values), counts, tuple(kept)))
    return tuple(uses)


def _digits(indices: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Positions of the knob values of each index; the first knob varies fastest."""
    weights = np.cumprod([1, *sizes[:-1]]).astype(np.int64)
    wide = np.asarray(indices, dtype=np.int64)[:, None] // weights % np.asarray(sizes, dtype=np.int64)
    rows: list[list[int]] = wide.tolist()
    return rows


def _character(digit: int) -> str:
    return "0123456789abcdefghijklmnopqrstuvwxyz"[min(digit, 35)]


def _rounded(values: Sequence[float | None], digits: int) -> tuple[float | None, ...]:
    return tuple(None if value is None else round(value, digits) for value in values)


def _clocks(trial: Trial) -> Mapping[str, Any]:
    """The telemetry of a trial: what was read after the measurement, else before it; empty if nothing was read."""
    clocks = trial.result.clocks if isinstance(trial.result, Measured) else {}
    read = clocks.get("after") or clocks.get("before") or {}
    return read if isinstance(read, Mapping) else {}


def _readings(trials: Sequence[Trial]) -> tuple[Reading, ...]:
    """The readings that at least one trial has."""
    rows = [_clocks(trial) for trial in trials]
    made = []
    for key, name, unit in READINGS:
        values = tuple(None if row.get(key) is None else round(float(row[key]), 1) for row in rows)
        known = [value for value in values if value is not None]
        if known:
            made.append(Reading(name, unit, values, min(known), max(known)))
    return tuple(made)


def failure_reason(trial: Trial) -> str:
    """Why a trial has no time; empty for one that has."""
    return f"{trial.result.kind}: {trial.result.reason}" if isinstance(trial.result, Failed) else ""

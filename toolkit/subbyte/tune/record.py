"""The result of a study: its trials, the best one, the best-so-far curve. Plain data, live or read from a log."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from subbyte.arguments import checked
from subbyte.charts import Charted
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.checked import several
from subbyte.records.describe import workload_from_dict
from subbyte.records.log import Entry, read_contents
from subbyte.records.result import Failed, Measured, Result
from subbyte.records.table import frame, html_table, in_tops
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Trial:
    """One configuration of a study. ``number`` counts asks and tells from 0, ``index`` is its index in the space.

    ``result`` is None until it is told. ``ask`` is (ask number, ask size, results told before it), None for a
    result that was told without being asked for. ``started`` and ``finished`` are ISO times (UTC).
    """

    number: int
    index: int
    config: Configuration
    result: Result | None = None
    ask: tuple[int, int, int] | None = None
    started: str = ""
    finished: str = ""

    @property
    def microseconds(self) -> float | None:
        """The measured time; None when it failed or is still open."""
        return self.result.microseconds if isinstance(self.result, Measured) else None

    @classmethod
    def from_entry(cls, entry: Entry) -> Trial:
        """The trial stored in a log line."""
        return cls(entry.trial, entry.index, entry.config, entry.result, entry.ask, entry.started, entry.finished)


@dataclass(frozen=True)
class BestCurve:
    """Best time so far after each trial, in the order told. Microseconds; None for a failure, or before the first
    success."""

    numbers: tuple[int, ...]
    microseconds: tuple[float | None, ...]
    best_microseconds: tuple[float | None, ...]
    failures: tuple[str, ...]
    """Failure kind of each trial, "" for a success."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {name: list(values) for name, values in asdict(self).items()}

    def to_frame(self) -> pandas.DataFrame:
        """One row per trial."""
        rows = [dict(zip(self.to_dict(), row, strict=True)) for row in zip(*self.to_dict().values(), strict=True)]
        return frame(rows)


@checked
def best_curve(trials: tuple[Trial, ...]) -> BestCurve:
    """The best-so-far curve of ``trials``. Raises InvalidInput for anything but trials."""
    if not all(isinstance(trial, Trial) for trial in several(trials, "trials")):
        raise InvalidInput(f"trials {trials!r}: expected Trial objects, such as study.trials")
    best: float | None = None
    running: list[float | None] = []
    for trial in trials:
        time = trial.microseconds
        if time is not None and (best is None or time < best):
            best = time
        running.append(best)
    return BestCurve(
        tuple(trial.number for trial in trials), tuple(trial.microseconds for trial in trials), tuple(running),
        tuple(trial.result.kind if isinstance(trial.result, Failed) else "" for trial in trials),
    )  # fmt: skip


def best_of(trials: tuple[Trial, ...]) -> Trial | None:
    """The fastest trial (the earliest of equals), or None."""
    timed = [(trial.microseconds, place) for place, trial in enumerate(trials) if trial.microseconds is not None]
    return trials[min(timed)[1]] if timed else None


@dataclass(frozen=True, eq=False)
class StudyRecord(Charted):
    """A finished, stopped or crashed study. ``header`` says what was tuned and how; ``trials`` are in the order told.

    ``ended`` is ``trials`` (all that were asked for), ``exhausted`` (no configuration left), ``stopped``,
    ``interrupted``, or empty for a record read from a file. ``notice`` says what was dropped while reading.
    """

    header: Mapping[str, Any]
    trials: tuple[Trial, ...]
    ended: str = ""
    notice: str = ""
    path: str = field(default="")

    @cached_property
    def workload(self) -> ConvWorkload:
        """The tuned convolution."""
        return workload_from_dict(self.header["workload"])

    @property
    def arch(self) -> str:
        """Compilation target."""
        return str(self.header["space"]["arch"])

    @cached_property
    def best(self) -> Trial | None:
        """The fastest trial, or None when nothing succeeded."""
        return best_of(self.trials)

    @property
    def best_config(self) -> Configuration:
        """The fastest configuration. Raises InvalidInput when nothing succeeded."""
        if self.best is None:
            failures = ", ".join(f"{count} {kind}" for kind, count in self.failures.items()) or "no trials"
            raise InvalidInput(f"no trial of {self.workload.label} succeeded ({failures}); run more trials")
        return self.best.config

    @property
    def best_microseconds(self) -> float | None:
        """Time of the fastest trial in microseconds."""
        return self.best.microseconds if self.best else None

    @property
    def best_tops(self) -> float | None:
        """10^12 operations per second of the fastest trial."""
        return in_tops(self.workload, self.best_microseconds) if self.best_microseconds else None

    @property
    def failures(self) -> dict[str, int]:
        """Failed trials by kind."""
        return dict(Counter(trial.result.kind for trial in self.trials if isinstance(trial.result, Failed)))

    @cached_property
    def curve(self) -> BestCurve:
        """The best-so-far curve."""
        return best_curve(self.trials)

    def build_best(self) -> Any:
        """The kernel of the fastest configuration, built for the recorded architecture (:func:`subbyte.build`)."""
        from subbyte.kernel import build

        return build(self.workload, self.best_config, self.arch)

    def summary(self) -> dict[str, Any]:
        """The flat object that the report and the command line print."""
        strategy = self.header["strategy"]
        return {
            "workload": self.workload.label, "spec": self.workload.spec, "arch": self.arch,
            "space": self.header["space"]["kind"], "strategy": strategy["name"], "options": dict(strategy["options"]),
            "seed": self.header["seed"], "device": (self.header["device"] or {}).get("name"),
            "trials": len(self.trials), "failed": self.failures, "ended": self.ended,
            "best_trial": self.best.number if self.best else None,
            "best_index": self.best.index if self.best else None,
            "best_microseconds": self.best_microseconds, "best_tops": self.best_tops,
            "best_config": self.best.config.to_dict() if self.best else None, "log": self.path or None,
        }  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per trial: number, index, microseconds, best so far, failure, reason, then the configuration."""
        return [
            {
                "trial": trial.number, "index": trial.index, "microseconds": trial.microseconds,
                "best_microseconds": best,
                "failure": trial.result.kind if isinstance(trial.result, Failed) else "",
                "reason": trial.result.reason if isinstance(trial.result, Failed) else "",
                "asked": trial.ask is not None, "started": trial.started, "finished": trial.finished,
                **trial.config.to_dict(),
            }
            for trial, best in zip(self.trials, self.curve.best_microseconds, strict=True)
        ]  # fmt: skip

    def to_frame(self) -> pandas.DataFrame:
        """``rows()`` as a pandas table indexed by trial number. Raises MissingDependency without pandas."""
        return frame(self.rows(), index="trial")

    def __repr__(self) -> str:
        best = f"best {self.best_microseconds:.2f} us" if self.best_microseconds else "no success"
        return f"StudyRecord({self.workload.label!r}, {len(self.trials)} trials, {best})"

    def _repr_html_(self) -> str:
        return html_table([self.summary()], f"Study of {self.workload.label}")


def read_log(path: str | os.PathLike[str]) -> StudyRecord:
    """The study stored in a record log. A line cut off by a crash is dropped, with a warning.

    Raises InvalidInput (no such file, or it is empty), BrokenRecord (damaged, with the line number).
    """
    contents = read_contents(path)
    if not contents.header:
        raise BrokenRecord(f"{path}, line 1: no header; nothing was recorded, delete the file and start again")
    if contents.notice:
        warnings.warn(contents.notice, stacklevel=2)
    trials = tuple(Trial.from_entry(entry) for entry in contents.entries)
    return StudyRecord(contents.header, trials, notice=contents.notice, path=str(path))

"""What ``tune`` returns: one record per workload and, for a network, the totals."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.former import FormerFields
from subbyte.html import join
from subbyte.records.table import frame, html_table, left_out
from subbyte.spaces.configuration import Configuration
from subbyte.tune.record import StudyRecord
from subbyte.tune.remeasurement import Remeasurement

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class TuningReport(FormerFields, former={"finals": "remeasurements"}):
    """One record per tuned workload. ``optima`` holds the landscape's best time in microseconds by spec, if known;
    ``skipped`` holds by label why a workload was not tuned; ``remeasurements`` are the top-k re-measurements by
    label, if there were any.
    """

    records: tuple[StudyRecord, ...]
    optima: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    remeasurements: Mapping[str, Remeasurement] = field(default_factory=dict)

    @property
    def best(self) -> dict[str, Configuration]:
        """Fastest configuration by workload label (of the re-measured ones, if there were any); workloads without any
        success are left out."""
        found = {}
        for record in self.records:
            again = self.remeasurements.get(record.workload.label)
            config = (again.winner_config if again else None) or (record.best.config if record.best else None)
            if config is not None:
                found[record.workload.label] = config
        return found

    @property
    def interrupted(self) -> bool:
        """True when Ctrl-C ended the tuning early."""
        return any(record.ended == "interrupted" for record in self.records)

    def __repr__(self) -> str:
        left_out = f", {len(self.skipped)} not tuned" if self.skipped else ""
        return f"{type(self).__name__}({', '.join(map(repr, self.records))}{left_out})"

    def rows(self) -> list[dict[str, Any]]:
        """One summary per workload; ``fraction_of_optimum`` is 1.0 for the landscape's best, None if unknown;
        ``finals`` is None if nothing was re-measured."""
        rows = []
        for record in self.records:
            optimum, found = self.optima.get(record.workload.spec), record.best_microseconds
            fraction = optimum / found if optimum and found else None
            again = self.remeasurements.get(record.workload.label)
            rows.append(
                {
                    **record.summary(), "optimum_microseconds": optimum, "fraction_of_optimum": fraction,
                    "finals": again.to_dict() if again else None,
                }
            )  # fmt: skip
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"workloads": self.rows(), "skipped": dict(self.skipped), "interrupted": self.interrupted}

    def to_frame(self) -> pandas.DataFrame:
        """``rows()`` as a pandas table indexed by workload. Raises MissingDependency without pandas."""
        return frame(self.rows(), index="workload")

    def to_html(self) -> str:
        """A self-contained HTML page with every curve, configuration, failure and device; it loads nothing from
        elsewhere."""
        from subbyte.tune.report import html_page

        return html_page(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write :meth:`to_html` to a file. Raises InvalidInput when it cannot be written."""
        from subbyte.tune.report import write_page

        return write_page(self.to_html(), path)

    def _repr_html_(self) -> str:
        shown = ("workload", "trials", "ended", "best_microseconds", "best_tops", "fraction_of_optimum", "device")
        rows = [{name: row[name] for name in shown} for row in self.rows()]
        return join(html_table(rows, "Tuning"), left_out(self.skipped))


@dataclass(frozen=True, eq=False, repr=False)
class NetworkReport(TuningReport):
    """A tuned network. ``counts`` holds by label how often a layer occurs; ``grants`` lists the portions of trials in
    order: (label, trials, expected gain in microseconds per trial, or None for first portions). ``ended`` is ``trials``
    (the budget is spent), ``exhausted``, ``stopped`` or ``interrupted``."""

    network: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    grants: tuple[tuple[str, int, float | None], ...] = ()
    trials: int | None = None
    ended: str = ""

    @property
    def interrupted(self) -> bool:
        """True when Ctrl-C ended the tuning early."""
        return self.ended == "interrupted"

    @property
    def microseconds(self) -> float | None:
        """Total time of all tuned layers, each multiplied by its count; None while one has no working configuration."""
        times = [(record.best_microseconds, self.counts[record.workload.label]) for record in self.records]
        if not times or any(time is None for time, _ in times):
            return None
        return sum((time or 0.0) * count for time, count in times)

    def rows(self) -> list[dict[str, Any]]:
        """As for a list of workloads, with ``count`` and ``share`` (of the network's time)."""
        whole = self.microseconds
        rows = []
        for row in super().rows():
            count, best = self.counts[row["workload"]], row["best_microseconds"]
            share = count * best / whole if whole and best else None
            rows.append({"workload": row["workload"], "count": count, "share": share, **row})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        grants = [
            {"workload": label, "trials": n, "expected_gain": gain if gain is not None and isfinite(gain) else None}
            for label, n, gain in self.grants
        ]
        return {
            **super().to_dict(), "network": self.network, "network_microseconds": self.microseconds,
            "budget": self.trials, "ended": self.ended, "grants": grants,
        }  # fmt: skip

    def to_html(self) -> str:
        """A self-contained HTML page like that for a list of workloads, and which layers got the trials."""
        from subbyte.tune.report import html_page

        return html_page(self, self)

    def _repr_html_(self) -> str:
        shown = ("workload", "count", "trials", "best_microseconds", "best_tops", "share", "fraction_of_optimum")
        rows = [{name: row[name] for name in shown} for row in self.rows()]
        total = f"{self.microseconds:.1f} us" if self.microseconds else "not every layer has a time"
        return join(html_table(rows, f"{self.network}: {total}"), left_out(self.skipped))

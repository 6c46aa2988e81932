"""Table 1 of Choi et al. 2022 on another GPU: tuned baselines, the whole space, a search with 500 trials.

The paper's columns were measured on a T4, where int4 is native; its baseline is TVM's own HWNC schedule. Here there are
three baselines, all tuned with the same tuner and number of trials: that schedule with int4 values (``hwnc_s4``, which
Hopper only emulates), the same with bytes (``hwnc_s8``, its fair modern equivalent), and our kernel with all techniques
off (``all_off``). The baselines with TVM's schedule output int32 sums and read input that was padded beforehand; ours
include requantization and padding.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subbyte.analysis.retuned import Retuned, read_retuned
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.reading import json_file
from subbyte.technique.record import InfoRecord, Table, table_html
from subbyte.workload import workload as workload_named

STAGES = (2, 3, 4, 5)
PAPER = {
    2: {"baseline": 196.06, "exhaustive": 50.78, "searched": 50.98},
    3: {"baseline": 180.96, "exhaustive": 51.42, "searched": 50.46},
    4: {"baseline": 203.62, "exhaustive": 57.18, "searched": 55.58},
    5: {"baseline": 198.62, "exhaustive": 86.37, "searched": 70.98},
}
"""Microseconds of the paper's Table 1, by stage."""
HWNC = "subbyte-hwnc-finals"
BASELINES = ("hwnc_s4", "hwnc_s8", "all_off")
_ALL_OFF = "sharing none, packing off, nhwc"
_ALL_ON = "sharing full, packing on, nhwcnc"


@dataclass(frozen=True)
class StageRow:
    """One stage. ``paper`` holds the T4's microseconds; the others are microseconds here, None if not measured.

    ``searched`` is the best of a search with all techniques on, ``exhaustive`` the best of the whole space, both
    measured in one process, interleaved with ``all_off``. ``hwnc_trials`` is the number of trials in the searches of
    TVM's schedule, by operand (s4, s8).
    """

    workload: str
    stage: int
    operations: int
    paper: dict[str, float]
    hwnc_s4: float | None
    hwnc_s8: float | None
    all_off: float
    exhaustive: float | None
    searched: float
    hwnc_trials: dict[str, int] = field(default_factory=dict)

    def speed_up(self, baseline: str) -> float | None:
        """``baseline`` (hwnc_s4, hwnc_s8, all_off) over ``searched``; None if it was not measured."""
        time = getattr(self, baseline)
        return None if time is None else float(time) / self.searched

    @property
    def paper_speed_up(self) -> float:
        """The paper's baseline over its searched time."""
        return self.paper["baseline"] / self.paper["searched"]

    @property
    def tops(self) -> float:
        """Speed of the searched kernel in 10^12 operations per second."""
        return self.operations / self.searched / 1e6


@dataclass(frozen=True)
class TableOne(InfoRecord):
    """The table: one row for each stage, all searches by ``strategy`` with ``trials`` trials on ``device``."""

    device: str
    strategy: str
    trials: int
    rows: tuple[StageRow, ...]

    def title(self) -> str:
        """One line that names what the record shows."""
        return (
            f"Table 1 on {self.device}: us of the 3x3 stages of ResNet50 at batch 8, searches by {self.strategy} with "
            f"{self.trials} trials"
        )

    def table(self) -> Table:
        """One row for each stage; the paper's T4 times and speed-up at the end."""
        columns = (
            "stage", "HWNC s4", "HWNC s8", "all off", "exhaustive", "searched", "over HWNC s4", "over HWNC s8",
            "over all off", "T4 baseline", "T4 exhaustive", "T4 searched", "T4 speed-up",
        )  # fmt: skip
        return Table(columns, tuple(_cells(row) for row in self.rows))

    def _repr_html_(self) -> str:
        """The transposed table, with stages as columns: four columns fit into a narrow notebook, thirteen do not."""
        shown = self.table()
        stages = tuple(f"stage {row.stage}" for row in self.rows)
        turned = zip(shown.columns[1:], *(row[1:] for row in shown.rows), strict=True)
        return table_html(self.title(), Table(("", *stages), tuple(turned)))


def _cells(row: StageRow) -> tuple[Any, ...]:
    times = (row.hwnc_s4, row.hwnc_s8, row.all_off, row.exhaustive, row.searched)
    paper = tuple(row.paper[name] for name in ("baseline", "exhaustive", "searched"))
    return row.stage, *times, *(row.speed_up(name) for name in BASELINES), *paper, row.paper_speed_up


Hwnc = Mapping[tuple[int, str], tuple[float, int]]
"""Microseconds and number of trials of TVM's schedule, by stage and operand (s4, s8)."""


def table_one(retuned: Mapping[int, Retuned], hwnc: Hwnc | None = None) -> TableOne:
    """The table from the retuned optima by stage and the searches of TVM's schedule.

    Raises InvalidInput when there is no stage, or the stages were searched in different ways.
    """
    if not retuned:
        raise InvalidInput("no stage was searched; run `python benchmarks/paper retuned`")
    ways = {(one.device, one.strategy, one.trials) for one in retuned.values()}
    if len(ways) > 1:
        raise InvalidInput(f"the stages were searched in different ways: {sorted(ways)}")
    ((device, strategy, trials),) = ways
    baseline = hwnc or {}
    rows = [_row(stage, one, baseline) for stage, one in sorted(retuned.items())]
    return TableOne(device, strategy, trials, tuple(rows))


def _row(stage: int, found: Retuned, hwnc: Hwnc) -> StageRow:
    theirs = {operand: hwnc[stage, operand] for operand in ("s4", "s8") if (stage, operand) in hwnc}
    return StageRow(
        workload=found.workload,
        stage=stage,
        operations=workload_named(found.workload).operations,
        paper=dict(PAPER[stage]),
        hwnc_s4=theirs["s4"][0] if "s4" in theirs else None,
        hwnc_s8=theirs["s8"][0] if "s8" in theirs else None,
        all_off=found.optima[_ALL_OFF].microseconds,
        exhaustive=found.exhaustive.microseconds if found.exhaustive else None,
        searched=found.optima[_ALL_ON].microseconds,
        hwnc_trials={operand: trials for operand, (_, trials) in theirs.items()},
    )


def read_table_one(folder: str | os.PathLike[str], stages: Sequence[int] = STAGES) -> TableOne:
    """The table from ``folder/tuned`` and ``folder/hwnc``. Stages without files are left out.

    Raises InvalidInput when there are none, BrokenRecord for a damaged file.
    """
    root = Path(folder)
    found = {}
    hwnc = {}
    for stage in stages:
        path = root / "tuned" / f"stage{stage}-finals.json"
        if path.is_file():
            found[stage] = read_retuned(path)
        for operand in ("s4", "s8"):
            path = root / "hwnc" / f"stage{stage}-{operand}.json"
            if path.is_file():
                hwnc[stage, operand] = _hwnc(path)
    return table_one(found, hwnc)


def _hwnc(path: Path) -> tuple[float, int]:
    try:
        data: Any = json_file(path, "finals")
        if data["format"] != HWNC:
            raise BrokenRecord(f"{path}: not the finals of TVM's schedule (format {data['format']!r})")
        return min(float(entry["microseconds"]) for entry in data["entries"]), int(data["trials"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"{path}: damaged ({error!r} is missing or invalid)") from None

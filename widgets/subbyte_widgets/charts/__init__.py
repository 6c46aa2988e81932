"""Interactive charts: plotly figures of the toolkit's records, ``record.plot()`` or ``subbyte_widgets.plot(record)``.

Importing this package registers the charts; plotly itself is loaded when the first one is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from subbyte import charts
from subbyte.analysis import Ablation, Race, Roofline, SideBySide, SpeedLimits
from subbyte.analysis.bit_times import PlaneTimes, StrideTimes
from subbyte.analysis.mechanism import Mechanism
from subbyte.analysis.monitoring import StudyState
from subbyte.analysis.retuned import Retuned
from subbyte.analysis.spread import Spread
from subbyte.analysis.table_one import TableOne
from subbyte.analysis.unpacking import UnpackingControl
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.sparse import Experiment, Software
from subbyte.tune import Landscape, Study, StudyRecord

HOME: dict[type, str] = {
    Ablation: "techniques.ablation_chart",
    Experiment: "sparsity.experiment_chart",
    Landscape: "landscapes.landscape_chart",
    Mechanism: "evidence.mechanism_chart",
    PlaneTimes: "bits.plane_chart",
    Race: "races.race_chart",
    Retuned: "techniques.ablation_chart",
    Roofline: "speeds.roofline_chart",
    SideBySide: "speeds.side_by_side_chart",
    Software: "sparsity.software_chart",
    SpeedLimits: "speeds.limits_chart",
    Spread: "landscapes.spread_chart",
    StrideTimes: "bits.stride_chart",
    Study: "studies.study_chart",
    StudyRecord: "studies.study_chart",
    StudyState: "studies.study_chart",
    TableOne: "evidence.table_one_chart",
    UnpackingControl: "evidence.unpacking_chart",
}
"""The function that draws the chart for each kind of record."""
TOGETHER = (Ablation, Retuned)
"""Kinds of records of which several fit into one chart."""


def plot(record: Any, **options: Any) -> Any:
    """The chart of a record as a plotly figure; a list of ablations (or retuned ones) gives one chart of all of them.

    Raises InvalidInput for a record without a chart or a wrong option, MissingDependency without plotly.
    """
    if isinstance(record, (list, tuple)):
        kinds = {type(one) for one in record}
        if len(kinds) != 1 or not kinds <= set(TOGETHER):
            names = " or ".join(kind.__name__ for kind in TOGETHER)
            raise InvalidInput(f"a list gives one chart only of records of one kind: {names}")
        return charts.draw(record[0], others=tuple(record[1:]), **options)
    return charts.draw(record, **options)


def _later(home: str) -> Callable[..., Any]:
    module, _, name = home.partition(".")

    def draw(record: Any, **options: Any) -> Any:
        try:
            found = import_module(f"{__name__}.{module}")
        except ModuleNotFoundError as problem:
            if (problem.name or "").partition(".")[0] != "plotly":
                raise
            raise MissingDependency('charts need plotly: pip install "subbyte[lab]"') from None
        try:
            return getattr(found, name)(record, **options)
        except TypeError as problem:
            if "unexpected keyword" in str(problem):
                raise InvalidInput(f"chart of {type(record).__name__}: {problem}") from None
            raise

    return draw


for _kind, _home in HOME.items():
    charts.register(_kind)(_later(_home))

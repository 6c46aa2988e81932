"""Compares searches: best-so-far curves, areas under them, trials to a target, paired intervals and a verdict in words;
and techniques: how much each one speeds up the same schedules.

Statistics are computed from the records of studies on recorded landscapes; nothing here draws or measures.
"""

from subbyte.analysis.ablation import Ablation, Factor, ablation
from subbyte.analysis.bit_times import PlaneTime, PlaneTimes, StrideTimes, read_plane_times, read_stride_times
from subbyte.analysis.bootstrap import Interval, paired_interval
from subbyte.analysis.comparison import Comparison
from subbyte.analysis.curves import Curve, Reach, Standing
from subbyte.analysis.landscape_view import (
    KnobEffect,
    LandscapeMap,
    LandscapePoints,
    knob_effects,
    landscape_map,
    landscape_points,
)
from subbyte.analysis.mechanism import Mechanism, MechanismRow, read_mechanism
from subbyte.analysis.neighbors import Neighbor, Neighbors, neighbors
from subbyte.analysis.origin import Origin, origin
from subbyte.analysis.racing import race
from subbyte.analysis.recorded import SideBySide, recorded_ablation, side_by_sides
from subbyte.analysis.result import Race
from subbyte.analysis.retuned import Optimum, Retuned, read_retuned
from subbyte.analysis.runs import Batch, Fit, LandscapeFacts, Run
from subbyte.analysis.speed import (
    Floor,
    Roofline,
    RooflinePoint,
    SpeedLimits,
    Timed,
    recorded_workloads,
    roofline,
    speed_of_light,
    studied_workloads,
)
from subbyte.analysis.spread import Spread, spread
from subbyte.analysis.table_one import StageRow, TableOne, read_table_one
from subbyte.analysis.traces import read_traces, write_traces
from subbyte.analysis.unpacking import UnpackingControl, read_unpacking

__all__ = [
    "Ablation",
    "Batch",
    "Comparison",
    "Curve",
    "Factor",
    "Fit",
    "Floor",
    "Interval",
    "KnobEffect",
    "LandscapeFacts",
    "LandscapeMap",
    "LandscapePoints",
    "Mechanism",
    "MechanismRow",
    "Neighbor",
    "Neighbors",
    "Optimum",
    "Origin",
    "PlaneTime",
    "PlaneTimes",
    "Race",
    "Reach",
    "Retuned",
    "Roofline",
    "RooflinePoint",
    "Run",
    "SideBySide",
    "SpeedLimits",
    "Spread",
    "StageRow",
    "Standing",
    "StrideTimes",
    "TableOne",
    "Timed",
    "UnpackingControl",
    "ablation",
    "knob_effects",
    "landscape_map",
    "landscape_points",
    "neighbors",
    "origin",
    "paired_interval",
    "race",
    "read_mechanism",
    "read_plane_times",
    "read_retuned",
    "read_stride_times",
    "read_table_one",
    "read_traces",
    "read_unpacking",
    "recorded_ablation",
    "recorded_workloads",
    "roofline",
    "side_by_sides",
    "speed_of_light",
    "spread",
    "studied_workloads",
    "write_traces",
]

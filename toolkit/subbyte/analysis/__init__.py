"""Searches compared: best-so-far curves, areas, trials to a target, paired intervals and a verdict in words; techniques
compared: what each contributes to the speed of the same schedules.

Statistics are computed from the records of studies on recorded landscapes; nothing here draws or measures.
"""

from subbyte.analysis.ablation import Ablation, Factor, ablation
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
from subbyte.analysis.racing import race
from subbyte.analysis.result import Race
from subbyte.analysis.runs import Batch, Fit, LandscapeFacts, Run
from subbyte.analysis.traces import read_traces, write_traces

__all__ = [
    "Ablation",
    "Batch",
    "Comparison",
    "Curve",
    "Factor",
    "Fit",
    "Interval",
    "KnobEffect",
    "LandscapeFacts",
    "LandscapeMap",
    "LandscapePoints",
    "Race",
    "Reach",
    "Run",
    "Standing",
    "ablation",
    "knob_effects",
    "landscape_map",
    "landscape_points",
    "paired_interval",
    "race",
    "read_traces",
    "write_traces",
]

"""Searches compared: best-so-far curves, areas, trials to a target, paired intervals and a verdict in words.

Statistics are computed from the records of studies on recorded landscapes; nothing here draws or measures.
"""

from subbyte.analysis.bootstrap import Interval, paired_interval
from subbyte.analysis.comparison import Comparison
from subbyte.analysis.curves import Curve, Reach, Standing
from subbyte.analysis.racing import race
from subbyte.analysis.result import Race
from subbyte.analysis.runs import Batch, Fit, LandscapeFacts, Run
from subbyte.analysis.traces import read_traces, write_traces

__all__ = [
    "Batch",
    "Comparison",
    "Curve",
    "Fit",
    "Interval",
    "LandscapeFacts",
    "Race",
    "Reach",
    "Run",
    "Standing",
    "paired_interval",
    "race",
    "read_traces",
    "write_traces",
]

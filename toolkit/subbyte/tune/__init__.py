"""Search: strategies propose, runners measure, studies keep the record; landscapes cover whole spaces."""

from typing import Any

from subbyte.callable_package import make_callable
from subbyte.records.landscape import Landscape, LandscapeInfo, find_landscape, landscape, shipped
from subbyte.records.manifest import read_manifest
from subbyte.records.parameter_space import ParameterSpace, parameter_space
from subbyte.renamed import former_name
from subbyte.tune.background import Progress, StudyHandle
from subbyte.tune.background_tuning import TuningHandle, start_tuning
from subbyte.tune.bundle import BundleReport, build_bundle
from subbyte.tune.network import network_layers, tune_network
from subbyte.tune.outcome import NetworkReport, TuningReport
from subbyte.tune.record import BestCurve, StudyRecord, Trial, best_curve, read_log
from subbyte.tune.recording import RecordingReport, assemble, record_landscape
from subbyte.tune.remeasurement import Remeasurement, remeasure
from subbyte.tune.sources import RUNNERS
from subbyte.tune.strategy import STRATEGIES, Option, Strategy, make_strategy, register
from subbyte.tune.study import Study
from subbyte.tune.tuning import tune

__all__ = [
    "RUNNERS",
    "STRATEGIES",
    "BestCurve",
    "BundleReport",
    "Landscape",
    "LandscapeInfo",
    "NetworkReport",
    "Option",
    "ParameterSpace",
    "Progress",
    "RecordingReport",
    "Remeasurement",
    "Strategy",
    "Study",
    "StudyHandle",
    "StudyRecord",
    "Trial",
    "TuningHandle",
    "TuningReport",
    "assemble",
    "best_curve",
    "build_bundle",
    "find_landscape",
    "landscape",
    "make_strategy",
    "network_layers",
    "parameter_space",
    "read_log",
    "read_manifest",
    "record_landscape",
    "register",
    "remeasure",
    "shipped",
    "start_tuning",
    "tune",
    "tune_network",
]


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)


make_callable(__name__, tune)

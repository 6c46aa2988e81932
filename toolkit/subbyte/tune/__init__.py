"""Search: strategies propose, runners measure, studies keep the record; landscapes hold whole spaces."""

from subbyte.callable_package import make_callable
from subbyte.records.landscape import Landscape, LandscapeInfo, find_landscape, landscape, shipped
from subbyte.records.manifest import read_manifest
from subbyte.tune.background import Progress, StudyHandle
from subbyte.tune.background_tuning import TuningHandle, start_tuning
from subbyte.tune.bundle import BundleReport, build_bundle
from subbyte.tune.finals import Finals, hold_finals
from subbyte.tune.network import network_layers, tune_network
from subbyte.tune.outcome import NetworkReport, TuningReport
from subbyte.tune.record import BestCurve, StudyRecord, Trial, best_curve, read_log
from subbyte.tune.recording import RecordingReport, assemble, record_landscape
from subbyte.tune.sources import RUNNERS
from subbyte.tune.strategy import STRATEGIES, Option, Strategy, make_strategy, register
from subbyte.tune.study import Study
from subbyte.tune.tuning import tune

__all__ = [
    "RUNNERS",
    "STRATEGIES",
    "BestCurve",
    "BundleReport",
    "Finals",
    "Landscape",
    "LandscapeInfo",
    "NetworkReport",
    "Option",
    "Progress",
    "RecordingReport",
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
    "hold_finals",
    "landscape",
    "make_strategy",
    "network_layers",
    "read_log",
    "read_manifest",
    "record_landscape",
    "register",
    "shipped",
    "start_tuning",
    "tune",
    "tune_network",
]

make_callable(__name__, tune)

"""Search: strategies propose, runners measure, studies keep the record; landscapes hold whole spaces."""

from subbyte.callable_package import make_callable
from subbyte.tune.background import Progress, StudyHandle
from subbyte.tune.bundle import BundleReport, build_bundle, read_manifest
from subbyte.tune.landscape import Landscape, LandscapeInfo, find_landscape, landscape, shipped
from subbyte.tune.record import BestCurve, StudyRecord, Trial, best_curve, read_log
from subbyte.tune.recording import assemble
from subbyte.tune.strategy import STRATEGIES, Option, Strategy, make_strategy, register
from subbyte.tune.study import Study
from subbyte.tune.tuning import RUNNERS, TuningReport, tune

__all__ = [
    "RUNNERS",
    "STRATEGIES",
    "BestCurve",
    "BundleReport",
    "Landscape",
    "LandscapeInfo",
    "Option",
    "Progress",
    "Strategy",
    "Study",
    "StudyHandle",
    "StudyRecord",
    "Trial",
    "TuningReport",
    "assemble",
    "best_curve",
    "build_bundle",
    "find_landscape",
    "landscape",
    "make_strategy",
    "read_log",
    "read_manifest",
    "register",
    "shipped",
    "tune",
]

make_callable(__name__, tune)

"""One record of each kind, one view and one chart of each, with a hostile name wherever a name may stand."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

import subbyte
from hostile.made_up import made_up
from subbyte import networks, sparse
from subbyte.analysis import Floor, SpeedLimits, Spread, StageRow, TableOne, UnpackingControl
from subbyte.analysis.ablation import Factor
from subbyte.analysis.landscape_view import LandscapePoints
from subbyte.analysis.origin import SOURCES, Origin, Source
from subbyte.families import family_named, space
from subbyte.families.bits.ring.space import RingSpace
from subbyte.families.mma.config import MmaConfig
from subbyte.families.shared.one_by_one.space import OneByOneSpace
from subbyte.kernel.edit import EditedKernel
from subbyte.kernel.kernel import Kernel, build
from subbyte.kernel.split import SplitKernel
from subbyte.measure.atoms.program import AtomKernel
from subbyte.measure.fake import FakeRunner
from subbyte.networks import Network
from subbyte.records.foreign import ForeignSpace, ForeignWorkload
from subbyte.records.parameter_space import ParameterSpace
from subbyte.records.result import Failed
from subbyte.spaces.listed import ListedOneByOne, ListedTable
from subbyte.sparse import Experiment, LayerBars, RowLowering, Software, SpeedMap, TileSteps
from subbyte.sparse.bitmap import TwoLevelBitmap
from subbyte.sparse.networks import NetworkCycles
from subbyte.sparse.trace import Counts
from subbyte.technique.record import InfoRecord
from subbyte.tune import Landscape, NetworkReport, Study, StudyRecord
from subbyte.tune.outcome import TuningReport
from subbyte.tune.remeasurement import remeasure
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.matmul import MatmulWorkload, gemm
from subbyte.workload.parse import WorkloadList

LAYER = "n8h4w4c32k32r1s1p0"
ABSTRACT = (InfoRecord, ListedTable, ListedOneByOne)
"""What only its subclasses show."""


def named(name: str, spec: str = LAYER) -> ConvWorkload:
    """A workload with this name, as a file could bring it."""
    plain = workload(spec)
    given = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain) if field.name != "name"}
    made: ConvWorkload = made_up(ConvWorkload, name, given)
    return made


def everywhere(value: Any, name: str) -> Any:
    """Plain data with ``name`` in place of every text."""
    if isinstance(value, dict):
        return {key: everywhere(item, name) for key, item in value.items()}
    return name if isinstance(value, str) else value


@lru_cache(maxsize=1)
def _plain_record() -> StudyRecord:
    runner = FakeRunner(failures={"timeout": 0.3})
    return Study(space(workload("n8h7w7c32k32r3s3p1"), "sm_90a"), "random", seed=1).run(runner, trials=12)


def study_record(name: str) -> StudyRecord:
    """A study whose header and whose reasons of failures hold the name, but in the words that the library reads."""
    plain = _plain_record()
    kept = {key: plain.header[key] for key in ("space", "workload", "format", "schema") if key in plain.header}
    trials = tuple(
        replace(trial, result=replace(trial.result, reason=name)) if isinstance(trial.result, Failed) else trial
        for trial in plain.trials
    )
    record = StudyRecord({**everywhere(dict(plain.header), name), **kept}, trials, notice=name, path=name)
    record.__dict__["workload"] = named(name)
    return record


def landscape(name: str) -> Landscape:
    """A small landscape of a device with the name."""
    record = _plain_record()
    found = Landscape.from_results(
        space(record.workload, "sm_90a"),
        {trial.index: trial.result for trial in record.trials},
        record.header["device"],
    )
    kept = {key: found.header[key] for key in ("space", "workload", "format", "schema") if key in found.header}
    made = Landscape({**everywhere(dict(found.header), name), **kept}, found.results, name)
    made.__dict__["workload"] = named(name, record.workload.spec)
    return made


@lru_cache(maxsize=1)
def plain_kernel() -> Kernel:
    """A small kernel, built."""
    return build(LAYER, MmaConfig(1, 1, 1, 1), "sm_80")


def kernel(name: str, kind: type[Kernel] = Kernel) -> Kernel:
    """A kernel of a workload with the name, chosen for a reason with the name."""
    plan = replace(plain_kernel().plan, workload=named(name))
    text = {} if kind is Kernel else {"text": plain_kernel().cuda}
    return kind(plan, reason=name, **text)


def tuning_report(name: str, kind: type[TuningReport] = TuningReport) -> TuningReport:
    """A report of one study with a re-measurement and something left out."""
    record = study_record(name)
    remeasured = {name: remeasure(_plain_record(), FakeRunner())}
    given: dict[str, Any] = {"records": (record,), "skipped": {name: name}, "remeasurements": remeasured, "optima": {}}
    if kind is NetworkReport:
        given |= {"network": name, "counts": {name: 2}, "grants": ((name, 3, 0.5),)}
    return kind(**given)


def _study(name: str) -> Study:
    study = Study(space(named(name, "n8h7w7c32k32r3s3p1"), "sm_90a"), "random", seed=1)
    study.run(FakeRunner(), trials=3)
    return study


def _points(name: str) -> LandscapePoints:
    given = {"knobs": {name: (1, 2)}, "digits": ((0,), (1,)), "reasons": (name, "")}
    return made_up(LandscapePoints, name, given)


def _limits(name: str) -> SpeedLimits:
    floors = tuple(Floor(one, 1.5, name) for one in ("launch", "bytes", "arithmetic"))
    return made_up(SpeedLimits, name, {"floors": floors, "spec": LAYER})


def _table_one(name: str) -> TableOne:
    row = made_up(StageRow, name, {"paper": {"baseline": 3.0, "exhaustive": 2.0, "searched": 2.0}})
    return made_up(TableOne, name, {"rows": (row, row)})


def _unpacking(name: str) -> UnpackingControl:
    factors = {step: made_up(Factor, name) for step in ("shared", name)}
    return made_up(UnpackingControl, name, {"sharing": {"s4": factors, "s8": factors}})


def _spread(name: str) -> Spread:
    return made_up(Spread, name, {"good": dict.fromkeys((0.5, 0.9), 1)})


def _bitmap(name: str) -> TwoLevelBitmap:
    return sparse.encode(np.eye(8, dtype=np.int8), "columns")


def _counts(name: str) -> Counts:
    b = sparse.encode(np.eye(8, dtype=np.int8), "rows")
    found: Counts = sparse.spgemm(_bitmap(name), b)[1]
    return found


def _network_cycles(name: str) -> NetworkCycles:
    found = sparse.network("alexnet@1")
    return replace(found, network=name, note=name, layers=tuple(replace(one, name=name) for one in found.layers))


def _experiment(name: str) -> Experiment:
    plain = sparse.figures("F3").experiments[0]
    return replace(plain, about=name, source=name, columns=(plain.columns[0], *[name] * (len(plain.columns) - 1)))


def _layer_bars(name: str) -> LayerBars:
    measured = sparse.MeasuredLayer(name, name, 1.5, name)
    return sparse.layer_bars(_network_cycles(name), [measured])


def _origin(name: str) -> Origin:
    sources = tuple(Source(one, name, name, 4.0, 3.0, 5.0, name) for one in SOURCES)
    return replace(made_up(Origin, name), sources=sources)


def _software(name: str) -> Software:
    gains = [sparse.SoftwareGain(name, path, 1.0, at, 1.5 - at, f"{name}, {name}")
             for path in ("blocks", name) for at in (0.25, 1.0)]  # fmt: skip
    return Software(tuple(gains))


def _speed_map(name: str) -> SpeedMap:
    plain = sparse.surface("gemm64", activations=(0.2, 1.0), weights=(0.2, 1.0))
    where = replace(plain, workload=name, kind=name, waves=name, machine=replace(plain.machine, name=name))
    return sparse.speed_map(where, _network_cycles(name), breakevens=[sparse.BreakEven(name, ((0.1, 0.1),), name)])


def _network(name: str) -> Network:
    found = networks.network("tcbnn.mlp@1")
    layers = tuple(replace(layer, name=f"{name}{place}") for place, layer in enumerate(found.layers))
    return replace(found, name=name, layers=layers, source=name, trained=name)


def _split_kernel(name: str) -> SplitKernel:
    part = plain_kernel()
    return SplitKernel.joining(replace(part.workload, n=2 * part.workload.n, name=name), (part, part), name)


SAMPLES: dict[type, Callable[[str], Any]] = {
    AtomKernel: lambda name: kernel(name, AtomKernel),
    ConvWorkload: named,
    Counts: _counts,
    EditedKernel: lambda name: kernel(name, EditedKernel),
    OneByOneSpace: lambda name: made_up(OneByOneSpace, name, {"family": family_named("bmma")}),
    RingSpace: lambda name: made_up(RingSpace, name, {"family": family_named("bits")}),
    Experiment: _experiment,
    Origin: _origin,
    ParameterSpace: lambda name: ParameterSpace(ForeignWorkload(name, (name,)), name, {name: (name, 2)}, ()),
    ForeignSpace: lambda name: ForeignSpace(ForeignWorkload(name, (name,)), name, {name: (name, 2)}, (0, 1)),
    Kernel: kernel,
    Landscape: landscape,
    LayerBars: _layer_bars,
    LandscapePoints: _points,
    MatmulWorkload: lambda name: gemm(8, 32, 32, name=name),
    Network: _network,
    NetworkCycles: _network_cycles,
    NetworkReport: lambda name: tuning_report(name, NetworkReport),
    RowLowering: lambda name: replace(sparse.row_lowering(), workload=named(name, "n1h6w16c4k8r3s3p1"), source=name),
    SpeedLimits: _limits,
    SplitKernel: _split_kernel,
    Software: _software,
    SpeedMap: _speed_map,
    Spread: _spread,
    Study: _study,
    StudyRecord: study_record,
    TableOne: _table_one,
    TileSteps: lambda name: replace(sparse.tile_steps(size="toy"), source=name),
    TuningReport: tuning_report,
    TwoLevelBitmap: _bitmap,
    UnpackingControl: _unpacking,
    WorkloadList: lambda name: WorkloadList([named(name), named(name)]),
}
"""What cannot be made up from its annotations alone."""


def sample(kind: type, name: str) -> Any:
    """A record of a kind with the name. Raises TypeError for a kind without a sample that cannot be made up."""
    return SAMPLES[kind](name) if kind in SAMPLES else made_up(kind, name)


def kinds(package: ModuleType = subbyte) -> Iterator[type]:
    """Every class of the library that a notebook shows as HTML."""
    found = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.rpartition(".")[2] != "__main__":
            for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if kind.__module__.startswith(package.__name__) and hasattr(kind, "_repr_html_"):
                    found[f"{kind.__module__}.{kind.__qualname__}"] = kind
    yield from (found[name] for name in sorted(found) if found[name] not in ABSTRACT)

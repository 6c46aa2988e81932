"""``tune``: one study per workload, on a GPU or on recorded landscapes, and a report of what was found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.errors import InvalidInput, MissingDependency, Unsupported, did_you_mean
from subbyte.measure.replay import ReplayRunner
from subbyte.measure.runner import Runner
from subbyte.schedule import ConvConfig
from subbyte.tune.describe import SpaceLike
from subbyte.tune.foreign import FOREIGN
from subbyte.tune.landscape import Landscape, find_landscape
from subbyte.tune.record import StudyRecord
from subbyte.tune.recorded import space_of
from subbyte.tune.study import Callback, Stop, Study
from subbyte.tune.table import frame, html_table
from subbyte.workload import ConvWorkload
from subbyte.workload import workloads as parse_workloads

if TYPE_CHECKING:
    import pandas

RUNNERS = ("auto", "cuda", "replay", "fake")
DEFAULT_ARCH = "sm_90a"
DEFAULT_TRIALS = 100


@dataclass(frozen=True, eq=False)
class TuningReport:
    """One record per tuned workload. ``optima`` holds the landscape's best microseconds by spec where it is known;
    ``skipped`` says by label why a workload was not tuned."""

    records: tuple[StudyRecord, ...]
    optima: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> dict[str, ConvConfig]:
        """Fastest configuration by workload label; workloads without any success are left out."""
        return {record.workload.label: record.best.config for record in self.records if record.best}

    @property
    def interrupted(self) -> bool:
        """True when Ctrl-C ended the tuning early."""
        return any(record.ended == "interrupted" for record in self.records)

    def rows(self) -> list[dict[str, Any]]:
        """One summary per workload; ``fraction_of_optimum`` is 1.0 for the landscape's best, None when unknown."""
        rows = []
        for record in self.records:
            optimum, found = self.optima.get(record.workload.spec), record.best_microseconds
            fraction = optimum / found if optimum and found else None
            rows.append({**record.summary(), "optimum_microseconds": optimum, "fraction_of_optimum": fraction})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"workloads": self.rows(), "skipped": dict(self.skipped), "interrupted": self.interrupted}

    def to_frame(self) -> pandas.DataFrame:
        """``rows()`` as a pandas table indexed by workload. Raises MissingDependency without pandas."""
        return frame(self.rows(), index="workload")

    def _repr_html_(self) -> str:
        shown = ("workload", "trials", "ended", "best_microseconds", "best_tops", "fraction_of_optimum", "device")
        rows = [{name: row[name] for name in shown} for row in self.rows()]
        table = html_table(rows, "Tuning")
        return table + "".join(f"<p>{label}: not tuned, {reason}</p>" for label, reason in self.skipped.items())


def tune(
    workloads: str | ConvWorkload | Iterable[str | ConvWorkload],
    runner: str | Runner = "auto",
    strategy: str = "random",
    trials: int | None = DEFAULT_TRIALS,
    seed: int = 0,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    *,
    arch: str | None = None,
    kind: str = "paper",
    fixed: Mapping[str, Any] | None = None,
    landscape: Landscape | str | os.PathLike[str] | None = None,
    batch: int = 8,
    callbacks: Sequence[Callback] = (),
    stop: Sequence[Stop] = (),
) -> TuningReport:
    """Tune each workload (a name, a network, a spec, or several of them) and report the best configurations.

    ``runner`` is ``cuda`` (this machine's GPU), ``replay`` (``landscape``, or the shipped one), ``fake`` (made-up
    times), a Runner, or ``auto``: cuda where there is a GPU, else replay where a landscape is shipped. ``trials``
    counts the results of each study, those resumed included; None means the whole space. With several workloads each
    study writes its own log, ``FILE`` with the workload before its last suffix. Ctrl-C ends the tuning and keeps the
    best. ``fixed`` sets switches of the space (``{"layout": "nhwc"}``); a given landscape brings its own.

    Raises InvalidInput for anything unknown, MissingDependency when nothing can measure, BrokenRecord for a damaged
    log.
    """
    given = landscape if isinstance(landscape, Landscape | None) else Landscape.load(landscape)
    wanted = _foreign(workloads, given) or parse_workloads(workloads)
    if isinstance(runner, str) and runner not in RUNNERS:
        raise InvalidInput(f"unknown runner {runner!r}: {did_you_mean(runner, RUNNERS)}")
    if landscape is not None and runner not in ("auto", "replay"):
        raise InvalidInput("a landscape goes with the runner replay")
    if given is not None and list(wanted) != [given.workload]:
        raise InvalidInput(f"landscape {given.name} is of {given.workload.label}; tune exactly that workload with it")
    records: list[StudyRecord] = []
    optima: dict[str, float] = {}
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        shared = runner if not isinstance(runner, str) else None
        for workload in wanted:
            try:
                source = _choose(runner, workload, arch, kind, fixed, given) if shared is None else shared
                if isinstance(source, str):
                    source = shared = stack.enter_context(_open(source))
                space = _space(workload, source, arch, kind, fixed)
            except (Unsupported, MissingDependency) as error:
                if len(wanted) == 1 or (isinstance(error, MissingDependency) and runner == "cuda"):
                    raise
                skipped[workload.label] = str(error)
                continue
            with Study(space, strategy, seed, _log_path(log, workload, len(wanted)), resume) as study:
                records.append(study.run(source, trials, batch, callbacks, stop))
            if isinstance(source, ReplayRunner):
                optima[workload.spec] = source.landscape.best[1].microseconds
            if study.ended == "interrupted":
                break
    if not records:
        raise MissingDependency("nothing was tuned: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    return TuningReport(tuple(records), optima, skipped)


def has_gpu() -> bool:
    """True when the driver shows a GPU."""
    from subbyte.measure.driver import detect

    try:
        return bool(detect())
    except MissingDependency:
        return False


def _foreign(
    workloads: str | ConvWorkload | Iterable[str | ConvWorkload], given: Landscape | None
) -> list[ConvWorkload]:
    """The workload of a landscape of a foreign kernel, when it is what was asked for by name or spec."""
    if given is None or given.kind != FOREIGN:
        return []
    asked = [workloads] if isinstance(workloads, str | ConvWorkload) else list(workloads)
    known = (given.workload.label, given.workload.spec)
    return [given.workload] if len(asked) == 1 and str(asked[0]) in known else []


def _choose(
    runner: str | Runner,
    workload: ConvWorkload,
    arch: str | None,
    kind: str,
    fixed: Mapping[str, Any] | None,
    given: Landscape | None,
) -> Runner | str:
    """A replay runner of this workload, or the name of a runner that serves all workloads."""
    if given is not None:
        return ReplayRunner(given)
    if runner in ("cuda", "fake"):
        return str(runner)
    if runner == "auto" and has_gpu():
        return "cuda"
    name = find_landscape(workload, arch, kind, fixed)
    if name is not None:
        return ReplayRunner(name)
    raise MissingDependency(
        f"nothing can measure {workload.label}: this machine shows no GPU and no landscape of it "
        f"({kind} space{f', {arch}' if arch else ''}) is shipped; `subbyte landscape list` shows those there are, "
        "and the runner fake gives made-up times"
    )


def _open(name: str) -> Runner:
    if name == "fake":
        from subbyte.measure.fake import FakeRunner

        return FakeRunner()
    from subbyte.measure.cuda_runner import CudaRunner

    return CudaRunner()


def _space(
    workload: ConvWorkload, runner: Runner, arch: str | None, kind: str, fixed: Mapping[str, Any] | None
) -> SpaceLike:
    from subbyte.space import space

    if isinstance(runner, ReplayRunner):
        if runner.landscape.kind == FOREIGN:
            return space_of(runner.landscape)
        recorded = runner.landscape.header["space"]
        arch, kind, fixed = recorded["arch"], recorded["kind"], recorded["fixed"]
    else:
        arch = arch or getattr(runner, "arch", None) or DEFAULT_ARCH
    return space(workload, arch or DEFAULT_ARCH, kind, **(fixed or {}))


def _log_path(log: str | os.PathLike[str] | None, workload: ConvWorkload, count: int) -> Path | None:
    if log is None:
        return None
    path = Path(log)
    return path if count == 1 else path.with_name(f"{path.stem}.{workload.label}{path.suffix}")

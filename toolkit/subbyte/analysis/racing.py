"""Runs a race: every strategy on every landscape with every seed, spread over worker processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from subbyte.analysis.result import Race
from subbyte.analysis.runs import WINDOW, Fit, Judged, LandscapeFacts, Run
from subbyte.analysis.traces import Traces, read_traces
from subbyte.arguments import checked
from subbyte.errors import BuildFailed, InvalidInput
from subbyte.files import prove_writable
from subbyte.measure.replay import ReplayRunner
from subbyte.measure.worker import WorkerDied, WorkerPool, WorkerRaised
from subbyte.records.checked import callables, file_path, several, whole, wholes
from subbyte.records.describe import SpaceLike, now, versions
from subbyte.records.landscape import Landscape, find_landscape
from subbyte.records.recorded_space import space_of
from subbyte.records.result import Failed, Measured
from subbyte.tune.search.quality import QualityLog, recall_at, spearman
from subbyte.tune.strategy import STRATEGIES, parse_strategy
from subbyte.tune.study import Study
from subbyte.workload import ConvWorkload
from subbyte.workload import workloads as parse_workloads

DEFAULT_STRATEGIES = ("random", "genetic", "autotvm", "diverse")
RACED_WITH = ("numpy", "xgboost", "xgboost-cpu", "optuna", "kernel-tuner")
"""Packages whose versions a race records besides the usual ones."""
HOLDOUT = 256
"""Number of configurations of the landscape on which models are evaluated as well."""
_RECALL = 10
Entrant = str | ConvWorkload | Landscape | os.PathLike[str]
Progress = Callable[[int, int], None]


@checked
def race(
    workloads: Entrant | Iterable[Entrant],
    strategies: str | Sequence[str] = DEFAULT_STRATEGIES,
    trials: int = 200,
    seeds: int | Sequence[int] = 100,
    workers: int = 2,
    *,
    batch: int = 8,
    traces: Iterable[Traces | str | os.PathLike[str]] = (),
    statistics_seed: int = 0,
    command: str = "",
    progress: Progress | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Race:
    """Run every strategy on every recorded landscape and compare them.

    ``workloads`` are landscapes, their files or names, or workloads and networks with shipped landscapes. ``seeds`` is
    the number of seeds or the seeds themselves; a strategy is asked for ``batch`` configurations at a time. ``traces``
    adds the trials of another tool (see :mod:`subbyte.analysis.traces`). ``workers`` processes share the runs; with 1
    they run in this process. ``progress(done, total)`` is called after each run; ``command`` is stored with the result.
    ``output`` is where the race will be saved; that it is writable is checked before the race starts.

    Raises InvalidInput for anything unknown, numbers below one, or an ``output`` that cannot be written.
    """
    texts = [strategies] if isinstance(strategies, str) else several(strategies, "strategies")
    callables([progress] if progress is not None else [], "progress")
    numbers = list(range(whole(seeds, "seeds", 1))) if isinstance(seeds, int) else list(wholes(seeds, "seeds"))
    _check(texts, trials, workers, batch)
    if output is not None:
        prove_writable(file_path(output, "race file"), "race file")
    landscapes, skipped = find_landscapes(workloads)
    facts = [LandscapeFacts.of(found) for found in landscapes]
    started = time.monotonic()
    guests = [found if isinstance(found, Traces) else read_traces(found) for found in several(traces, "traces")]
    visitors = _visitors(guests, landscapes, trials, texts)
    jobs = [Job(found.name, text, seed, trials, batch) for seed in numbers for found in landscapes for text in texts]
    with quiet_threads():
        runs = _run(jobs, [lean(found) for found in landscapes], workers, progress)
    participants = list(dict.fromkeys([*texts, *(run.participant for run in visitors)]))
    seconds = round(time.monotonic() - started, 3)
    return Race(tuple(facts), tuple(participants), trials, (*runs, *visitors), statistics_seed, now(), seconds,
                tuple(skipped), command, versions(RACED_WITH))  # fmt: skip


def _check(strategies: Sequence[str], trials: int, workers: int, batch: int) -> None:
    for name, value in (("trials", trials), ("workers", workers), ("batch", batch)):
        whole(value, name, 1)
    if len(set(strategies)) < len(strategies) or not strategies:
        raise InvalidInput(f"{', '.join(strategies) or 'nothing'}: each must be named once, and at least one")
    for text in strategies:
        name, _ = parse_strategy(text)
        if workers > 1 and STRATEGIES[name].__module__ == "__main__":
            raise InvalidInput(
                f"strategy {name} is defined in this script or notebook only; put it in a module, or give workers=1"
            )


def find_landscapes(workloads: Entrant | Iterable[Entrant]) -> tuple[list[Landscape], list[str]]:
    """The landscapes named, and the network layers that were left out because they have none. Raises InvalidInput."""
    single = isinstance(workloads, str | ConvWorkload | Landscape | os.PathLike)
    asked: list[Any] = [workloads] if single else several(workloads, "workloads")
    found: list[Landscape] = []
    skipped: list[str] = []
    for item in asked:
        if isinstance(item, Landscape):
            found.append(item)
            continue
        layers = _layers(item)
        if len(layers) < 2:
            found.append(Landscape.load(layers[0].spec if isinstance(item, ConvWorkload) else item))
            continue
        names = {layer.label: find_landscape(layer) for layer in layers}
        found += [Landscape.load(name) for name in dict.fromkeys(filter(None, names.values()))]
        skipped += [f"{label}: no landscape of it is shipped" for label, name in names.items() if name is None]
    if not found:
        raise InvalidInput("no landscape to race on: " + ("; ".join(skipped) or "name at least one"))
    repeated = {one.name for one in found if [other.name for other in found].count(one.name) > 1}
    if repeated:
        raise InvalidInput(f"{', '.join(sorted(repeated))}: two landscapes have this name; name each once")
    return found, skipped


def _layers(item: Any) -> list[ConvWorkload]:
    """The workloads of a network's name; anything else is a single one."""
    if isinstance(item, str) and not os.path.exists(item):
        try:
            return parse_workloads(item)
        except InvalidInput:  # the name of a landscape, or unknown: then Landscape.load says so
            return []
    return [item] if isinstance(item, ConvWorkload) else []


def _visitors(
    guests: Sequence[Traces], landscapes: Sequence[Landscape], trials: int, taken: Sequence[str]
) -> list[Run]:
    runs = []
    for guest in guests:
        if guest.participant in taken:
            raise InvalidInput(f"traces of {guest.participant!r}: a strategy of the race has this name")
        fitting = [one for one in landscapes if (one.workload.spec, one.space_hash) == (guest.spec, guest.space_hash)]
        runs += guest.runs(fitting[0] if fitting else landscapes[0], trials)
    return runs


# ---- one run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One run to make: landscape by name, strategy with options, seed, trials, how many are asked for at a time."""

    landscape: str
    strategy: str
    seed: int
    trials: int
    batch: int


class _Table(ReplayRunner):
    """Replays a landscape in the space made from it, which needs no check."""

    def check(self, space: SpaceLike) -> None:
        """Nothing to check."""


class Ground:
    """A landscape with what every run on it shares: space, runner, configurations for evaluating models."""

    def __init__(self, landscape: Landscape) -> None:
        self.landscape = landscape
        self.space = space_of(landscape)
        self.runner = _Table(landscape)
        indices = sorted(landscape.results)
        drawn = np.random.default_rng(0).permutation(len(indices))[:HOLDOUT]
        self.holdout = np.array(sorted(indices[place] for place in drawn), dtype=np.int64)
        results = [landscape.results[index] for index in self.holdout.tolist()]
        self.speeds = [1.0 / r.microseconds if isinstance(r, Measured) else 0.0 for r in results]


def run_one(ground: Ground, job: Job) -> Run:
    """One study on a landscape, reduced to a run."""
    started = time.monotonic()
    study = Study(ground.space, job.strategy, job.seed)
    holdout: list[Judged] = []

    def judge(study: Study, trial: Any, result: Any) -> None:
        if len(study.trials) % WINDOW == 0:
            holdout.append(_on_holdout(study.strategy, ground))

    record = study.run(ground.runner, min(job.trials, study.most_trials), job.batch, [judge])
    if record.ended == "interrupted":
        raise KeyboardInterrupt
    seconds = round(time.monotonic() - started, 4)
    return Run.of(record, job.landscape, job.strategy, job.trials, holdout, _fits(study.strategy), seconds)


def _on_holdout(strategy: Any, ground: Ground) -> Judged:
    """A strategy's model evaluated on the landscape: rank correlation, and the share of the fastest tenth that is among
    the tenth with the best scores; None without a model, or before it was fitted."""
    scores = getattr(strategy, "scores", None)
    if scores is None:
        return None, None
    try:
        predicted = scores(ground.holdout)
    except InvalidInput:
        return None, None
    return spearman(predicted, ground.speeds), recall_at(predicted, ground.speeds, max(1, len(ground.speeds) // 10))


def _fits(strategy: Any) -> list[Fit]:
    """What the strategy recorded about its model."""
    log = getattr(strategy, "quality", None)
    batches = log.batches if isinstance(log, QualityLog) else []
    found = [batch.model for batch in batches]
    return [Fit(m.spearman, m.recall.get(_RECALL) if m.count > _RECALL else None) for m in found]


# ---- many runs -------------------------------------------------------------------------------------------------

_grounds: dict[str, Ground] = {}
"""Of a worker process, by landscape: prepared once."""


def _run(jobs: Sequence[Job], landscapes: Sequence[Landscape], workers: int, progress: Progress | None) -> list[Run]:
    """The runs of ``jobs``, in that order."""
    if workers == 1 or len(jobs) == 1:
        grounds = {found.name: Ground(found) for found in landscapes}
        runs = []
        for done, job in enumerate(jobs, start=1):
            runs.append(run_one(grounds[job.landscape], job))
            if progress is not None:
                progress(done, len(jobs))
        return runs
    modules = sorted({cls.__module__ for cls in map(STRATEGIES.get, _registered()) if cls is not None})
    pool = WorkerPool(min(workers, len(jobs)), "race", prepare=partial(_prepare, list(landscapes), modules))
    try:
        futures = [pool.submit(_work, job) for job in jobs]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            if progress is not None:
                progress(done, len(jobs))
        return [future.result() for future in futures]
    except WorkerDied as error:
        raise BuildFailed(f"the race was ended: {error}; workers=1 runs without processes") from None
    except WorkerRaised as error:
        raise BuildFailed(f"the race was ended: a run failed with {error}; workers=1 shows where") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _registered() -> list[str]:
    """Modules of strategies that were registered by hand, which a new process has to import."""
    return [name for name, cls in STRATEGIES.items() if not cls.__module__.startswith("subbyte.")]


def _prepare(landscapes: Sequence[Landscape], modules: Sequence[str]) -> None:
    """In a new process: load what every run needs."""
    for module in modules:
        import_module(module)
    _grounds.update({found.name: Ground(found) for found in landscapes})


def _work(job: Job) -> Run:
    return run_one(_grounds[job.landscape], job)


def lean(landscape: Landscape) -> Landscape:
    """The landscape without samples and telemetry: what a search sees."""
    results = {
        index: Measured(result.microseconds) if isinstance(result, Measured) else Failed(result.kind, result.reason)
        for index, result in landscape.results.items()
    }
    return replace(landscape, results=results)


@contextmanager
def quiet_threads() -> Iterator[None]:
    """Let idle OpenMP threads of the workers sleep; spinning ones slow everything down badly on a small machine."""
    wanted = {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)

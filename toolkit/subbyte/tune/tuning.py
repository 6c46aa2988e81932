"""``tune``: one study per workload, on a GPU or on recorded landscapes, and a report of the results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, MissingDependency, Unsupported
from subbyte.former import former_arguments
from subbyte.interrupts import keeping
from subbyte.measure.runner import Runner
from subbyte.records.checked import callables, file_path, several, whole
from subbyte.records.foreign import FOREIGN
from subbyte.records.landscape import Landscape
from subbyte.records.log import prove_log
from subbyte.tune.outcome import TuningReport
from subbyte.tune.record import StudyRecord
from subbyte.tune.remeasurement import Remeasurement, default_top_k, remeasure
from subbyte.tune.sources import DEFAULT_TRIALS, Sources, log_path, nothing_in, replayed
from subbyte.tune.study import Callback, Stop, Study
from subbyte.workload import ConvWorkload
from subbyte.workload import workloads as parse_workloads


@former_arguments(finalists="top_k")
@checked
def tune(
    workloads: str | ConvWorkload | Iterable[str | ConvWorkload],
    runner: str | Runner = "auto",
    strategy: str = "auto",
    trials: int | None = DEFAULT_TRIALS,
    seed: int = 0,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    *,
    arch: str | None = None,
    kind: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    landscape: Landscape | str | os.PathLike[str] | None = None,
    batch: int = 8,
    callbacks: Sequence[Callback] = (),
    stop: Sequence[Stop] = (),
    device: int | str | Sequence[int] = 0,
    timeout: float | None = None,
    top_k: int | None = None,
    store: str | os.PathLike[str] | None = None,
) -> TuningReport:
    """Tune each workload (a name, a spec, or several of them) and report the best configurations.

    ``runner`` is ``cuda`` (this machine's GPU), ``replay`` (``landscape``, or the shipped one), ``fake`` (made-up
    times), a Runner, or ``auto``: cuda if there is a GPU, else replay if a landscape is shipped. ``trials`` is the
    number of results of each study, resumed ones included; None means the whole space. With several workloads each
    study writes its own log, ``FILE`` with the workload before its last suffix. Ctrl-C ends the tuning and keeps the
    best. ``kind`` names the kind of space; by default it is the layer's own (:func:`subbyte.families.usual_kind`):
    ``paper`` for int4, ``bits`` for bit planes on Hopper. ``fixed`` sets its switches (``{"layout": "nhwc"}``); a given
    landscape brings its own.

    A single network (``resnet50@8``) is tuned as a whole: ``trials`` is then the total for all its layers, spent
    where it pays most (:func:`subbyte.tune.network.tune_network`), and the report is a NetworkReport.

    ``device`` is a GPU number, ``cuda:1``, ``any`` (one on which nobody is measuring), or several (``0,1``), which
    measure in parallel; ``timeout`` is the time in seconds that a candidate may take on it. The ``top_k`` fastest
    (default 5; none with made-up times) are measured once more, interleaved, and the report says which of them are
    tied.

    Results measured on a GPU are remembered: the best of each workload goes into the user's own ``store`` (a file;
    default: the usual one in the cache folder, ``off``: none), where :func:`subbyte.compile` finds it.

    Raises InvalidInput for anything unknown and for more trials than a space holds, MissingDependency when nothing can
    measure, BrokenRecord for a damaged log.
    """
    whole(batch, "batch", 1)
    whole(seed, "seed")
    if trials is not None:
        whole(trials, "trials", 1)
    if top_k is not None:
        whole(top_k, "top_k")
    callbacks, stop = callables(callbacks, "callbacks"), callables(stop, "stop")
    if log is not None:
        file_path(log, "record log")
    given = landscape if isinstance(landscape, Landscape | None) else Landscape.load(landscape)
    asked = [workloads] if isinstance(workloads, str | ConvWorkload) else several(workloads, "workloads")
    if given is None and len(asked) == 1 and isinstance(asked[0], str) and _names_network(asked[0]):
        from subbyte.tune.network import tune_network

        return tune_network(
            asked[0], runner, strategy, trials, seed, log, resume, arch=arch, kind=kind, fixed=fixed, batch=batch,
            callbacks=callbacks, stop=stop, device=device, timeout=timeout, top_k=top_k, store=store,
        )  # fmt: skip
    wanted = _foreign(asked, given) or parse_workloads(asked)
    if given is not None and list(wanted) != [given.workload] and replayed(runner):
        raise InvalidInput(f"landscape {given.name} is of {given.workload.label}; tune exactly that workload with it")
    for workload in wanted if log is not None else ():
        prove_log(log_path(log, workload, len(wanted)), resume)
    records: list[StudyRecord] = []
    optima: dict[str, float] = {}
    skipped: dict[str, str] = {}
    remeasured: dict[str, Remeasurement] = {}
    with keeping(), Sources(runner, arch, kind, fixed, given, device, timeout) as sources:
        for workload in wanted:
            try:
                source, space = sources.of(workload)
            except (Unsupported, MissingDependency) as error:
                if len(wanted) == 1 or (isinstance(error, MissingDependency) and sources.shared_only):
                    raise
                skipped[workload.label] = str(error)
                continue
            except KeyboardInterrupt:  # while the space was listed: the results of earlier workloads are reported
                if not records:
                    raise
                records[-1] = replace(records[-1], ended="interrupted")
                break
            with Study(space, strategy, seed, log_path(log, workload, len(wanted)), resume, store) as study:
                # a space smaller than the default number is searched whole: only a number that was asked for can be too
                # large
                most = min(DEFAULT_TRIALS, study.most_trials) or None if trials == DEFAULT_TRIALS else trials
                records.append(study.run(source, most, batch, callbacks, stop))
            if study.ended == "exhausted" and not study.trials:
                raise Unsupported(nothing_in(space))
            optima.update(sources.optimum(source, workload))
            if study.ended == "interrupted":
                break
            count = default_top_k(source) if top_k is None else top_k
            try:
                again = remeasure(records[-1], source, count) if count > 1 else None
            except KeyboardInterrupt:
                records[-1] = replace(records[-1], ended="interrupted")
                break
            if again is not None:
                remeasured[workload.label] = again
                again.remember(study.memory, source.device, len(records[-1].trials))
    if not records:
        raise MissingDependency("nothing was tuned: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    return TuningReport(tuple(records), optima, skipped, remeasured)


def _names_network(text: str) -> bool:
    from subbyte.tune.network import is_network

    return is_network(text)


def _foreign(
    workloads: str | ConvWorkload | Iterable[str | ConvWorkload], given: Landscape | None
) -> list[ConvWorkload]:
    """The workload of a foreign kernel's landscape, if it was requested by name or spec."""
    if given is None or given.kind != FOREIGN:
        return []
    asked = [workloads] if isinstance(workloads, str | ConvWorkload) else list(workloads)
    known = (given.workload.label, given.workload.spec)
    return [given.workload] if len(asked) == 1 and str(asked[0]) in known else []

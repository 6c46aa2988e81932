"""``tune``: one study per workload, on a GPU or on recorded landscapes, and a report of what was found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from subbyte.arguments import checked
from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, MissingDependency, Unsupported, did_you_mean, shown
from subbyte.families.registry import families, family_of_kind, kind_named
from subbyte.files import slug
from subbyte.interrupts import keeping
from subbyte.measure.replay import ReplayRunner
from subbyte.measure.runner import Runner, parse_device
from subbyte.records.checked import callables, file_path, several, whole
from subbyte.records.describe import SpaceLike
from subbyte.records.foreign import FOREIGN
from subbyte.records.landscape import Landscape, find_landscape, shipped
from subbyte.records.log import prove_log
from subbyte.records.recorded_space import space_of
from subbyte.tune.finals import Finals, default_finalists, hold_finals
from subbyte.tune.outcome import TuningReport
from subbyte.tune.record import StudyRecord
from subbyte.tune.study import Callback, Stop, Study
from subbyte.workload import ConvWorkload
from subbyte.workload import workloads as parse_workloads

RUNNERS = ("auto", "cuda", "replay", "fake")
DEFAULT_ARCH = "sm_90a"
DEFAULT_TRIALS = 100


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
    kind: str = "paper",
    fixed: Mapping[str, Any] | None = None,
    landscape: Landscape | str | os.PathLike[str] | None = None,
    batch: int = 8,
    callbacks: Sequence[Callback] = (),
    stop: Sequence[Stop] = (),
    device: int | str | Sequence[int] = 0,
    timeout: float | None = None,
    finalists: int | None = None,
) -> TuningReport:
    """Tune each workload (a name, a spec, or several of them) and report the best configurations.

    ``runner`` is ``cuda`` (this machine's GPU), ``replay`` (``landscape``, or the shipped one), ``fake`` (made-up
    times), a Runner, or ``auto``: cuda where there is a GPU, else replay where a landscape is shipped. ``trials``
    counts the results of each study, those resumed included; None means the whole space. With several workloads each
    study writes its own log, ``FILE`` with the workload before its last suffix. Ctrl-C ends the tuning and keeps the
    best. ``fixed`` sets switches of the space (``{"layout": "nhwc"}``); a given landscape brings its own.

    A single network (``resnet50@8``) is tuned as a whole: ``trials`` is then what all its layers get together, spent
    where it pays (:func:`subbyte.tune.network.tune_network`), and the report is a NetworkReport.

    ``device`` is a GPU number, ``cuda:1``, ``any`` (one that nobody measures on), or several (``0,1``), which measure
    side by side; ``timeout`` the seconds a candidate may take on it. The ``finalists`` fastest (default 5; none with
    made-up times) are measured once more, side by side, and the report says which of them are a tie.

    Raises InvalidInput for anything unknown, MissingDependency when nothing can measure, BrokenRecord for a damaged
    log.
    """
    whole(batch, "batch", 1)
    whole(seed, "seed")
    if trials is not None:
        whole(trials, "trials", 1)
    if finalists is not None:
        whole(finalists, "finalists")
    callbacks, stop = callables(callbacks, "callbacks"), callables(stop, "stop")
    if log is not None:
        file_path(log, "record log")
    given = landscape if isinstance(landscape, Landscape | None) else Landscape.load(landscape)
    asked = [workloads] if isinstance(workloads, str | ConvWorkload) else several(workloads, "workloads")
    if given is None and len(asked) == 1 and isinstance(asked[0], str) and _names_network(asked[0]):
        from subbyte.tune.network import tune_network

        return tune_network(
            asked[0], runner, strategy, trials, seed, log, resume, arch=arch, kind=kind, fixed=fixed, batch=batch,
            callbacks=callbacks, stop=stop, device=device, timeout=timeout, finalists=finalists,
        )  # fmt: skip
    wanted = _foreign(asked, given) or parse_workloads(asked)
    if given is not None and list(wanted) != [given.workload] and _replayed(runner):
        raise InvalidInput(f"landscape {given.name} is of {given.workload.label}; tune exactly that workload with it")
    for workload in wanted if log is not None else ():
        prove_log(log_path(log, workload, len(wanted)), resume)
    records: list[StudyRecord] = []
    optima: dict[str, float] = {}
    skipped: dict[str, str] = {}
    finals: dict[str, Finals] = {}
    with keeping(), Sources(runner, arch, kind, fixed, given, device, timeout) as sources:
        for workload in wanted:
            try:
                source, space = sources.of(workload)
            except (Unsupported, MissingDependency) as error:
                if len(wanted) == 1 or (isinstance(error, MissingDependency) and sources.shared_only):
                    raise
                skipped[workload.label] = str(error)
                continue
            except KeyboardInterrupt:  # while the space was listed: what the workloads before brought is reported
                if not records:
                    raise
                records[-1] = replace(records[-1], ended="interrupted")
                break
            with Study(space, strategy, seed, log_path(log, workload, len(wanted)), resume) as study:
                records.append(study.run(source, trials, batch, callbacks, stop))
            if study.ended == "exhausted" and not study.trials:
                raise Unsupported(nothing_in(space))
            optima.update(sources.optimum(source, workload))
            if study.ended == "interrupted":
                break
            count = default_finalists(source) if finalists is None else finalists
            try:
                final = hold_finals(records[-1], source, count) if count > 1 else None
            except KeyboardInterrupt:
                records[-1] = replace(records[-1], ended="interrupted")
                break
            if final is not None:
                finals[workload.label] = final
    if not records:
        raise MissingDependency("nothing was tuned: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    return TuningReport(tuple(records), optima, skipped, finals)


class Sources(ExitStack):
    """Where the results of each workload come from: its runner and its space. Closes the runners that it opened.

    Raises InvalidInput for an unknown runner, or a landscape with another runner than replay.
    """

    def __init__(
        self,
        runner: str | Runner,
        arch: str | None,
        kind: str,
        fixed: Mapping[str, Any] | None,
        given: Landscape | None,
        device: int | str | Sequence[int] = 0,
        timeout: float | None = None,
    ) -> None:
        super().__init__()
        if runner not in RUNNERS if isinstance(runner, str) else not hasattr(runner, "run"):
            raise InvalidInput(f"unknown runner {shown(runner)}: {did_you_mean(runner, RUNNERS)}, or a Runner")
        if given is not None and not _replayed(runner):
            raise InvalidInput("a landscape goes with the runner replay")
        self._runner, self._given = runner, given
        self._arch, self._kind, self._fixed = arch, kind, fixed
        self._device, self._timeout = device, timeout
        self._shared = runner if not isinstance(runner, str) else None
        self.shared_only = (isinstance(runner, str) and runner == "cuda") or self._shared is not None

    def of(self, workload: ConvWorkload) -> tuple[Runner, SpaceLike]:
        """Runner and space of a workload. Raises Unsupported, MissingDependency with the reason."""
        source = self._shared or _choose(self._runner, workload, self._arch, self._kind, self._fixed, self._given)
        if isinstance(source, str):
            source = self._shared = self.enter_context(_open(source, self._device, self._timeout))
        return source, _space(workload, source, self._arch, self._kind, self._fixed)

    def not_covered(self, workload: ConvWorkload) -> str | None:
        """Why no kernel of the kind of space asked for covers a workload; None when one does."""
        return not_covered(workload, self._arch or DEFAULT_ARCH, self._kind)

    @staticmethod
    def optimum(runner: Runner, workload: ConvWorkload) -> dict[str, float]:
        """The landscape's best microseconds by spec, empty where it is unknown."""
        return {workload.spec: runner.landscape.best[1].microseconds} if isinstance(runner, ReplayRunner) else {}


def nothing_in(space: SpaceLike) -> str:
    """What to say of a space without a configuration that can be built."""
    kinds = getattr(space, "refused", {})
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    said = f"the {space.kind} space of {space.workload.label} holds nothing that can be built"
    return f"{said} ({counts}); try another kind of space or other switches"


def _replayed(runner: str | Runner) -> bool:
    """Whether a landscape goes with the runner."""
    return isinstance(runner, str) and runner in ("auto", "replay")


def _names_network(text: str) -> bool:
    from subbyte.tune.network import is_network

    return is_network(text)


def has_gpu() -> bool:
    """True when the driver shows a GPU."""
    from subbyte.gpu.driver import detect

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
    kind = kind_named(kind)[0]
    name = find_landscape(workload, arch, kind, fixed)
    if name is not None:
        return ReplayRunner(name)
    others = [one for one in shipped() if f".{kind}" in one]
    where = ", ".join([f"{kind} space", *([arch] if arch else []), *(f"{k}={v}" for k, v in (fixed or {}).items())])
    raise MissingDependency(
        f"nothing can measure {workload.label}: this machine shows no GPU and no landscape of it "
        f"({where}) is shipped; "
        + (f"shipped of this space: {', '.join(others)}; " if others else "")
        + "`subbyte landscape list` shows those there are, and the runner fake gives made-up times"
    )


def _open(name: str, device: int | str | Sequence[int] = 0, timeout: float | None = None) -> Runner:
    if name == "fake":
        from subbyte.measure.fake import FakeRunner

        return FakeRunner()
    from subbyte.measure.cuda_runner import CudaRunner, SeveralGpus

    numbers = parse_device(device)
    if numbers is not None and len(numbers) > 1:
        return SeveralGpus(numbers, timeout)
    return CudaRunner(device, timeout=timeout)


def _space(
    workload: ConvWorkload, runner: Runner, arch: str | None, kind: str, fixed: Mapping[str, Any] | None
) -> SpaceLike:
    from subbyte.families import space

    if isinstance(runner, ReplayRunner):
        recorded = runner.landscape.header["space"]
        family = family_of_kind(recorded["kind"])
        if family is None or family.slow_to_list:  # a foreign kernel, or a part of a space
            return space_of(runner.landscape)
        wanted = family.held(fixed or {})
        for name in fixed or {}:
            if recorded["fixed"].get(name) != wanted[name]:
                raise InvalidInput(
                    f"{name}={wanted[name]!r}: landscape {runner.landscape.name} was recorded with "
                    f"{name}={recorded['fixed'].get(name)!r}; choose another landscape or runner"
                )
        arch, kind, fixed = recorded["arch"], recorded["kind"], recorded["fixed"]
    else:
        arch = arch or getattr(runner, "arch", None) or DEFAULT_ARCH
        found = space(workload, arch, kind, **(fixed or {}))
        reason = not_covered(workload, arch, kind)
        if reason is not None:
            raise Unsupported(f"the {kind} space of {workload} holds nothing that can be built: {reason}")
        return found
    return space(workload, arch or DEFAULT_ARCH, kind, **(fixed or {}))


def not_covered(workload: ConvWorkload, arch: Arch | str, kind: str) -> str | None:
    """Why no kernel of a kind of space covers the workload, and which other family does; None when one does."""
    from subbyte.kernel.coverage import covered

    family = kind_named(kind)[1]
    reason = covered(workload, arch, family.name)
    if reason is None:
        return None
    for other in families().values():
        if other is not family and covered(workload, arch, other.name) is None:
            such = next(iter(other.kinds))
            return f"{reason}; the {other.name} family covers it: kind={such!r} (--space {such})"
    return reason


def log_path(log: str | os.PathLike[str] | None, workload: ConvWorkload, count: int) -> Path | None:
    """The log of one of ``count`` workloads."""
    if log is None:
        return None
    path = Path(log)
    return path if count == 1 else path.with_name(f"{path.stem}.{slug(workload.label)}{path.suffix}")

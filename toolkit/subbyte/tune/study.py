"""A study: one space, one strategy, the results so far. Everything, ``run`` included, goes through ``ask`` and
``tell``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, prod
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from subbyte.arguments import checked
from subbyte.charts import Charted
from subbyte.errors import InvalidInput, shown
from subbyte.kernel.own import Memory
from subbyte.measure.objective import told
from subbyte.measure.runner import Runner, refuse_unlike
from subbyte.records.checked import callables, integer, searchable, several, whole
from subbyte.records.describe import SpaceLike, arch_name, describe_space, describe_workload, now, versions
from subbyte.records.log import FORMAT, SCHEMA, Entry, LogWriter
from subbyte.records.recorded_space import as_logged
from subbyte.records.result import Failed, Measured, Result
from subbyte.tune.record import BestCurve, StudyRecord, Trial, best_curve, best_of
from subbyte.tune.resuming import take_over
from subbyte.tune.running import as_completed, in_batches
from subbyte.tune.strategy import Strategy, made_strategy

if TYPE_CHECKING:
    from subbyte.tune.background import StudyHandle

Callback = Callable[["Study", Trial, Result], None]
"""Called after each result is recorded: ``(study, trial, result)``."""
Stop = Callable[["Study"], bool]
"""Checked after each result (or each ``at_once`` of them); true ends the run."""


class Study(Charted):
    """Tunes one convolution.

    ``strategy`` is a Strategy, or text ``NAME[:key=value...]``; ``log`` a file to which every result is appended (see
    :mod:`subbyte.records.log`); with ``resume``, results in an existing log are reused instead of being measured
    again. Each new best that was measured on a GPU goes into the user's own ``store`` (default: the usual one,
    ``off``: none), where :func:`subbyte.compile` finds it. Thread-safe. Raises InvalidInput for an
    unknown strategy, an existing log without ``resume``, or a log of another study; BrokenRecord for a damaged one.
    """

    @checked
    def __init__(
        self,
        space: SpaceLike,
        strategy: str | Strategy = "random",
        seed: int = 0,
        log: str | os.PathLike[str] | None = None,
        resume: bool = False,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        whole(integer(seed, "seed"), "seed")
        searchable(space)
        if resume and log is None:
            raise InvalidInput("resume needs the log to resume from: give log=FILE (--log FILE)")
        space = as_logged(space, log) if resume else space
        self.space = space
        self.seed = seed
        self.strategy: Strategy = made_strategy(strategy, space, seed)
        self.ended = ""
        self._lock = threading.RLock()
        self._told: list[Trial] = []
        self._told_indices: set[int] = set()
        self._open: dict[int, Trial] = {}
        self._again: list[Trial] = []
        self._numbers = 0
        self._asks = 0
        self._header = self._describe()
        self._log = LogWriter(log, resume) if log is not None else None
        where = str(self._log.path.absolute()) if self._log is not None else ""
        self.memory = Memory(space.workload, arch_name(space), "tune", store, log=where)
        if self._log is not None and not self._log.empty:
            try:
                take_over(self, self._log)
            except BaseException:
                self._log.close()
                raise
            self.memory.least = self.curve.best_microseconds[-1] or inf if self._told else inf

    # ---- ask and tell ------------------------------------------------------------------------------------------

    def ask(self, n: int = 1) -> list[Trial]:
        """At most ``n`` trials to evaluate, none of them seen before; an empty list when the space is exhausted.

        Trials that were asked for but never told (by an interrupted run) come first, in an ask of their own.
        """
        n = whole(n, "ask: n", 1)
        with self._lock:
            if self._again:
                again, self._again = self._again[:n], self._again[n:]
                self._open.update((trial.index, trial) for trial in again)
                return again
            trials: list[Trial] = []
            while len(trials) < n:
                wanted = n - len(trials)
                fresh, proposed = self._ask_strategy(wanted, now())
                trials += fresh
                self._open.update((trial.index, trial) for trial in fresh)
                if proposed < wanted:  # the space is exhausted
                    break
            return trials

    def tell(self, trial: Trial | int, result: Result | float | Sequence[float] | Exception | SystemExit) -> Trial:
        """Record the result of a trial, or of any index of the space, asked for or not; returns the finished trial.

        ``result`` is what a runner returns or, for a kernel of your own, its time in microseconds, samples (their
        median counts), or the exception it raised; NaN and other numbers that are not times are recorded as a failure
        with that reason. The result is on disk when this returns. Raises InvalidInput for an index outside the space or
        already told, and for a result from another kind of device than the study's.
        """
        index = trial.index if isinstance(trial, Trial) else trial
        if type(index) is not int or not 0 <= index < len(self.space):
            raise InvalidInput(f"tell({shown(index)}): the space has the indices 0 to {len(self.space) - 1}")
        if not isinstance(result, Measured | Failed):
            if not isinstance(result, float | int | list | tuple | Exception | SystemExit) or isinstance(result, bool):
                raise InvalidInput(
                    f"tell({index}, {shown(result)}): expected Measured(microseconds) or Failed(kind, reason) of "
                    "subbyte.measure, microseconds or a list of such samples, or an exception"
                )
            result = told(result)
        with self._lock:
            if index in self._told_indices:
                raise InvalidInput(f"tell({index}): this configuration already has a result in the study")
            refuse_unlike(self._header["device"] or {}, result.device)
            known = self._open.get(index) or next((t for t in self._again if t.index == index), None)
            if known is None:
                known = Trial(self._numbers, index, self.space.config(index), started=now())
                self._numbers += 1
            done = replace(known, result=result, finished=now())
            if self._log is not None:
                self._log.write_header(self._header)
                self._log.write(_entry(done))
            self._accept(done, result)
            self.memory.told(done.config, result, self._header["device"] or {}, len(self._told))
            self._open.pop(index, None)
            self._again = [other for other in self._again if other.index != index]
            return done

    def give_back(self, asked: Sequence[Trial]) -> None:
        """Return trials that were asked for and will not be told; the next ask gives them out again."""
        with self._lock:
            open_ones = [trial for trial in asked if self._open.pop(trial.index, None) is not None]
            left = [trial for trial in open_ones if trial.index not in self._told_indices]
            self._again = sorted([*self._again, *left], key=lambda trial: trial.number)

    @checked
    def queue(self, configs: Iterable[Any]) -> int:
        """Have configurations evaluated before anything the strategy proposes; returns how many were accepted.

        Configurations outside the space, rejected by a constraint, or already asked or told are skipped.
        The others appear in the log as results that nobody asked for.
        """
        with self._lock:
            known = self._told_indices | self._open.keys() | {trial.index for trial in self._again}
            before = len(self._again)
            for config in several(configs, "configurations"):
                try:
                    index = self.space.index(config)
                except InvalidInput:
                    continue
                if index not in known and self.space.check(index) is None:
                    known.add(index)
                    self._again.append(Trial(self._numbers, index, self.space.config(index), started=now()))
                    self._numbers += 1
            return len(self._again) - before

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Trials with a result, in the order told."""
        with self._lock:
            return tuple(self._told)

    @property
    def best(self) -> Trial | None:
        """The fastest trial so far, or None."""
        return best_of(self.trials)

    @property
    def curve(self) -> BestCurve:
        """The best-so-far curve."""
        return best_curve(self.trials)

    @property
    def record(self) -> StudyRecord:
        """Everything so far, as plain data."""
        return StudyRecord(self._header, self.trials, self.ended, path=str(self._log.path) if self._log else "")

    # ---- running -----------------------------------------------------------------------------------------------

    def run(
        self,
        runner: Runner,
        trials: int | None = None,
        batch: int = 8,
        callbacks: Sequence[Callback] = (),
        stop: Sequence[Stop] = (),
    ) -> StudyRecord:
        """Ask, evaluate and tell until the study holds ``trials`` results (None: until the space is exhausted).

        The strategy is asked for at most ``batch`` configurations at a time, and for fewer while it learns more from
        each single result (``auto``, as long as it has few); the runner gets as many at once as its ``at_once`` says (1
        by default), and each result is recorded before the next is measured. A runner with several devices (``stream``)
        gets one whenever it has room, and ``batch`` has no effect: at most two per device are pending, the order of
        results is not determined, and the log says so. Ctrl-C ends the run and keeps what is recorded: the returned
        record's ``ended`` is then ``interrupted``, and a later ``run`` begins with the pending trials. Raises what a
        callback raises, and InvalidInput when the runner cannot serve this space or measures on another device than the
        log's, and for more trials than the space holds.
        """
        batch = whole(batch, "batch", 1)
        trials = self.allowed_trials(trials)
        if not hasattr(runner, "run"):
            such = "subbyte.measure.replay.ReplayRunner(landscape)"
            raise InvalidInput(f"runner={shown(runner)}: expected a Runner, such as {such}")
        callbacks, stop = callables(callbacks, "callbacks"), callables(stop, "stop")
        self._begin(runner)
        self.ended = ""
        try:
            stream = getattr(runner, "stream", None)
            if stream is None:
                self.ended = in_batches(self, runner, trials, batch, callbacks, stop)
            else:
                self.ended = as_completed(self, stream, trials, callbacks, stop)
        except KeyboardInterrupt:
            self.ended = "interrupted"
        return self.record

    def start(
        self,
        runner: Runner,
        trials: int | None = None,
        batch: int = 8,
        callbacks: Sequence[Callback] = (),
        stop: Sequence[Stop] = (),
    ) -> StudyHandle:
        """``run`` in a background thread; the handle has ``stop()``, ``wait()`` and ``progress``.

        Callbacks are called in that thread. Raises InvalidInput for more trials than the space holds.
        """
        from subbyte.tune.background import StudyHandle

        self.allowed_trials(trials)
        return StudyHandle(self, runner, trials, batch, callbacks, stop)

    @property
    def most_trials(self) -> int:
        """The size of the space: its valid configurations or, if it is too large to be listed, all combinations."""
        from subbyte.tune.search.grid import LIST_LIMIT  # only searches need to load the search modules

        combinations = prod(len(values) for values in self.space.knobs.values())
        return len(self.space.valid) if combinations <= LIST_LIMIT else combinations

    def allowed_trials(self, trials: int | None) -> int | None:
        """``trials`` if the space holds that many; None means all. Raises InvalidInput for more."""
        if trials is None or whole(trials, "trials", 1) <= self.most_trials:
            return trials
        held = f"this space holds {self.most_trials:,} configurations"
        raise InvalidInput(f"trials={trials:,}: {held}; give at most that, or None (--trials all) for all")

    def close(self) -> None:
        """Close the log; may be called twice. A study with a log can then no longer be told results."""
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        best = self.best
        found = f"best {best.microseconds:.2f} us" if best and best.microseconds else "no success"
        return f"Study({self.space.workload.label!r}, {self.strategy.name}, {len(self._told)} trials, {found})"

    def _repr_html_(self) -> str:
        return self.record._repr_html_()

    # ---- inside ------------------------------------------------------------------------------------------------

    def _ask_strategy(self, n: int, started: str) -> tuple[list[Trial], int]:
        """What the strategy proposes, and how many that were: an index that is pending already was queued, and is not
        repeated."""
        event = (self._asks, n, len(self._told))
        proposed = self.strategy.ask(n)
        self._asks += 1
        trials = [
            Trial(self._numbers + place, index, self.space.config(index), ask=event, started=started)
            for place, index in enumerate(index for index in proposed if index not in self._open)
        ]
        self._numbers += len(trials)
        return trials, len(proposed)

    def _accept(self, trial: Trial, result: Result) -> None:
        self._told.append(trial)
        self._told_indices.add(trial.index)
        self.strategy.tell(trial.index, result)

    def _describe(self, device: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {
            "format": FORMAT, "schema": SCHEMA,
            "workload": describe_workload(self.space.workload), "space": describe_space(self.space), "seed": self.seed,
            "strategy": {"name": self.strategy.name, "options": dict(self.strategy.options)},
            "device": dict(device) if device else None, "versions": versions(), "created": now(),
        }  # fmt: skip

    def _begin(self, runner: Runner) -> None:
        """Let the runner reject the space; note the device, or reject a different one."""
        check = getattr(runner, "check", None)
        if check is not None:
            check(self.space)
        known = self._header["device"]
        if known is None and not self._told:
            self._header["device"] = dict(runner.device)
        elif known is not None:
            refuse_unlike(known, runner.device)
        if self._log is not None:
            self._log.write_header(self._header)


def _entry(trial: Trial) -> Entry:
    assert trial.result is not None
    return Entry(trial.number, trial.index, trial.config, trial.result, trial.ask, trial.started, trial.finished)

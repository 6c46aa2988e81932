"""Whole tunings in a background thread, for notebooks: the cell returns, Stop works, the best result is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from subbyte.records.result import Result
from subbyte.tune.record import Trial
from subbyte.tune.tuning import tune

if TYPE_CHECKING:
    from subbyte.tune.outcome import TuningReport
    from subbyte.tune.study import Study


class TuningHandle:
    """Returned by :func:`start_tuning`. Stopping lets the measurement in flight finish, so that nothing is lost."""

    def __init__(self, tune: Callable[..., TuningReport], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._stopping = threading.Event()
        self._report: TuningReport | None = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._studies: dict[str, Study] = {}
        callbacks = (*options.pop("callbacks", ()), self._note)
        stop = (*options.pop("stop", ()), lambda _: self._stopping.is_set())
        options = {**options, "callbacks": callbacks, "stop": stop}
        self._thread = threading.Thread(
            target=self._work, args=(tune, arguments, options), name="subbyte-tuning", daemon=True
        )
        self._thread.start()

    def _work(self, tune: Callable[..., TuningReport], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        try:
            self._report = tune(*arguments, **options)
        except BaseException as error:  # raised again by wait(); a traceback from a thread appears in an unrelated cell
            self._error = error

    def _note(self, study: Study, _trial: Trial, _result: Result) -> None:
        with self._lock:
            self._studies[study.space.workload.label] = study

    def stop(self) -> None:
        """Ask the tuning to end after the measurement in flight. Returns at once; may be called twice."""
        self._stopping.set()

    def wait(self, timeout: float | None = None) -> TuningReport | None:
        """Block until the tuning ends; returns its report, or None if ``timeout`` seconds pass first.

        Interrupting the wait (Ctrl-C, the stop button) stops the tuning. Raises any exception of the tuning.
        """
        try:
            self._thread.join(timeout)
        except (KeyboardInterrupt, asyncio.CancelledError):
            self.stop()
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._report

    @property
    def running(self) -> bool:
        """Whether the tuning is still running."""
        return self._thread.is_alive()

    @property
    def best(self) -> dict[str, float]:
        """Best time so far in microseconds by workload; cheap, from any thread."""
        with self._lock:
            studies = dict(self._studies)
        found = {label: study.best for label, study in studies.items()}
        return {label: best.microseconds for label, best in found.items() if best and best.microseconds is not None}

    @property
    def done(self) -> int:
        """Number of results so far."""
        with self._lock:
            return sum(len(study.trials) for study in self._studies.values())

    def __repr__(self) -> str:
        state = "running" if self.running else str(self._error or "ended")
        return f"TuningHandle({state}, {self.done} trials of {len(self.best)} workloads)"


def start_tuning(*arguments: Any, **options: Any) -> TuningHandle:
    """:func:`subbyte.tune` with these arguments in a background thread: a workload, several, or a network."""
    return TuningHandle(tune, arguments, options)

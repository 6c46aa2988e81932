"""Studies in a background thread, for notebooks: the cell returns, Stop works, the best result is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from subbyte.tune.record import StudyRecord

if TYPE_CHECKING:
    from subbyte.measure.runner import Runner
    from subbyte.tune.study import Callback, Stop, Study


@dataclass(frozen=True)
class Progress:
    """Progress of a running study. ``total`` is None when it runs until the space is exhausted."""

    done: int
    total: int | None
    best_microseconds: float | None
    running: bool
    ended: str
    error: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


class StudyHandle:
    """Returned by :meth:`Study.start`. Stopping lets the measurement in flight finish, so that nothing is lost."""

    def __init__(
        self,
        study: Study,
        runner: Runner,
        trials: int | None,
        batch: int,
        callbacks: Sequence[Callback],
        stop: Sequence[Stop],
    ) -> None:
        self.study = study
        self._total = trials
        self._stopping = threading.Event()
        self._record: StudyRecord | None = None
        self._error: BaseException | None = None
        conditions = (*stop, lambda _: self._stopping.is_set())
        arguments = (runner, trials, batch, tuple(callbacks), conditions)
        self._thread = threading.Thread(target=self._work, args=arguments, name="subbyte-study", daemon=True)
        self._thread.start()

    def _work(self, *arguments: Any) -> None:
        try:
            self._record = self.study.run(*arguments)
        except BaseException as error:  # raised again by wait(); a traceback from a thread appears in an unrelated cell
            self._error = error

    def stop(self) -> None:
        """Ask the study to end after the measurement in flight. Returns at once; may be called twice."""
        self._stopping.set()

    def wait(self, timeout: float | None = None) -> StudyRecord:
        """Block until the study ends or ``timeout`` seconds pass; returns the record so far.

        Interrupting the wait (Ctrl-C, the stop button) stops the study. Raises any exception of the run.
        """
        try:
            self._thread.join(timeout)
        except (KeyboardInterrupt, asyncio.CancelledError):
            self.stop()
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._record if self._record is not None else self.study.record

    @property
    def progress(self) -> Progress:
        """Current progress; cheap, from any thread."""
        best = self.study.best
        running = self._thread.is_alive()
        return Progress(
            len(self.study.trials), self._total, best.microseconds if best else None, running,
            "" if running else self.study.ended, str(self._error or ""),
        )  # fmt: skip

    def __repr__(self) -> str:
        now = self.progress
        state = "running" if now.running else now.error or now.ended
        return f"StudyHandle({state}, {now.done} of {now.total if now.total is not None else 'all'} trials)"

"""Studies side by side with one Pause and one Stop button, and few updates however many trials there are."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.measure.runner import Runner
from subbyte.tune.background import StudyHandle
from subbyte.tune.record import StudyRecord
from subbyte.tune.study import Study

SHORTEST_INTERVAL = 0.1  # seconds between two updates; longer studies are sent less often
TRIALS_PER_SECOND = 2000
PATIENCE = 5.0  # seconds that studies are given to end: a measurement in flight is finished


class Updates:
    """Calls ``show`` soon after the last of many requests, at most ten times a second."""

    def __init__(self, show: Callable[[], None]) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._shown = 0.0
        self._timer: threading.Timer | None = None

    def request(self, trials: int) -> None:
        """Something changed; ``trials`` is how much there is to show."""
        with self._lock:
            if self._timer is None:
                wait = self._shown + max(SHORTEST_INTERVAL, trials / TRIALS_PER_SECOND) - time.monotonic()
                self._timer = threading.Timer(max(wait, 0.0), self._now)
                self._timer.daemon = True
                self._timer.start()

    def _now(self) -> None:
        with self._lock:
            self._timer, self._shown = None, time.monotonic()
        self._show()


class Session:
    """Runs studies in threads; ``ended(problem)`` is called once, when all of them have ended."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        self._handles: list[StudyHandle] = []
        self._going, self._over = threading.Event(), threading.Event()
        self._going.set()
        self._stopping = False

    def start(self, studies: Sequence[Study], runner: Runner, trials: int | None, **options: Any) -> None:
        """Start every study in a thread of its own; ``options`` as for :meth:`Study.start`."""
        stop = (*options.pop("stop", ()), self._wait_while_paused)
        self._handles = [study.start(runner, trials, stop=stop, **options) for study in studies]
        threading.Thread(target=self._await_end, name="subbyte-monitor", daemon=True).start()

    def control(self, paused: bool, stopping: bool) -> None:
        """Prevent trials from starting, let them continue, or end all studies."""
        self._stopping = stopping
        for handle in self._handles if stopping else ():
            handle.stop()
        if paused and not stopping:
            self._going.clear()
        else:
            self._going.set()

    def wait(self, timeout: float | None) -> tuple[StudyRecord, ...]:
        """Block until all have ended, or ``timeout`` seconds have passed; returns their records so far. Ctrl-C stops
        them all.

        Raises what a study raised, and InvalidInput if none was started.
        """
        if not self._handles:
            raise InvalidInput("nothing was started here: use TuningMonitor.start(studies, runner)")
        try:
            self._over.wait(timeout)
        except (KeyboardInterrupt, asyncio.CancelledError):
            self.control(False, True)
            self._over.wait()
        return tuple(handle.wait(0) for handle in self._handles)

    def ends(self, timeout: float = PATIENCE) -> bool:
        """Whether all that was started has ended, within ``timeout`` seconds."""
        return not self._handles or self._over.wait(timeout)

    def _await_end(self) -> None:
        problem = ""
        for handle in self._handles:
            try:
                handle.wait()
            except BaseException as error:  # of the study's thread: said in the view, raised again by wait()
                problem = f"A study ended with an error: {error}"
        self._ended(problem)
        self._over.set()

    def _wait_while_paused(self, _study: Study) -> bool:
        self._going.wait()
        return self._stopping

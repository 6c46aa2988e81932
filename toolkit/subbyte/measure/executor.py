"""Measuring on several GPUs or machines, through any executor with ``submit``.

``concurrent.futures`` executors, :class:`~subbyte.measure.worker.WorkerPool` (processes that may die) and the client of
a Dask cluster (``distributed.Client``) have been tried::

    with ExecutorRunner(Client("tcp://head:8786"), partial(CudaRunner, "any"), at_once=4) as runner:
        subbyte.tune("resnet50@8", runner, trials=400)

In each process that gets a task, the runner is made once, by ``make``, and kept. Every result says which device it came
from, and results of different kinds of device are never mixed.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from subbyte.errors import InvalidInput, MissingDependency, SubbyteError, Unsupported, in_words
from subbyte.measure.runner import Runner, RunnerBase, refuse_unlike
from subbyte.measure.worker import WorkerDied, WorkerTimeout
from subbyte.records.result import Failed, Result
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


class FutureLike(Protocol):
    """The parts of a future that are used."""

    def result(self) -> Any:
        """Wait for the value, or raise."""
        ...

    def cancel(self) -> Any:
        """Cancel the task if it has not begun."""
        ...

    def add_done_callback(self, function: Callable[[Any], Any], /) -> Any:
        """Have ``function`` called, on any thread, when the value is known or the task has failed."""
        ...


class ExecutorLike(Protocol):
    """The parts of an executor that are used."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> FutureLike:
        """Run ``function(*arguments)`` somewhere."""
        ...


class ExecutorRunner(RunnerBase):
    """Measures ``at_once`` configurations at a time through ``executor``; set it to the number of devices.

    ``make`` is called in the executor's processes and returns a runner: a class or function of an importable module, or
    ``functools.partial`` of one, such as ``partial(CudaRunner, "any")``, which takes a GPU nobody else holds. The
    caller owns the executor and closes it. Raises InvalidInput for an ``executor`` without ``submit``,
    MissingDependency when no process can make the runner.
    """

    def __init__(self, executor: ExecutorLike, make: Callable[[], Runner], at_once: int) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise InvalidInput(f"executor is a {type(executor).__name__}: must have submit(function, *arguments)")
        if at_once < 1:
            raise InvalidInput(f"at_once={at_once}: must be at least 1")
        self.executor, self.at_once = executor, at_once
        try:
            self._make = pickle.dumps(make)
        except Exception as error:  # pickle raises what the objects' own methods raise
            raise InvalidInput(f"make cannot be sent to another process ({error}): define it in a module") from None
        try:
            self.device: Mapping[str, Any] = self._submit(_describe, self._make).result()
        except SubbyteError:
            raise
        except Exception as error:  # every executor has its own
            raise MissingDependency(f"the executor cannot make a runner: {in_words(error)}") from None
        self.arch: str | None = self.device.get("arch")

    def run(self, workload: ConvWorkload, configs: Sequence[Configuration]) -> list[Result]:
        """One result per configuration, in order."""
        return list(self.iterate(workload, configs))

    def iterate(self, workload: ConvWorkload, configs: Iterable[Configuration]) -> Generator[Result, None, None]:
        """Results in order, each as soon as it and all before it are known. Raises as :meth:`stream`."""
        early: dict[int, Result] = {}
        due = 0
        with closing(self.stream(workload, configs)) as known:
            for place, result in known:
                early[place] = result
                while due in early:
                    yield early.pop(due)
                    due += 1

    def stream(
        self, workload: ConvWorkload, configs: Iterable[Configuration]
    ) -> Generator[tuple[int, Result], None, None]:
        """Position and result of each configuration, as they become known.

        ``at_once`` are measured at a time, and as many more are announced as the next ones: no further one is drawn
        from ``configs`` before a result has been handed over, so that a search decides as late as it can. A task whose
        process died is one failure. Raises InvalidInput when a result is of another kind of device, MissingDependency
        when the executor is beyond repair.
        """
        drawn = enumerate(configs)
        following: deque[tuple[int, Configuration]] = deque()
        running: dict[int, FutureLike] = {}
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        try:
            while True:
                while len(following) + len(running) < max(2 * self.at_once, 3):  # a single device builds ahead too
                    if (one := next(drawn, None)) is None:
                        break
                    following.append(one)
                while following and len(running) < self.at_once:
                    place, config = following.popleft()
                    likely = min(self.at_once, len(following))  # what this process may get next
                    ahead = [following[likely - 1][1]] if likely else []
                    running[place] = future = self._submit(_measure, self._make, workload, config, ahead)
                    future.add_done_callback(partial(_note, ended, place))
                if not running:
                    return
                place = ended.get()
                yield place, self._collect(running.pop(place))
        finally:
            for future in running.values():
                future.cancel()

    def rematch(self, workload: ConvWorkload, configs: Sequence[Configuration], rounds: int) -> list[list[float]]:
        """Time configurations against each other on one of the devices: microseconds by configuration and round.

        Raises SubbyteError when that device's runner cannot re-measure, or one of them fails now.
        """
        try:
            times, device = self._submit(_rematch, self._make, workload, list(configs), rounds).result()
        except SubbyteError:
            raise
        except Exception as error:  # every executor has its own
            raise SubbyteError(f"the process was lost: {in_words(error)}") from None
        refuse_unlike(self.device, device)
        found: list[list[float]] = times
        return found

    def close(self) -> None:
        """Close the runners made in this process (an executor of threads) and on a Dask cluster; those in other
        processes are closed when their process ends. May be called twice."""
        if hasattr(self.executor, "scheduler_info"):
            with contextlib.suppress(Exception):  # a cluster that is gone has no runners left
                self.executor.run(_close, self._make)  # type: ignore[attr-defined]
        _close(self._make)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> FutureLike:
        # Dask treats equal calls as one task and would return its value twice
        options = {"pure": False} if hasattr(self.executor, "scheduler_info") else {}
        return self.executor.submit(function, *arguments, **options)

    def _collect(self, future: FutureLike) -> Result:
        try:
            result, device = future.result()
        except (InvalidInput, MissingDependency):
            raise
        except WorkerTimeout as error:
            return Failed("timeout", str(error))
        except (Exception, SystemExit) as error:  # a broken pool, a lost machine, a task that was cancelled, or exits
            if _is_beyond_repair(error):
                raise MissingDependency(
                    f"the executor is broken ({in_words(error)}); subbyte.measure.worker.WorkerPool replaces processes "
                    "that die"
                ) from None
            return Failed("crash", f"the measuring process was lost: {in_words(error)}")
        refuse_unlike(self.device, device)
        return replace(result, device=device)


def _is_beyond_repair(error: BaseException) -> bool:
    from concurrent.futures import BrokenExecutor

    return isinstance(error, BrokenExecutor) and not isinstance(error, WorkerDied)


def _note(ended: queue.SimpleQueue[int], place: int, _: Any) -> None:
    ended.put(place)


_runners: dict[bytes, Runner] = {}
_lock = threading.Lock()


def _runner(make: bytes) -> Runner:
    """This process's runner, made on first use. Call with the lock held."""
    if make not in _runners:
        made: Runner = pickle.loads(make)()
        _runners[make] = made
    return _runners[make]


def _close(make: bytes) -> None:
    with _lock:
        runner = _runners.pop(make, None)
    if runner is not None:
        runner.close()


def _describe(make: bytes) -> dict[str, Any]:
    with _lock:
        runner = _runner(make)
        arch = getattr(runner, "arch", None)
        return {**runner.device, **({"arch": arch} if arch else {})}


def _rematch(
    make: bytes, workload: ConvWorkload, configs: Sequence[Configuration], rounds: int
) -> tuple[list[list[float]], dict[str, Any]]:
    with _lock:
        runner = _runner(make)
        rematch = getattr(runner, "rematch", None)
        if rematch is None:
            raise Unsupported(f"a {type(runner).__name__} cannot time configurations side by side")
        return rematch(workload, configs, rounds), dict(runner.device)


def _measure(
    make: bytes, workload: ConvWorkload, config: Configuration, ahead: Sequence[Configuration]
) -> tuple[Result, dict[str, Any]]:
    with _lock:  # an executor may use several threads in a process, but the device serves one at a time
        runner = _runner(make)
        build_ahead = getattr(runner, "build_ahead", None)
        if build_ahead is not None:
            build_ahead(workload, [config, *ahead])
        started = time.monotonic()
        result = runner.run(workload, [config])[0]
        seconds = {"turn": round(time.monotonic() - started, 4), **result.seconds}
    return replace(result, seconds=seconds), dict(result.device or runner.device)

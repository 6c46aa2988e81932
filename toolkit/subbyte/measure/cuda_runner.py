"""The runner that measures on a GPU of this machine: worker processes build, and one process per GPU measures.

Candidates are built ahead by ``workers`` processes while one process per GPU verifies and times them one by one.
Whatever a candidate does to its process costs only that candidate: the process is replaced, the reason recorded.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from subbyte.errors import InvalidInput, MissingDependency, SubbyteError
from subbyte.gpu.lock import GpuLock, claim
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.executor import ExecutorRunner
from subbyte.measure.gpu_worker import (
    Body,
    Build,
    Built,
    GpuBody,
    ask,
    begin,
    build_candidate,
    load_builder,
    usable_cpus,
)
from subbyte.measure.runner import Device, RunnerBase, parse_device
from subbyte.measure.worker import Worker, WorkerDied, WorkerPool, WorkerTimeout
from subbyte.records.result import Failed, Result
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

DEFAULT_TIMEOUT_S = 20.0
BUILD_TIMEOUT_S = 180.0
MOST_WORKERS = 16
_GRACE_S = 10.0
_PREPARE_S = 300.0
_REOPEN_TRIES = 3


@dataclass(frozen=True)
class MakeGpuBody:
    """Makes the body of a measuring process; it is pickled to get there. ``devices`` None means any GPU."""

    devices: tuple[int, ...] | None
    protocol: TimingProtocol
    seed: int

    def __call__(self) -> Body:
        """Make the body, in the calling process."""
        return GpuBody(self.devices, self.protocol, self.seed)


class CudaRunner(RunnerBase):
    """Measures configurations on one GPU, building them for its architecture (or ``arch``).

    ``device`` is a number, ``cuda:1``, ``any``, or several numbers: the first GPU on which nobody else measures. The
    GPU is held exclusively until ``close``. A candidate may take ``timeout`` seconds on the GPU; its build may take
    three minutes. ``workers`` processes build in parallel (default: one per processor, at most 16). Operands are drawn
    once per workload from ``seed``. ``build`` and ``make_body`` (for tests) are functions of importable modules.
    ``warm``: building processes load what they need while the GPU is opened, not with their first candidate.
    Several threads may use it: their builds run in parallel, their measurements take turns. Raises MissingDependency
    without a GPU or when it is in use, InvalidInput for a device that does not exist.
    """

    def __init__(
        self,
        device: Device = 0,
        protocol: TimingProtocol | None = None,
        arch: str | None = None,
        seed: int = 0,
        build: Build | None = None,
        *,
        timeout: float | None = None,
        workers: int | None = None,
        make_body: Callable[..., Callable[[], Body]] = MakeGpuBody,
        build_timeout: float = BUILD_TIMEOUT_S,
        warm: bool = False,
    ) -> None:
        how = protocol or TimingProtocol()
        limit = timeout if timeout is not None else how.timeout_s
        if not 0 < limit < float("inf"):
            raise InvalidInput(f"timeout={timeout!r}: must be a number of seconds above 0")
        self.protocol = replace(how, timeout_s=limit)
        self.timeout = limit
        self._make = partial(make_body, protocol=self.protocol, seed=seed)  # still needs the devices
        self._build = build
        self._worker = Worker("measuring")
        self._turn = threading.Lock()
        self._prepared: set[ConvWorkload] = set()
        self._begun: dict[tuple[ConvWorkload, Configuration], Future[Built | Failed]] = {}
        self._ahead = 2 * (workers or min(usable_cpus(), MOST_WORKERS))
        self._pool = WorkerPool(self._ahead // 2, "building", build_timeout)
        self.device: Mapping[str, Any] = {}
        self._exclusive = make_body is MakeGpuBody  # only a real GPU is locked
        self._claim: GpuLock | None = None
        try:
            for _ in range(self._ahead // 2 if warm else 0):
                self._pool.submit(load_builder)
            self._open(parse_device(device))
        except BaseException:
            self.close()
            raise
        self.arch = arch or str(self.device["arch"])

    def run(self, workload: ConvWorkload, configs: Sequence[Configuration]) -> list[Result]:
        """One result per configuration, in order."""
        return list(self.iterate(workload, configs))

    def iterate(self, workload: ConvWorkload, configs: Iterable[Configuration]) -> Generator[Result, None, None]:
        """Results in order, each as soon as it is known, while the next ones are built.

        Closing the generator abandons what is not measured yet.
        """
        source = iter(configs)
        waiting: deque[Future[Built | Failed]] = deque()
        try:
            while True:
                while len(waiting) < self._ahead and (config := next(source, None)) is not None:
                    waiting.append(self._begin_build(workload, config))
                if not waiting:
                    return
                built = _built(waiting.popleft())
                with self._turn:
                    result = self._measure(workload, built)
                yield result
        finally:
            for future in waiting:
                future.cancel()

    def build_ahead(self, workload: ConvWorkload, configs: Iterable[Configuration]) -> None:
        """Start building the first configurations of those that will be asked for soon, as many as are built ahead;
        returns at once. Builds for earlier calls make room for these."""
        wanted = [(workload, config) for config in configs][: self._ahead]
        others = [one for one in self._begun if one not in wanted]
        for one in wanted:
            if one not in self._begun:
                self._begun[one] = self._begin_build(*one)
        for one in others[: max(0, len(self._begun) - self._ahead)]:
            self._begun.pop(one).cancel()

    def prepare(self, workload: ConvWorkload) -> None:
        """Make operands and exact result now, for instance while candidates are built; otherwise the first one waits
        for them. Raises as :meth:`run`."""
        with self._turn:
            self._get_ready(workload)

    def _begin_build(self, workload: ConvWorkload, config: Configuration) -> Future[Built | Failed]:
        begun = self._begun.pop((workload, config), None)
        if begun is not None:
            return begun
        return self._pool.submit(build_candidate, self._build, workload, config, self.arch)

    def rematch(self, workload: ConvWorkload, configs: Sequence[Configuration], rounds: int) -> list[list[float]]:
        """Time configurations against each other in ``rounds`` of a random order: microseconds by configuration and
        round.

        Raises SubbyteError when one of them fails now, or the process dies.
        """
        futures = [self._begin_build(workload, config) for config in configs]
        kernels = []
        for built in map(_built, futures):
            if isinstance(built, Failed):
                raise SubbyteError(f"a configuration could not be built again: {built.reason}")
            kernels.append((built.cubin, built.launch))
        limit = self.timeout * (len(kernels) + 1) + _GRACE_S
        with self._turn:
            self._get_ready(workload)
            try:
                times: list[list[float]] = self._worker.call(
                    ask, "interleave", workload, kernels, rounds, timeout=limit
                )
            except SubbyteError:
                self._drop_process()
                raise
        return times

    def close(self) -> None:
        """End all processes and release the GPU. May be called twice; the runner cannot be used afterwards."""
        self._worker.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._claim is not None:
            self._claim.release()

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self.close()

    def _measure(self, workload: ConvWorkload, built: Built | Failed) -> Result:
        if isinstance(built, Failed):
            return replace(built, device=self.device)
        self._get_ready(workload)
        started = time.monotonic()
        result: Result
        healthy = False
        try:
            result, healthy = self._worker.call(
                ask, "evaluate", workload, built.cubin, built.launch, timeout=self.timeout + _GRACE_S
            )
        except WorkerTimeout:
            result = Failed("timeout", f"the kernel did not end within {self.timeout:g} s, and its process was ended")
        except WorkerDied as error:
            result = Failed("crash", str(error))
        except SubbyteError as error:
            result = Failed("launch", str(error))
        if not healthy:
            self._drop_process()
        seconds = {"build": built.seconds, "measure": round(time.monotonic() - started, 4), **result.seconds}
        return replace(result, seconds=seconds, device=self.device)

    def _get_ready(self, workload: ConvWorkload) -> None:
        """A measuring process that holds the GPU and the workload's operands. Raises SubbyteError when none can."""
        problem: SubbyteError | None = None
        for attempt in range(_REOPEN_TRIES):
            try:
                if self._worker.pid is None:
                    self._open((int(self.device["ordinal"]),))
                if workload not in self._prepared:
                    self._worker.call(ask, "prepare", workload, timeout=_PREPARE_S)
                    self._prepared.add(workload)
                return
            except (InvalidInput, MissingDependency):
                raise
            except SubbyteError as error:  # a GPU that just lost a hanging process may need a moment
                problem = error
                self._drop_process()
                time.sleep(attempt)
        raise MissingDependency(f"the GPU can no longer be used, after {_REOPEN_TRIES} tries: {problem}")

    def _open(self, devices: tuple[int, ...] | None) -> None:
        self._prepared.clear()
        try:
            device = self._worker.call(begin, self._make(devices), timeout=_PREPARE_S)
        except WorkerDied as error:
            raise type(error)(f"the GPU could not be opened: {error}") from None
        if self.device and device.get("uuid") != self.device.get("uuid"):
            raise MissingDependency(f"the GPU is gone: found {device.get('name')} instead of {self.device.get('name')}")
        self.device = device
        if self._claim is None and self._exclusive:
            # The claim keeps others off the GPU while a measuring process that died is replaced.
            self._claim = claim(str(device["uuid"]))

    def _drop_process(self) -> None:
        self._worker.close()
        self._prepared.clear()


class SeveralGpus(ExecutorRunner):
    """Measures on several GPUs of this machine in parallel, each held by its own processes.

    ``timeout`` is that of :class:`CudaRunner`. The processors are divided among the GPUs' building processes.
    """

    def __init__(self, devices: Sequence[int], timeout: float | None = None) -> None:
        self._pool = WorkerPool(len(devices), "runner")
        workers = max(1, min(usable_cpus(), MOST_WORKERS) // len(devices))
        make = partial(CudaRunner, tuple(devices), timeout=timeout, workers=workers)
        try:
            super().__init__(self._pool, make, at_once=len(devices))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes. May be called twice."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _built(future: Future[Built | Failed]) -> Built | Failed:
    try:
        return future.result()
    except WorkerTimeout as error:
        return Failed("timeout", str(error))
    except WorkerDied as error:
        return Failed("crash", str(error))
    except MissingDependency:
        raise
    except SubbyteError as error:
        return Failed("build", str(error))

"""The code inside the measuring process: it holds the GPU, its operands, and the lock that keeps others away.

:func:`begin` makes the body once per process, :func:`ask` calls one of its methods; both are called through
:class:`~subbyte.measure.worker.Worker`. :func:`build_candidate` runs in a building process.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from subbyte.device.launch import Launch
from subbyte.errors import BuildFailed, InvalidInput, MissingDependency, SubbyteError
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.taking import take
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.case import Case, Evaluator
from subbyte.measure.noise import CLOCK_FELL, Watch
from subbyte.records.result import Failed, Result
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

Build = Callable[[ConvWorkload, Configuration, str], Any]
"""Like :func:`subbyte.build`: returns an object with ``cubin`` (bytes) and ``launch``. A module-level function, because
it is called in other processes."""
KEPT_WORKLOADS = 3
POISONED = ("crash", "timeout")
"""After these the process is replaced: whatever the driver says, its context is not trusted again."""


class Body(Protocol):
    """What a measuring process holds. ``device`` is plain data: runner, name, uuid, arch, ordinal and the like."""

    device: Mapping[str, Any]

    def prepare(self, workload: ConvWorkload) -> None:
        """Make operands and the exact result in advance, so that no candidate's time limit includes it."""
        ...

    def evaluate(self, workload: ConvWorkload, cubin: bytes, launch: Launch) -> tuple[Result, bool]:
        """Result of a kernel, and whether this process may continue."""
        ...

    def interleave(
        self, workload: ConvWorkload, kernels: Sequence[tuple[bytes, Launch]], rounds: int
    ) -> list[list[float]]:
        """Microseconds by kernel and round."""
        ...


class GpuBody:
    """A GPU of this machine. ``devices`` are the ordinals to choose from: the first on which nobody measures is taken.

    Waits up to ``patience`` seconds for a single one. Raises MissingDependency (no GPU, all busy), InvalidInput.
    """

    _kept = KEPT_WORKLOADS

    def __init__(
        self, devices: Sequence[int] | None, protocol: TimingProtocol, seed: int, patience: float | None = None
    ) -> None:
        info, uuid, self._lock = take(devices, patience)
        self._gpu = CudaDevice(info.ordinal)
        self._protocol, self._seed = protocol, seed
        self._watch, self._telemetry = Watch(), Telemetry(info.bus_id)
        self._evaluators: dict[ConvWorkload, Evaluator] = {}
        self.device: Mapping[str, Any] = {
            "runner": "cuda", "name": info.name, "uuid": uuid, "driver": info.driver_version,
            "cuda": info.cuda_version, "arch": info.arch, "sms": info.sms, "memory_bytes": info.memory_bytes,
            "ordinal": info.ordinal, "host": platform.node(),
        }  # fmt: skip

    def prepare(self, workload: ConvWorkload) -> None:
        """Make operands and the exact result."""
        _ = self._evaluator(workload).case.expected

    def evaluate(self, workload: ConvWorkload, cubin: bytes, launch: Launch) -> tuple[Result, bool]:
        """Load, verify every element, time."""
        self._wake()
        result = self._evaluator(workload).evaluate(cubin, launch)
        return result, not self._gpu.lost and not (isinstance(result, Failed) and result.kind in POISONED)

    def interleave(
        self, workload: ConvWorkload, kernels: Sequence[tuple[bytes, Launch]], rounds: int
    ) -> list[list[float]]:
        """Time kernels against each other."""
        return self._evaluator(workload).interleave(kernels, rounds, self._seed)

    def _wake(self) -> None:
        """Have the GPU spun up before the next timing if its clock dropped while it waited for a build."""
        now, highest = self._telemetry.snapshot().sm_mhz, self._watch.highest_mhz
        if now is not None and highest is not None and now < CLOCK_FELL * highest:
            self._gpu.spun_up = False

    def _evaluator(self, workload: ConvWorkload) -> Evaluator:
        if workload not in self._evaluators:
            while len(self._evaluators) >= self._kept:
                self._evaluators.pop(next(iter(self._evaluators))).close()
            case = self._case(workload)
            self._evaluators[workload] = Evaluator(self._gpu, case, self._protocol, self._watch)
        return self._evaluators[workload]

    def _case(self, workload: ConvWorkload) -> Case:
        """Operands and exact result of a workload; other kinds of body override this."""
        return Case(workload, self._seed)


_body: Body | None = None


def begin(make: Callable[[], Body]) -> Mapping[str, Any]:
    """Make the body of this process; returns the device it holds."""
    global _body  # noqa: PLW0603 - one per process, by design
    if _body is None:
        _body = make()
    return _body.device


def ask(method: str, *arguments: Any) -> Any:
    """Call a method of the body."""
    if _body is None:
        raise InvalidInput("the measuring process was not started")
    return getattr(_body, method)(*arguments)


@dataclass(frozen=True)
class Built:
    """A candidate's machine code, its launch, and its build time in seconds."""

    cubin: bytes
    launch: Launch
    seconds: float


def load_builder() -> None:
    """Load what building needs, above all TVM, which takes seconds in a new process. Does nothing without TVM."""
    import subbyte.kernel.kernel
    import subbyte.kernel.nvrtc

    with suppress(ImportError):
        import subbyte.tirx.lower  # noqa: F401


def build_candidate(build: Build | None, workload: ConvWorkload, config: Configuration, arch: str) -> Built | Failed:
    """Build in this process; every failure becomes a value with its reason."""
    started = time.monotonic()
    try:
        if build is None:
            from subbyte.kernel import build as build_kernel

            build = build_kernel
        kernel = build(workload, config, arch)
        return Built(bytes(kernel.cubin), kernel.launch, round(time.monotonic() - started, 4))
    except InvalidInput as error:
        return Failed("refused", str(error))
    except MissingDependency:  # not this candidate's fault: nothing can be built here
        raise
    except (SubbyteError, BuildFailed) as error:
        return Failed("build", str(error), {"build": round(time.monotonic() - started, 4)})
    except MemoryError:
        return Failed("memory", "the building process ran out of memory")
    except Exception as error:  # anything a compiler raises, a full disk included, is this candidate's failure
        return Failed(
            "build", f"{type(error).__name__}: {error}"[:2000], {"build": round(time.monotonic() - started, 4)}
        )


def usable_cpus() -> int:
    """Number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1

"""Measuring a user's own kernel: a function of its parameters that returns microseconds."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from subbyte.arguments import checked, number
from subbyte.errors import InvalidInput, MissingDependency, in_words, shown
from subbyte.gpu.driver import detect
from subbyte.gpu.taking import taken
from subbyte.measure.runner import RunnerBase
from subbyte.measure.worker import Worker, WorkerDied, WorkerRaised, WorkerTimeout
from subbyte.records.foreign import FOREIGN
from subbyte.records.result import Failed, Measured, Result, is_time
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

EXPECTED = "expected microseconds, a positive number, or a list of such samples"


class ObjectiveRunner(RunnerBase):
    """Calls a function for each configuration. See :func:`objective`."""

    def __init__(self, function: Callable[..., Any], device: str, timeout: float | None) -> None:
        self.function, self.timeout = function, timeout
        self.device: Mapping[str, Any] = {"runner": "objective", "name": device}
        self._worker = None if timeout is None else Worker("objective")

    def check(self, space: Any) -> None:
        """Raises InvalidInput for a space of the project's own kernels, which need other runners."""
        if space.kind != FOREIGN:
            raise InvalidInput(
                "an objective measures a kernel of your own, with a space of subbyte.parameter_space; the "
                f"{space.kind} space of a workload is measured by runner='cuda'"
            )

    def run(self, workload: ConvWorkload, configs: Sequence[Configuration]) -> list[Result]:
        """One result per configuration; if a call raises, hangs or returns no time, that is a failure with the
        reason."""
        return [self._one(config.to_dict()) for config in configs]

    def close(self) -> None:
        """End the process, if there is one. May be called twice."""
        if self._worker is not None:
            self._worker.close()

    def _one(self, values: Mapping[str, Any]) -> Result:
        try:
            if self._worker is None:
                value = self.function(**values)
            else:
                value = self._worker.call(_call, self.function, values, timeout=self.timeout)
        except WorkerTimeout as error:
            return Failed("timeout", str(error))
        except WorkerDied as error:
            return Failed("crash", str(error))
        except WorkerRaised as error:
            return Failed("launch", str(error)[:500])
        except InvalidInput:
            raise
        except (Exception, SystemExit) as error:  # the user's own code
            return Failed("launch", in_words(error))
        return told(value)


def _call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    value = function(**values)
    return value.tolist() if hasattr(value, "tolist") else value


def told(value: Any) -> Result:
    """The meaning of a user's measurement: microseconds, a list of samples whose median counts, or a result. Anything
    else, including NaN, is a failure of the kind ``wrong``."""
    if isinstance(value, Measured | Failed):
        return value
    if isinstance(value, BaseException):
        return Failed("launch", in_words(value))
    value = value.tolist() if hasattr(value, "tolist") else value
    samples = list(value) if isinstance(value, list | tuple) else [value]
    if not samples or not all(map(is_time, samples)):
        return Failed("wrong", f"the objective gave {shown(value)}: {EXPECTED}")
    times = tuple(map(float, samples))
    return Measured(statistics.median(times), times if len(times) > 1 else ())


@checked
def objective(function: Callable[..., Any], device: str | None = None, timeout: float | None = None) -> ObjectiveRunner:
    """A runner for a kernel of your own: ``function(block=64, stages=2)`` builds and times one configuration.

    It returns microseconds, or a list of samples whose median counts; smaller is better. If it raises, or returns NaN
    or anything else, the configuration has failed with that reason and the search continues. With ``timeout`` (seconds)
    it is called in a separate process, so that a hang or a crash costs only that process; it must then be a
    module-level function. ``device`` is the name of the device it measures on (default: the GPU of
    :func:`subbyte.gpu.taking.take_gpu`, else the first one). Times from different devices cannot be mixed in one study.
    For several devices, pass a function that makes this runner to :class:`subbyte.measure.executor.ExecutorRunner`.
    Raises InvalidInput if ``function`` cannot be called.
    """
    if timeout is not None:
        number(timeout, "timeout", positive=True)
    if timeout is not None and getattr(function, "__module__", "") == "__main__":
        raise InvalidInput(
            f"objective({shown(function)}) with a timeout runs in a process of its own, which does not know what a "
            "notebook or a script defines: put the function into a module (a .py file) and import it, or leave out "
            "timeout"
        )
    return ObjectiveRunner(function, device or _device(), timeout)


def _device() -> str:
    """The GPU that this process took, else the first one, or the kind of processor."""
    if (own := taken()) is not None:
        return own.name
    try:
        found = detect()
    except MissingDependency:
        found = []
    return found[0].name if found else f"{platform.machine()} processor"

"""The runner that measures on a GPU of this machine: build, run, verify every element, time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from subbyte.errors import InvalidInput, SubbyteError
from subbyte.measure.case import Case, Evaluator
from subbyte.measure.device import CudaDevice, open_device
from subbyte.measure.result import Failed, Result
from subbyte.measure.runner import RunnerBase
from subbyte.measure.telemetry import Telemetry
from subbyte.measure.timing import TimingProtocol
from subbyte.schedule import ConvConfig
from subbyte.workload import ConvWorkload

Build = Callable[[ConvWorkload, ConvConfig, str], Any]
"""Like :func:`subbyte.build`: gives an object with ``cubin`` (bytes) and ``launch``."""


class CudaRunner(RunnerBase):
    """Measures configurations on GPU ``device``, building them for its architecture (or ``arch``).

    Operands are drawn once per workload from ``seed``. A kernel that faults costs one candidate: the context is made
    anew. After a hang, or when the driver does not recover, every later candidate fails with the reason.
    Raises MissingDependency without a GPU, InvalidInput for a device that does not exist.
    """

    def __init__(
        self,
        device: int | CudaDevice = 0,
        protocol: TimingProtocol | None = None,
        arch: str | None = None,
        seed: int = 0,
        build: Build | None = None,
    ) -> None:
        self._gpu = device if isinstance(device, CudaDevice) else open_device(device)
        self.arch = arch or self._gpu.info.arch
        self.protocol = protocol or TimingProtocol()
        info = self._gpu.info
        self.device: Mapping[str, Any] = {
            "runner": "cuda",
            "name": info.name,
            "uuid": Telemetry(info.bus_id).uuid(),
            "driver": info.driver_version,
            "cuda": info.cuda_version,
            "arch": self.arch,
            "sms": info.sms,
        }
        self._seed, self._build = seed, build
        self._evaluators: dict[ConvWorkload, Evaluator] = {}

    def run(self, workload: ConvWorkload, configs: Sequence[ConvConfig]) -> list[Result]:
        """One result per configuration, in order."""
        return [self._one(workload, config) for config in configs]

    def close(self) -> None:
        """Free the operands on the device. May be called twice."""
        for evaluator in self._evaluators.values():
            evaluator.close()
        self._evaluators = {}

    def _one(self, workload: ConvWorkload, config: ConvConfig) -> Result:
        started = time.monotonic()
        try:
            kernel = self._builder()(workload, config, self.arch)
            cubin, launch = bytes(kernel.cubin), kernel.launch
        except InvalidInput as error:
            return Failed("refused", str(error))
        except SubbyteError as error:
            return Failed("build", str(error), {"build": time.monotonic() - started})
        except Exception as error:  # whatever a compiler raises is this candidate's failure
            return Failed("build", f"{type(error).__name__}: {error}"[:2000], {"build": time.monotonic() - started})
        seconds = {"build": round(time.monotonic() - started, 4)}
        result = self._evaluator(workload).evaluate(cubin, launch)
        return replace(result, seconds={**seconds, **result.seconds})

    def _builder(self) -> Build:
        if self._build is None:
            from subbyte.kernel import build  # type: ignore[attr-defined,unused-ignore]  # loads TVM

            self._build = build
        return self._build

    def _evaluator(self, workload: ConvWorkload) -> Evaluator:
        if workload not in self._evaluators:
            self._evaluators[workload] = Evaluator(self._gpu, Case(workload, self._seed), self.protocol)
        return self._evaluators[workload]

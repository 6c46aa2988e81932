"""What measuring processes of the tests import: a body on the fake driver with kernels that fail in every way."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from failing import kill_self, refuse, segfault

from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import GpuLock
from subbyte.gpu.telemetry import Telemetry
from subbyte.measure.case import Case
from subbyte.measure.fake import FakeRunner
from subbyte.measure.gpu_worker import GpuBody
from subbyte.measure.noise import Watch
from subbyte.numerics import to_nhwcnc


def fake_driver(expected):
    """The driver of fake_driver.py with one kernel for each fault."""
    import fake_driver as parts

    def right(arrays):
        arrays[1][:] = expected

    def stray(arrays):
        raise parts.Fault("CUDA_ERROR_ILLEGAL_ADDRESS")

    def hang(arrays):
        raise parts.Hang

    bodies = {
        "good": right, "silent": lambda arrays: None, "stray": stray, "hang": hang,
        "segv": lambda arrays: segfault(), "freeze": lambda arrays: time.sleep(60),
    }  # fmt: skip
    kernels = {name.encode(): parts.kernel(4)(body) for name, body in bodies.items()}
    driver = parts.FakeDriver(kernels, recovers=False)
    load = driver.cuModuleLoadData

    def load_or_fail(image):
        if image == b"memory":
            return parts.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        return load(image)

    driver.cuModuleLoadData = load_or_fail
    return driver


class FaultyBody(GpuBody):
    """A measuring body on the fake driver. ``folder`` holds the lock and a line for each process that was begun."""

    def __init__(self, devices, protocol, seed, folder):
        self._lock = GpuLock("GPU-fake", 0.3, folder)
        self._protocol, self._seed, self._watch = protocol, seed, Watch()
        self._telemetry = Telemetry("no such bus")
        self._evaluators = {}
        self._gpu = CudaDevice(0, fake_driver(np.zeros(0, np.uint32)))
        self.device = {"runner": "cuda", "name": "Fake GPU", "uuid": "GPU-fake", "arch": "sm_90a", "ordinal": 0}
        with open(Path(folder) / "processes", "a") as file:
            file.write(f"{os.getpid()}\n")

    def prepare(self, workload):
        case = Case(workload, self._seed)
        self._gpu.api.kernels[b"good"] = _kernel_giving(to_nhwcnc(case.expected).ravel())
        super().prepare(workload)


def _kernel_giving(words):
    def body(arrays):
        arrays[1][:] = words

    body.arguments = 4
    return body


def faulty_body(devices, protocol, seed, folder):
    return partial(FaultyBody, devices, protocol, seed, folder)


def no_gpu(devices, protocol, seed):
    return refuse


class DyingRunner(FakeRunner):
    """A fake runner whose process dies at every configuration of two channel chunks."""

    def run(self, workload, configs):
        if configs[0].chunk == 2:
            kill_self()
        return super().run(workload, configs)


class ClosingRunner(FakeRunner):
    """Counts how often it was closed."""

    closed = 0

    def close(self):
        ClosingRunner.closed += 1


class PlainRunner:
    """Only what every runner has."""

    device: ClassVar[dict] = {"runner": "fake", "name": "fake"}


def dying_runner():
    return DyingRunner()

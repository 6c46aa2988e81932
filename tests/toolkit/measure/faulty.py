"""What the worker processes of the tests import: functions that die in every way, and a measuring body that does."""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from subbyte.device.launch import Argument, Launch
from subbyte.errors import BuildFailed, MissingDependency, Unsupported
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import GpuLock
from subbyte.gpu.telemetry import Telemetry
from subbyte.measure.case import Case
from subbyte.measure.fake import FakeRunner
from subbyte.measure.gpu_worker import GpuBody
from subbyte.measure.noise import Watch
from subbyte.numerics import to_nhwcnc


def double(value):
    return 2 * value


def process():
    return os.getpid()


def segfault():
    print("last words", flush=True)
    ctypes.string_at(0)


def exhaust():
    raise MemoryError("no more")


def fill_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def leave():
    sys.exit(7)


def refuse():
    raise MissingDependency("nothing here")


def unpicklable():
    return lambda: None


def spawn_sleeper():
    import subprocess

    return subprocess.Popen(["sleep", "60"]).pid


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def exit_at_once():
    os._exit(3)


def launch_of(workload):
    blocks, groups, wl = workload.filter_blocks, workload.batch_groups, workload
    arguments = (
        Argument("A", "uint32", (groups * 8 * wl.h * wl.w * wl.channel_blocks * 4,), "in", "nhwcnc"),
        Argument("Out", "uint32", (groups * 8 * wl.p * wl.q * blocks * 4,), "out", "nhwcnc"),
        Argument("Prm", "int32", (3 * blocks * 32,), "in", "general"),
        Argument("Wt", "uint32", (wl.channel_blocks * wl.r * wl.s * blocks * 32 * 4,), "in", "4"),
    )
    return Launch("conv_kernel", (1, 1, 1), (32, 1, 1), 0, arguments)


FAULTS = (
    "good", "silent", "stray", "hang", "segv", "freeze", "memory", "refused", "uncompilable", "raises", "compiler_dies",
    "compiler_hangs", "disk_full", "host_memory",
)  # fmt: skip
"""By ``config.chunk`` - 1: what goes wrong with the candidate."""
KINDS = (
    "ok", "wrong", "crash", "timeout", "crash", "timeout", "memory", "refused", "build", "build", "crash", "timeout",
    "build", "memory",
)  # fmt: skip
"""What is recorded for each."""


def build(workload, config, arch):
    fault = FAULTS[config.chunk - 1]
    actions = {"compiler_dies": segfault, "disk_full": fill_disk, "host_memory": exhaust}
    if fault in actions:
        actions[fault]()
    if fault == "compiler_hangs":
        time.sleep(60)
    if fault == "refused":
        raise Unsupported("no such chunk")
    if fault == "uncompilable":
        raise BuildFailed("did not compile")
    if fault == "raises":
        raise RuntimeError("compiler in disarray")
    return SimpleNamespace(cubin=fault.encode(), launch=launch_of(workload))


def counted_build(workload, config, arch):
    with open(os.environ["FAULTY_COUNTS"], "a") as file:
        file.write("built\n")
    time.sleep(0.05)
    return build(workload, config, arch)


def counted():
    """How many builds all processes did."""
    return Path(os.environ["FAULTY_COUNTS"]).read_text().count("built")


def fake_driver(expected):
    """The driver of conftest.py with one kernel for each fault."""
    place = importlib.util.spec_from_file_location("fake_driver", Path(__file__).with_name("conftest.py"))
    parts = importlib.util.module_from_spec(place)
    place.loader.exec_module(parts)

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

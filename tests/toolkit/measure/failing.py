"""Functions and builds for worker processes that fail in every way. It loads little, because it is loaded often."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from subbyte.device.launch import Argument, Launch
from subbyte.errors import BuildFailed, MissingDependency, Unsupported


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

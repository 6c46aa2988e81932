"""Kernels of a user, as the worker processes of the tests import them."""

from __future__ import annotations

import math
import os
import signal
import time
from types import SimpleNamespace
from typing import ClassVar

import subbyte
from subbyte.gpu import taking
from subbyte.measure.objective import ObjectiveRunner
from subbyte.measure.runner import RunnerBase
from subbyte.records.result import Measured

KNOBS = {"block": [32, 64, 128, 256], "items": [1, 2, 4], "fast": [False, True]}


def microseconds(block, items, fast):
    """One valley: 128 threads, 2 items, fast."""
    return 5.0 + abs(math.log2(block / 128)) + abs(items - 2) + (0.0 if fast else 1.5)


def odd(block, items, fast):
    """Every way to go wrong, and one that works."""
    if block == 32:
        raise ValueError("too few threads")
    if block == 64:
        return float("nan")
    if block == 128 and fast:
        time.sleep(60)
    if block == 256 and fast:
        os.kill(os.getpid(), signal.SIGKILL)
    return [3.0, 1.0, 2.0]


class Sleeping(RunnerBase):
    """Takes as long as the configuration says: ``items`` 4 is slow."""

    device: ClassVar[dict[str, str]] = {"runner": "test", "name": "clock"}

    def run(self, workload, configs):
        values = [config.to_dict() for config in configs]
        for one in values:
            time.sleep(0.4 if one["items"] == 4 else 0.02)
        return [Measured(float(one["block"])) for one in values]


def on_one_of_two_gpus() -> ObjectiveRunner:
    """A runner on a GPU of this process, of two made-up ones."""
    taking.detect = lambda: [SimpleNamespace(ordinal=n, name="GPU A", bus_id=f"made-up:{n}") for n in range(2)]
    taking.PATIENCE_S = 0.3
    assert taking.take_gpu() == taking.take_gpu()
    return subbyte.objective(which)


def which(**_):
    """A time, and the GPU that it is of."""
    time.sleep(0.02)
    return Measured(1.0, device={"runner": "objective", "name": "GPU A", "ordinal": taking.taken().ordinal})

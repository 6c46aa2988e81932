"""Several GPUs working at the same time, started from one thread, and their wall-clock time.

Events of two GPUs cannot be compared, so a sample is the wall-clock time from before the first graph is launched
until the last GPU is idle, divided by the number of runs in it. It includes launching and waiting (tens of microseconds
per sample); samples last ``protocol.min_total_ms / protocol.repeats``, which should be tens of
milliseconds.
"""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.gpu.device import CudaDevice
from subbyte.gpu.telemetry import Snapshot, Telemetry
from subbyte.gpu.timing import TimingProtocol, spin_up, times

LONG = TimingProtocol(launches=4, min_total_ms=210.0, cold=False)
"""Samples of 30 ms: launching and waiting are below one percent."""

_PORTABLE = 1
"""CU_MEMHOSTALLOC_PORTABLE: page-locked for the contexts of all GPUs, not only for the current one."""


@dataclass(frozen=True)
class Share:
    """What one GPU does: ``enqueue`` puts one run of it on the stream of ``device``."""

    device: CudaDevice
    enqueue: Callable[[], None]


@dataclass(frozen=True)
class TogetherTiming:
    """``microseconds`` of one run on all GPUs in wall-clock time, the median of ``samples``; readings of each GPU."""

    microseconds: float
    samples: tuple[float, ...]
    before: tuple[Snapshot, ...]
    after: tuple[Snapshot, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"microseconds": self.microseconds, "samples": list(self.samples),
                "before": [one.to_dict() for one in self.before],
                "after": [one.to_dict() for one in self.after]}  # fmt: skip


def time_together(shares: Sequence[Share], protocol: TimingProtocol = LONG) -> TogetherTiming:
    """Replay every GPU's graph of ``protocol.launches`` runs at the same time. Raises what :func:`time_launch` does."""
    nvml = [Telemetry(share.device.info.bus_id) for share in shares]
    for share in shares:
        share.device.activate()
        share.enqueue()  # outside the capture: the driver may load code lazily on the first launch
        share.device.synchronize(protocol.timeout_s)
        spin_up(share.device, protocol.spin_up_ms, protocol.timeout_s)
    with ExitStack() as stack:
        replays = []
        for share in shares:
            record = times(share.enqueue, protocol.launches)
            replays.append((share.device, stack.enter_context(share.device.graph(record))))
        run_together(replays, 1, protocol.timeout_s)
        once_us = run_together(replays, 1, protocol.timeout_s)
        run_together(replays, math.ceil(1000 * protocol.warmup_ms / once_us), protocol.timeout_s)
        count = max(1, math.ceil(1000 * protocol.min_total_ms / protocol.repeats / once_us))
        before = tuple(one.snapshot() for one in nvml)
        total = [run_together(replays, count, protocol.timeout_s) for _ in range(protocol.repeats)]
        after = tuple(one.snapshot() for one in nvml)
    samples = tuple(us / (count * protocol.launches) for us in total)
    return TogetherTiming(statistics.median(samples), samples, before, after)


def run_together(
    replays: Sequence[tuple[CudaDevice, Callable[[], None]]], count: int = 1, timeout_s: float = 20.0
) -> float:
    """Start every GPU's work ``count`` times, one GPU after the other, then wait for all: wall-clock time in
    microseconds. Raises CudaError, DeviceHang."""
    start = time.perf_counter()
    for _ in range(count):
        for device, replay in replays:
            device.activate()
            replay()
    for device, _ in replays:
        device.activate()
        device.synchronize(timeout_s)
    return 1e6 * (time.perf_counter() - start)


class PinnedCopy:
    """``nbytes`` of GPU memory (``buffer``) and the page-locked host memory into which they are copied.

    The copy runs in stream order and can be captured in a graph. Close the object after use."""

    def __init__(self, device: CudaDevice, nbytes: int) -> None:
        self.device, self.nbytes = device, nbytes
        self.buffer = device.alloc(nbytes)
        self._pointer = int(device.call("cuMemHostAlloc", nbytes, _PORTABLE))
        self._generation = device.generation

    def enqueue(self, nbytes: int) -> None:
        """Enqueue the copy of the first ``nbytes``."""
        self.device.call("cuMemcpyDtoHAsync", self._pointer, self.buffer.pointer, nbytes, self.device.stream)

    def copied(self) -> NDArray[np.uint8]:
        """A view of the host memory; it becomes invalid when this object is closed."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(self._pointer))

    def close(self) -> None:
        """Free both memories. May be called twice."""
        self.buffer.free()
        if self._pointer and self._generation == self.device.generation and not self.device.lost:
            self.device.api.cuMemFreeHost(self._pointer)
        self._pointer = 0

"""How a kernel is timed, and the record of a timing.

**Hot**: a CUDA graph of ``launches`` consecutive kernel nodes is replayed; one sample is the time of several replays
between two events, divided by the number of launches. It includes the gap between two nodes (about 0.5 us), as
in a network replayed from a graph. All operands that fit stay in the L2.

**Cold**: a graph of ``cold_launches`` times [overwrite a buffer of more than twice the L2, kernel] is timed alternately
with a graph of the overwrites alone; a sample is the difference, divided by the number of launches. Events around a
single launch were rejected: their resolution and the launch latency between them are as large as the kernels measured
here. Hot and cold times thus both contain one graph-node gap. Overwriting leaves dirty lines, which the kernel's misses
write back: cold times are upper bounds.

Successive launches do not overlap (no programmatic dependent launch is used).
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from subbyte.errors import InvalidInput
from subbyte.gpu.driver import GpuInfo
from subbyte.gpu.telemetry import Snapshot, Telemetry


class TimedDevice(Protocol):
    """What timing needs from a device; :class:`~subbyte.gpu.device.CudaDevice` is one."""

    info: GpuInfo
    spun_up: bool

    def activate(self) -> None:
        """Make the device current."""
        ...

    def synchronize(self, timeout_s: float = ...) -> None:
        """Wait until the work enqueued so far has ended."""
        ...

    def flush_buffer(self) -> Any:
        """Make the buffer that ``flush_l2`` overwrites."""
        ...

    def flush_l2(self) -> None:
        """Enqueue overwriting more than twice the L2."""
        ...

    def graph(self, record: Callable[[], None]) -> AbstractContextManager[Callable[[], None]]:
        """Capture what ``record`` enqueues; yields a function that replays it."""
        ...

    def elapsed_us(self, work: Callable[[], None], timeout_s: float = ...) -> float:
        """Time in microseconds that the device needs for what ``work`` enqueues."""
        ...


@dataclass(frozen=True)
class TimingProtocol:
    """How long and how often to measure. Times in milliseconds of device work. Raises InvalidInput.

    ``launches`` kernel nodes per graph; at least ``warmup_ms`` of replays precede ``repeats`` samples, which together
    last ``min_total_ms``. ``cold`` adds ``cold_repeats`` samples with the L2 flushed before every launch. ``timeout_s``
    bounds the wait for any one sample. ``spin_up_ms`` of work precede the first timing on a device in this process, so
    that clocks have left idle.
    """

    launches: int = 20
    warmup_ms: float = 3.0
    min_total_ms: float = 20.0
    repeats: int = 7
    cold: bool = True
    cold_launches: int = 10
    cold_repeats: int = 5
    timeout_s: float = 20.0
    spin_up_ms: float = 300.0

    def __post_init__(self) -> None:
        for name in ("launches", "repeats", "cold_launches", "cold_repeats"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidInput(f"timing protocol {name}={getattr(self, name)!r}: must be an integer >= 1")
        for name in ("warmup_ms", "min_total_ms", "spin_up_ms"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"timing protocol {name}={getattr(self, name)!r}: must be milliseconds >= 0")
        if not 0 < self.timeout_s < math.inf:
            raise InvalidInput(f"timing protocol timeout_s={self.timeout_s!r}: must be seconds > 0")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Timing:
    """Time of one launch in microseconds. ``microseconds`` is the median of ``samples`` (L2 hot).

    ``cold_microseconds`` is the median of ``cold_samples``, None if they were not requested. ``before`` and
    ``after`` are NVML readings around the samples.
    """

    microseconds: float
    samples: tuple[float, ...]
    cold_microseconds: float | None
    cold_samples: tuple[float, ...]
    before: Snapshot
    after: Snapshot
    protocol: TimingProtocol
    device: Mapping[str, Any] = field(hash=False)
    date: str
    command: str

    @property
    def spread(self) -> float:
        """Largest minus smallest sample, as a fraction of the median."""
        return (max(self.samples) - min(self.samples)) / self.microseconds

    def tops(self, operations: int) -> float:
        """Tera-operations per second (L2 hot) of a kernel that performs ``operations`` (two per
        multiply-accumulate)."""
        return operations / self.microseconds / 1e6

    def clocks(self) -> dict[str, Any]:
        """The readings before and after, as measurements record them."""
        return {"before": self.before.to_dict(), "after": self.after.to_dict()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "microseconds": self.microseconds,
            "samples": list(self.samples),
            "spread": self.spread,
            "cold_microseconds": self.cold_microseconds,
            "cold_samples": list(self.cold_samples),
            "clocks": self.clocks(),
            "protocol": self.protocol.to_dict(),
            "device": dict(self.device),
            "date": self.date,
            "command": self.command,
        }


def time_launch(
    device: TimedDevice,
    launch: Callable[[], None],
    protocol: TimingProtocol | None = None,
    telemetry: Telemetry | None = None,
) -> Timing:
    """Time what ``launch`` enqueues on the device's stream. Raises CudaError for a fault, DeviceHang past the time
    limit."""
    how = protocol or TimingProtocol()
    nvml = telemetry or Telemetry(device.info.bus_id)
    device.activate()
    launch()  # outside the capture: the driver may load code lazily on the first launch
    device.synchronize(how.timeout_s)
    spin_up(device, how.spin_up_ms, how.timeout_s)
    before = nvml.snapshot()
    samples = _hot(device, launch, how)
    cold = _cold(device, launch, how) if how.cold else ()
    return Timing(
        microseconds=statistics.median(samples),
        samples=samples,
        cold_microseconds=statistics.median(cold) if cold else None,
        cold_samples=cold,
        before=before,
        after=nvml.snapshot(),
        protocol=how,
        device={**device.info.to_dict(), "uuid": nvml.uuid()},
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command_line(),
    )


def command_line() -> str:
    """The command of this process as records keep it: absolute paths are cut to their last part, so that no home is
    named."""
    words = [word.replace("\\", "/") for word in sys.argv]
    words = [words[0].rsplit("/", 1)[-1], *(w.rstrip("/").rsplit("/", 1)[-1] if w[:1] == "/" else w for w in words[1:])]
    return " ".join(words).strip()


def _hot(device: TimedDevice, launch: Callable[[], None], how: TimingProtocol) -> tuple[float, ...]:
    def record() -> None:
        for _ in range(how.launches):
            launch()

    with device.graph(record) as replay:
        replay()
        once_us = max(device.elapsed_us(replay, how.timeout_s), 0.5)
        warm = math.ceil(1000 * how.warmup_ms / once_us)
        per_sample = max(1, math.ceil(1000 * how.min_total_ms / how.repeats / once_us))
        device.elapsed_us(times(replay, warm), how.timeout_s)
        work = times(replay, per_sample)
        total = [device.elapsed_us(work, how.timeout_s) for _ in range(how.repeats)]
    return tuple(us / (per_sample * how.launches) for us in total)


def _cold(device: TimedDevice, launch: Callable[[], None], how: TimingProtocol) -> tuple[float, ...]:
    device.flush_buffer()

    def flushed_launches() -> None:
        for _ in range(how.cold_launches):
            device.flush_l2()
            launch()

    def flushes() -> None:
        for _ in range(how.cold_launches):
            device.flush_l2()

    samples = []
    with device.graph(flushed_launches) as with_kernel, device.graph(flushes) as without:
        for replay in (with_kernel, without):
            device.elapsed_us(replay, how.timeout_s)
        for _ in range(how.cold_repeats):
            difference = device.elapsed_us(with_kernel, how.timeout_s) - device.elapsed_us(without, how.timeout_s)
            samples.append(difference / how.cold_launches)
    return tuple(samples)


def times(work: Callable[[], None], count: int) -> Callable[[], None]:
    """A function that does ``work`` ``count`` times."""

    def repeated() -> None:
        for _ in range(count):
            work()

    return repeated


def spin_up(device: TimedDevice, milliseconds: float, timeout_s: float) -> None:
    """Keep the GPU busy until its clocks have ramped up; done once per context."""
    if device.spun_up:
        return
    device.spun_up = True
    device.flush_buffer()
    spent = 0.0
    while spent < milliseconds:
        spent += max(device.elapsed_us(times(device.flush_l2, 20), timeout_s) / 1000, 0.01)

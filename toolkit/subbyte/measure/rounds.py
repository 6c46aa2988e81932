"""Several kernels timed interleaved: in rounds, each in a new random order, with clock readings before every round.

Clocks and temperature of a GPU drift over seconds by as much as good kernels differ. Kernels to be compared are
therefore sampled in turn: a round holds one sample of every entry, and entries are compared within rounds. All graphs
are captured before the first round; each entry is first replayed unmeasured, so that its operands are back in the L2
and the preceding entry has no influence.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.gpu.telemetry import Snapshot
from subbyte.gpu.timing import TimedDevice, spin_up, times


@dataclass(frozen=True)
class RoundProtocol:
    """How long and how often to measure. Times in milliseconds of device work. Raises InvalidInput.

    ``rounds`` of one sample each: replays of a graph of ``launches`` layers for at least ``sample_ms``, after
    ``warmup_ms`` of unmeasured ones. ``cold_launches`` is the same for launches with a flushed L2. ``timeout_s``
    bounds the wait for any one sample; ``spin_up_ms`` of work precede the first sample on a device in this process.
    """

    rounds: int = 25
    launches: int = 20
    warmup_ms: float = 0.5
    sample_ms: float = 3.0
    cold_launches: int = 10
    timeout_s: float = 20.0
    spin_up_ms: float = 300.0

    def __post_init__(self) -> None:
        for name in ("rounds", "launches", "cold_launches"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidInput(f"rounds protocol {name}={value!r}: must be an integer >= 1")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Entry:
    """One kernel in one way of timing (``what``, such as ``hot``). ``sample`` returns microseconds per launch."""

    side: str
    what: str
    sample: Callable[[], float]


@dataclass(frozen=True)
class Rounds:
    """``samples[e][r]`` are microseconds of entry e in round r, ``orders[r]`` the order of the entries in round r,
    ``clocks`` the readings before every round and after the last."""

    samples: tuple[tuple[float, ...], ...]
    orders: tuple[tuple[int, ...], ...]
    clocks: tuple[Snapshot, ...]


def interleave(
    entries: Sequence[Entry], rounds: int, rng: random.Random, snapshot: Callable[[], Snapshot] = Snapshot
) -> Rounds:
    """Sample every entry once per round, each round in its own random order. Raises what a sample raises."""
    samples: list[list[float]] = [[] for _ in entries]
    orders, clocks = [], [snapshot()]
    order = list(range(len(entries)))
    for _ in range(rounds):
        rng.shuffle(order)
        for place in order:
            samples[place].append(entries[place].sample())
        orders.append(tuple(order))
        clocks.append(snapshot())
    return Rounds(tuple(map(tuple, samples)), tuple(orders), tuple(clocks))


class Replays:
    """Captures graphs and makes samples of their replays; the graphs live until ``stack`` is closed.

    Raises CudaError for a fault of a launch, DeviceHang past the time limit.
    """

    def __init__(self, stack: ExitStack, how: RoundProtocol) -> None:
        self._stack, self._how = stack, how
        self._flushes: dict[int, Callable[[], None]] = {}

    def hot(self, device: TimedDevice, launch: Callable[[], None], each: int = 1) -> Callable[[], float]:
        """Samples with the operands in the L2, as far as they fit. ``launch`` enqueues ``each`` layers; the samples
        are microseconds of one."""
        how = self._how
        self._prepare(device, launch)
        launches = max(1, how.launches // each)
        replay = self._graph(device, times(launch, launches))
        replay()
        once_us = max(device.elapsed_us(replay, how.timeout_s), 0.5)
        warm = max(1, math.ceil(1000 * how.warmup_ms / once_us))
        count = max(1, math.ceil(1000 * how.sample_ms / once_us))
        before, work = times(replay, warm), times(replay, count)

        def sample() -> float:
            device.activate()
            device.elapsed_us(before, how.timeout_s)
            return device.elapsed_us(work, how.timeout_s) / (count * launches * each)

        return sample

    def cold(self, device: TimedDevice, launch: Callable[[], None]) -> Callable[[], float]:
        """Samples with the L2 overwritten before every launch: the difference to overwriting alone."""
        how = self._how
        self._prepare(device, launch)

        def flushed() -> None:
            device.flush_l2()
            launch()

        with_kernel = self._graph(device, times(flushed, how.cold_launches))
        if id(device) not in self._flushes:
            self._flushes[id(device)] = self._graph(device, times(device.flush_l2, how.cold_launches))
        without = self._flushes[id(device)]
        for replay in (with_kernel, without):
            device.elapsed_us(replay, how.timeout_s)

        def sample() -> float:
            device.activate()
            long = device.elapsed_us(with_kernel, how.timeout_s)
            return (long - device.elapsed_us(without, how.timeout_s)) / how.cold_launches

        return sample

    def _prepare(self, device: TimedDevice, launch: Callable[[], None]) -> None:
        device.activate()
        device.flush_buffer()
        launch()  # outside the capture: the driver may load code lazily on the first launch
        device.synchronize(self._how.timeout_s)
        spin_up(device, self._how.spin_up_ms, self._how.timeout_s)

    def _graph(self, device: TimedDevice, record: Callable[[], None]) -> Callable[[], None]:
        return self._stack.enter_context(device.graph(record))

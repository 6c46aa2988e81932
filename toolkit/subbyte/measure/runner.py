"""The single interface to a measurement: candidates in, results out. A GPU, a recorded landscape and a fake all fit."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from subbyte.errors import InvalidInput
from subbyte.numerals import natural

if TYPE_CHECKING:
    from subbyte.records.result import Result
    from subbyte.spaces.configuration import Configuration
    from subbyte.workload import ConvWorkload


@runtime_checkable
class Runner(Protocol):
    """Evaluates configurations of a workload.

    ``device`` identifies what measures: at least ``runner`` (``cuda``, ``replay``, ``fake``) and ``name``; a GPU adds
    ``uuid``, ``driver`` and the like. ``run`` returns one result per configuration, in order, and never raises for
    a candidate that fails: that is a ``Failed`` value. It raises only when no candidate could be served (no GPU, a
    landscape of another workload). ``close`` frees what the runner holds and may be called twice.

    Optional: ``at_once``, how many configurations it wants per call (default 1; more pays if they are built or measured
    in parallel); ``check(space)``, which raises InvalidInput when the runner cannot serve a whole space;
    ``iterate(workload, configs)``, a generator of results in order, each as soon as it is known, which a study prefers
    to ``run`` and closes early to stop; ``stream(workload, configs)``, a generator of positions and results from
    several devices, each as soon as it is known, which draws configurations only when it has room for them and which a
    study prefers to both; ``build_ahead(workload, configs)``, a hint that returns at once; ``rematch(workload, configs,
    rounds)``, interleaved times in microseconds by configuration and round.
    """

    device: Mapping[str, Any]

    def run(self, workload: ConvWorkload, configs: Sequence[Configuration]) -> list[Result]:
        """One result per configuration, in order."""
        ...

    def close(self) -> None:
        """Free what the runner holds."""
        ...

    def __enter__(self) -> Self:
        """The runner itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        ...


LIKE = ("runner", "name", "arch", "sms")
"""Fields in which two devices must agree for their times to be comparable (if both have them)."""


Device = int | str | Sequence[int]
"""How to name a GPU: its number, ``cuda:1``, ``any``, or several numbers."""


def parse_device(device: Device) -> tuple[int, ...] | None:
    """GPU numbers for ``1``, ``cuda:1``, ``cuda:0,cuda:1`` or a sequence; None for ``any``. Raises InvalidInput."""
    if isinstance(device, str):
        if device.strip().lower() == "any":
            return None
        parts = [part.strip().lower().removeprefix("cuda:") for part in device.split(",")]
        found = [number for part in parts if (number := natural(part)) is not None]
        if len(found) != len(parts):
            raise InvalidInput(f"device {device!r}: must be a GPU number, cuda:N, several of them (0,1) or any")
        return tuple(found)
    numbers = (device,) if isinstance(device, int) else tuple(device)
    if not numbers or not all(type(number) is int and number >= 0 for number in numbers):
        raise InvalidInput(f"device {device!r}: must be a GPU number, cuda:N, several of them (0,1) or any")
    return numbers


def refuse_unlike(known: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise InvalidInput, naming the difference, if times of two devices are not comparable."""
    for key in LIKE:
        if key in known and key in other and known[key] != other[key]:
            raise InvalidInput(
                f"this was measured with {key} {known[key]!r}, not {other[key]!r}: times of different devices "
                "cannot be compared; use devices of one kind, or start another study"
            )


def results_of(
    runner: Runner, workload: ConvWorkload, configs: Sequence[Configuration]
) -> Generator[Sequence[Result], None, None]:
    """Results of ``configs`` in order, in the portions in which the runner returns them."""
    iterate = getattr(runner, "iterate", None)
    if iterate is not None:
        with closing(iterate(workload, configs)) as results:
            for result in results:
                yield (result,)
        return
    at_once = max(1, getattr(runner, "at_once", 1))
    for first in range(0, len(configs), at_once):
        some = configs[first : first + at_once]
        results = runner.run(workload, some)
        if len(results) != len(some):
            raise ValueError(f"runner gave {len(results)} results for {len(some)} configurations")
        yield results


class RunnerBase:
    """Context management for runners, and a ``close`` for those that hold nothing."""

    def close(self) -> None:
        """Nothing to free."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""The one door to a measurement: candidates in, results out. A GPU, a recorded landscape and a fake all fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from subbyte.measure.result import Result
    from subbyte.schedule import ConvConfig
    from subbyte.workload import ConvWorkload


@runtime_checkable
class Runner(Protocol):
    """Evaluates configurations of a workload.

    ``device`` identifies what measures: at least ``runner`` (``cuda``, ``replay``, ``fake``) and ``name``; a GPU adds
    ``uuid``, ``driver`` and the like. ``run`` returns one result per configuration, in order, and never raises for
    a candidate that fails: that is a ``Failed`` value. It raises only when no candidate could be served (no GPU, a
    landscape of another workload). ``close`` frees what the runner holds and may be called twice.

    Two attributes are optional: ``at_once``, how many configurations it wants in one call (1 if missing; more pays
    where they are built or measured side by side), and ``check(space)``, which raises InvalidInput when the runner
    cannot serve a whole space.
    """

    device: Mapping[str, Any]

    def run(self, workload: ConvWorkload, configs: Sequence[ConvConfig]) -> list[Result]:
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

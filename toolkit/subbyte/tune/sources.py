"""The inputs of a tuning: the runner and the space of each workload, and the path of its log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput, MissingDependency, Unsupported, did_you_mean, shown
from subbyte.families import usual_kind
from subbyte.families.registry import families, family_of_kind, kind_named
from subbyte.files import slug
from subbyte.measure.replay import ReplayRunner
from subbyte.measure.runner import Runner, parse_device
from subbyte.records.describe import SpaceLike
from subbyte.records.landscape import Landscape, find_landscape, shipped
from subbyte.records.recorded_space import space_of
from subbyte.workload import ConvWorkload

RUNNERS = ("auto", "cuda", "replay", "fake")
DEFAULT_ARCH = "sm_90a"
DEFAULT_TRIALS = 100


class Sources(ExitStack):
    """Provides the runner and the space of each workload. Closes the runners that it opened.

    Raises InvalidInput for an unknown runner, or a landscape with another runner than replay.
    """

    def __init__(
        self,
        runner: str | Runner,
        arch: str | None,
        kind: str | None,
        fixed: Mapping[str, Any] | None,
        given: Landscape | None,
        device: int | str | Sequence[int] = 0,
        timeout: float | None = None,
    ) -> None:
        super().__init__()
        if runner not in RUNNERS if isinstance(runner, str) else not hasattr(runner, "run"):
            raise InvalidInput(
                f"unknown runner {shown(runner)}: {did_you_mean(runner, RUNNERS)} (in Python also a Runner)"
            )
        if given is not None and not replayed(runner):
            raise InvalidInput("a landscape needs the runner replay")
        self._runner, self._given = runner, given
        self._arch, self._kind, self._fixed = arch, kind, fixed
        self._device, self._timeout = device, timeout
        self._shared = runner if not isinstance(runner, str) else None
        self.shared_only = (isinstance(runner, str) and runner == "cuda") or self._shared is not None

    def of(self, workload: ConvWorkload) -> tuple[Runner, SpaceLike]:
        """Runner and space for a workload. Raises Unsupported, MissingDependency with the reason."""
        source = self._shared or self._chosen(workload)
        if isinstance(source, str):
            source = self._shared = self.enter_context(_open(source, self._device, self._timeout))
        if isinstance(source, ReplayRunner):
            return source, _recorded(source, self._fixed)
        arch = self._arch or getattr(source, "arch", None) or DEFAULT_ARCH
        return source, _space(workload, arch, self._kind_of(workload, arch), self._fixed)

    def _chosen(self, workload: ConvWorkload) -> Runner | str:
        kind = self._kind_of(workload, self._arch) if self._given is None else ""
        return _choose(self._runner, workload, self._arch, kind, self._fixed, self._given)

    def _kind_of(self, workload: ConvWorkload, arch: str | None) -> str:
        """The requested kind of space, else the default one of the layer."""
        return usual_kind(workload, arch_named(arch or DEFAULT_ARCH)) if self._kind is None else self._kind

    def not_covered(self, workload: ConvWorkload) -> str | None:
        """Why no kernel of the requested kind of space covers a workload; None when one does."""
        return not_covered(workload, self._arch or DEFAULT_ARCH, self._kind_of(workload, self._arch))

    @staticmethod
    def optimum(runner: Runner, workload: ConvWorkload) -> dict[str, float]:
        """The landscape's best time in microseconds by spec; empty if unknown."""
        return {workload.spec: runner.landscape.best[1].microseconds} if isinstance(runner, ReplayRunner) else {}


def nothing_in(space: SpaceLike) -> str:
    """The message for a space in which no configuration can be built."""
    kinds = getattr(space, "refused", {})
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    said = f"the {space.kind} space of {space.workload.label} holds nothing that can be built"
    if len(kinds) == 1 and (reason := space.check(0)) is not None:
        return f"{said}: {reason}"
    return f"{said} ({counts}); try another kind of space or other switches"


def replayed(runner: str | Runner) -> bool:
    """Whether the runner uses a landscape."""
    return isinstance(runner, str) and runner in ("auto", "replay")


def has_gpu() -> bool:
    """True when the driver finds a GPU."""
    from subbyte.gpu.driver import detect

    try:
        return bool(detect())
    except MissingDependency:
        return False


def _choose(
    runner: str | Runner,
    workload: ConvWorkload,
    arch: str | None,
    kind: str,
    fixed: Mapping[str, Any] | None,
    given: Landscape | None,
) -> Runner | str:
    """A replay runner for this workload, or the name of a runner that serves all workloads."""
    if given is not None:
        return ReplayRunner(given)
    if runner in ("cuda", "fake"):
        return str(runner)
    if runner == "auto" and has_gpu():
        return "cuda"
    kind, family = kind_named(kind)
    name = find_landscape(workload, arch, kind, fixed)
    if name is not None:
        return ReplayRunner(name)
    require_covered(workload, arch or DEFAULT_ARCH, kind)
    others = [one for one in shipped() if any(f".{such}." in one for such in (kind, *family.parts.get(kind, ())))]
    where = ", ".join([f"{kind} space", *([arch] if arch else []), *(f"{k}={v}" for k, v in (fixed or {}).items())])
    raise MissingDependency(
        f"nothing can measure {workload.label}: this machine shows no GPU and no landscape of it "
        f"({where}) is shipped; "
        + (f"shipped of this space: {', '.join(others)}; " if others else "")
        + "`subbyte landscape list` lists them all, and the runner fake gives made-up times"
    )


def _open(name: str, device: int | str | Sequence[int] = 0, timeout: float | None = None) -> Runner:
    if name == "fake":
        from subbyte.measure.fake import FakeRunner

        return FakeRunner()
    from subbyte.measure.cuda_runner import CudaRunner, SeveralGpus

    numbers = parse_device(device)
    if numbers is not None and len(numbers) > 1:
        return SeveralGpus(numbers, timeout)
    return CudaRunner(device, timeout=timeout)


def _space(workload: ConvWorkload, arch: str, kind: str, fixed: Mapping[str, Any] | None) -> SpaceLike:
    from subbyte.families import space

    found = space(workload, arch, kind, **(fixed or {}))
    require_covered(workload, arch, kind)
    return found


def _recorded(runner: ReplayRunner, fixed: Mapping[str, Any] | None) -> SpaceLike:
    """The space of a landscape. Raises InvalidInput for a switch that was not recorded with it."""
    from subbyte.families import space

    recorded = runner.landscape.header["space"]
    family = family_of_kind(recorded["kind"])
    if family is None or family.slow_to_list:  # a foreign kernel, or part of a space
        return space_of(runner.landscape)
    wanted = family.held(fixed or {})
    for name in fixed or {}:
        if recorded["fixed"].get(name) != wanted[name]:
            raise InvalidInput(
                f"{name}={wanted[name]!r}: landscape {runner.landscape.name} was recorded with "
                f"{name}={recorded['fixed'].get(name)!r}; choose another landscape or runner"
            )
    today = space(runner.landscape.workload, recorded["arch"], recorded["kind"], **recorded["fixed"])
    # A space that has gained knobs or values since is no longer the recorded one; the recorded one is then searched.
    return today if today.hash == runner.landscape.space_hash else space_of(runner.landscape)


def require_covered(workload: ConvWorkload, arch: Arch | str, kind: str) -> None:
    """Raise Unsupported with the reason when no kernel of a kind of space covers the workload."""
    reason = not_covered(workload, arch, kind)
    if reason is not None:
        raise Unsupported(f"the {kind} space of {workload} has no configuration that can be built: {reason}")


def not_covered(workload: ConvWorkload, arch: Arch | str, kind: str) -> str | None:
    """Why no kernel of a kind of space covers the workload, and which other family does; None when one does."""
    from subbyte.kernel.coverage import covered

    family = kind_named(kind)[1]
    reason = covered(workload, arch, family.name)
    if reason is None:
        return None
    for other in families().values():
        if other is not family and covered(workload, arch, other.name) is None:
            such = next(iter(other.kinds))
            return f"{reason}; the {other.name} family covers it: kind={such!r} (--space {such})"
    return reason


def log_path(log: str | os.PathLike[str] | None, workload: ConvWorkload, count: int) -> Path | None:
    """The log path for one of ``count`` workloads."""
    if log is None:
        return None
    path = Path(log)
    return path if count == 1 else path.with_name(f"{path.stem}.{slug(workload.label)}{path.suffix}")

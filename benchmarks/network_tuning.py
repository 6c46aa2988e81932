"""Parts of ``tune_network.py`` that run in other processes: sorting out a space, building, and measuring."""

from __future__ import annotations

import os
import pickle
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gpu_case import GpuCase

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import BuildFailed, InvalidInput
from subbyte.kernel.warpgroup_default import estimated_cycles, warpgroup_candidates
from subbyte.measure.cuda_runner import MakeGpuBody
from subbyte.measure.gpu_worker import Body, GpuBody
from subbyte.measure.worker import WorkerPool
from subbyte.schedule import WarpgroupConfig
from subbyte.space.warpgroup import WarpgroupSpace, warpgroup_space
from subbyte.workload import ConvWorkload

KEPT_WORKLOADS = 8
"""Workloads whose operands a measuring process keeps: more than are searched at a time."""
PART = 8000
"""Products of a space that are sorted out by one call."""
SHAPE_KNOBS = ("tile_width", "tile_rows", "groups_m", "groups_x", "groups_y", "segments", "split")
"""Knobs that decide how the work is divided; the others how it is fetched."""
Part = tuple[list[tuple[int, float]], dict[str, int]]


def sorted_part(workload: ConvWorkload, arch_name: str, indices: Sequence[int]) -> Part:
    """The valid ones of some indices with their estimated cycles, and how many were refused by kind of reason."""
    space = warpgroup_space(workload, arch(arch_name))
    valid: list[tuple[int, float]] = []
    refused = Counter[str]()
    for index in indices:
        plan = space.plan(index)
        reason = space.why_not(plan.config)
        if reason is None:
            valid.append((index, estimated_cycles(plan)))
        else:
            refused[reason.split(":")[0]] += 1
    return valid, dict(refused)


def sorted_space(
    workload: ConvWorkload,
    arch_name: str,
    pool: Executor,
    kept: Path | None = None,
    limit: int | None = None,
    include: Sequence[WarpgroupConfig] = (),
) -> tuple[WarpgroupSpace, list[int]]:
    """The space, sorted out side by side, and its valid indices in the order of their estimates.

    Of a space of more than ``limit`` products a random sample of so many is looked at, and ``include``. What was found
    is kept in the folder ``kept``, for other processes that search the same space.
    """
    space = warpgroup_space(workload, arch(arch_name))
    file = kept / f"{workload.spec}.pickle" if kept is not None else None
    if file is not None and file.exists():
        parts: list[Part] = pickle.loads(file.read_bytes())
    else:
        size = prod(len(values) for values in space.knobs.values())
        looked: Sequence[int] = range(size)
        if limit is not None and size > limit:
            named = {index for config in include if (index := place_of(space, config)) is not None}
            looked = sorted(named | set(random.Random(0).sample(range(size), limit)))
        chunks = [looked[n : n + PART] for n in range(0, len(looked), PART)]
        futures = [pool.submit(sorted_part, workload, arch_name, chunk) for chunk in chunks]
        parts = [future.result() for future in futures]
        if file is not None:
            partial = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            partial.write_bytes(pickle.dumps(parts))
            partial.replace(file)
    refused: Counter[str] = sum((Counter(part[1]) for part in parts), Counter())
    found = [entry for part in parts for entry in part[0]]
    # What the property of the same name would find by itself, one configuration after the other.
    space.__dict__["_sorted_out"] = (tuple(index for index, _ in found), dict(refused))
    space.__dict__["listed"] = True  # also beyond the size up to which strategies list a space
    return space, [index for index, _ in sorted(found, key=lambda entry: entry[1])]


def place_of(space: WarpgroupSpace, config: WarpgroupConfig) -> int | None:
    """The index of a configuration, None when it lies outside the space."""
    try:
        return space.index(config)
    except InvalidInput:
        return None


def likely(workload: ConvWorkload, arch_name: str, count: int) -> list[WarpgroupConfig]:
    """What ``compile`` would take, the best by estimate first."""
    return warpgroup_candidates(workload, arch(arch_name))[:count]


def seeds(
    space: WarpgroupSpace, first: Sequence[WarpgroupConfig], by_estimate: Sequence[int], count: int
) -> list[WarpgroupConfig]:
    """Configurations to begin with: ``first`` as far as they are listed, and the best by estimate of each way to
    divide the work."""
    listed = set(by_estimate)
    found = [config for config in first if place_of(space, config) in listed]
    seen = set()
    for index in by_estimate:
        config = space.config(index)
        shape = tuple(getattr(config, name, 0) for name in SHAPE_KNOBS)
        if shape not in seen:
            seen.add(shape)
            found.append(config)
        if len(found) >= count:
            break
    return found


def build_clean(workload: ConvWorkload, config: Any, arch_name: str) -> Any:
    """Like :func:`subbyte.build`; a kernel of the warpgroup family that needs local memory is refused."""
    kernel = subbyte.build(workload, config, arch_name)
    if isinstance(config, WarpgroupConfig) and kernel.resources.local_bytes:
        raise BuildFailed(f"{config.key} needs {kernel.resources.local_bytes} bytes of local memory")
    return kernel


class ForkedBuilders:
    """Building processes that are forked from this one after it has loaded TVM: a hundred of them are there at once,
    where a hundred interpreters that load it for themselves take a minute. After a death ordinary ones take over."""

    def __init__(self, count: int) -> None:
        import subbyte.kernel.lower  # noqa: F401 - loads TVM, before anything is forked

        self._count = count
        self._pool: Executor = ProcessPoolExecutor(count, mp_context=get_context("fork"))
        self._pool.submit(os.getpid).result()  # starts all of them, while this process has no threads yet

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """As for an executor."""
        try:
            return self._pool.submit(function, *arguments)
        except BrokenExecutor:
            self._pool = WorkerPool(self._count, "building")
            return self._pool.submit(function, *arguments)

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        """As for an executor."""
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)


@dataclass(frozen=True)
class MakeNetworkBody(MakeGpuBody):
    """Makes the body of a measuring process whose answers come from the GPU."""

    def __call__(self) -> Body:
        """The body, in the process that calls."""
        return NetworkBody(self.devices, self.protocol, self.seed)


class NetworkBody(GpuBody):
    """A GPU; the exact answer of each workload is computed on it (see ``gpu_case.py``)."""

    _kept = KEPT_WORKLOADS

    def _case(self, workload: ConvWorkload) -> GpuCase:
        return GpuCase(workload, self._seed)

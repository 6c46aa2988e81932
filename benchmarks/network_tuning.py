"""Parts of ``tune_network.py`` that run in other processes: sorting out a space, building, and measuring."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any

from gpu_case import GpuCase

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import BuildFailed
from subbyte.kernel.warpgroup_default import estimated_cycles, warpgroup_candidates
from subbyte.measure.case import Evaluator
from subbyte.measure.cuda_runner import MakeGpuBody
from subbyte.measure.gpu_worker import Body, GpuBody
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


def sorted_part(workload: ConvWorkload, arch_name: str, first: int, last: int) -> Part:
    """Valid indices between two with their estimated cycles, and how many were refused by kind of reason."""
    space = warpgroup_space(workload, arch(arch_name))
    names = tuple(reversed(tuple(space.knobs)))
    every = product(*reversed(tuple(space.knobs.values())))
    valid: list[tuple[int, float]] = []
    refused = Counter[str]()
    for index, values in zip(range(first, last), islice(every, first, last), strict=True):
        plan = space.plan(WarpgroupConfig(**dict(zip(names, values, strict=True))))
        reason = space.why_not(plan.config)
        if reason is None:
            valid.append((index, estimated_cycles(plan)))
        else:
            refused[reason.split(":")[0]] += 1
    return valid, dict(refused)


def sorted_space(
    workload: ConvWorkload, arch_name: str, pool: Executor, kept: Path | None = None
) -> tuple[WarpgroupSpace, list[int]]:
    """The space, sorted out side by side, and its valid indices in the order of their estimates.

    What was found is kept in the folder ``kept``, for other processes that search the same space.
    """
    space = warpgroup_space(workload, arch(arch_name))
    file = kept / f"{workload.spec}.pickle" if kept is not None else None
    if file is not None and file.exists():
        parts: list[Part] = pickle.loads(file.read_bytes())
    else:
        size = prod(len(values) for values in space.knobs.values())
        futures = [pool.submit(sorted_part, workload, arch_name, n, min(n + PART, size)) for n in range(0, size, PART)]
        parts = [future.result() for future in futures]
        if file is not None:
            partial = file.with_suffix(f".{os.getpid()}")
            partial.write_bytes(pickle.dumps(parts))
            partial.replace(file)
    refused: Counter[str] = sum((Counter(part[1]) for part in parts), Counter())
    found = [entry for part in parts for entry in part[0]]
    # What the property of the same name would find by itself, one configuration after the other.
    space.__dict__["_sorted_out"] = (tuple(index for index, _ in found), dict(refused))
    return space, [index for index, _ in sorted(found, key=lambda entry: entry[1])]


def seeds(space: WarpgroupSpace, by_estimate: Sequence[int], count: int) -> list[WarpgroupConfig]:
    """Configurations to begin with: what ``compile`` would take, and the best by estimate of each way to divide."""
    found = warpgroup_candidates(space.workload, space.arch)[: max(2, count // 4)]
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


@dataclass(frozen=True)
class MakeNetworkBody(MakeGpuBody):
    """Makes the body of a measuring process whose answers come from the GPU."""

    def __call__(self) -> Body:
        """The body, in the process that calls."""
        return NetworkBody(self.devices, self.protocol, self.seed)


class NetworkBody(GpuBody):
    """A GPU; the exact answer of each workload is computed on it (see ``gpu_case.py``)."""

    def _evaluator(self, workload: ConvWorkload) -> Evaluator:
        if workload not in self._evaluators:
            while len(self._evaluators) >= KEPT_WORKLOADS:
                self._evaluators.pop(next(iter(self._evaluators))).close()
            case = GpuCase(workload, self._seed)
            self._evaluators[workload] = Evaluator(self._gpu, case, self._protocol, self._watch)
        return self._evaluators[workload]

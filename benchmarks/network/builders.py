"""Parts of ``tune`` that run in other processes: enumerating a space, building, and measuring."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.shared.gpu_case import GpuCase
from subbyte.device.arch import arch
from subbyte.errors import BuildFailed, InvalidInput
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.cycles import estimated_cycles
from subbyte.families.wgmma.estimate import candidates
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.space import CHOICE, WGMMA, WgmmaSpace, own_values, wgmma_space
from subbyte.files import replace_file
from subbyte.measure.cuda_runner import MakeGpuBody
from subbyte.measure.gpu_worker import Body, GpuBody
from subbyte.measure.worker import WorkerPool
from subbyte.records.result import Failed, Measured, Result
from subbyte.workload import ConvWorkload

KEPT_WORKLOADS = 40
"""Workloads whose operands a measuring process keeps: its share of all, because searches go back to them."""
NICENESS = 10
"""Of building processes."""
PART = 8000
"""Products of a space that are enumerated by one call."""
SHAPE_KNOBS = ("tile_width", "tile_rows", "consumers_m", "consumers_n", "consumers_rows", "segments", "cluster_split_k")
"""Knobs that decide how the work is divided; the others how it is fetched."""
MODE_KNOBS = ("pixels", "tiles_m", "producers", CHOICE)
"""Knobs that change how a block works: some values go together with certain others only."""
ORDINARY = (*(name for name in SHAPE_KNOBS if name != "cluster_split_k"), "m_iterations", "channel_groups", "stages",
            "row_reuse", "load_ahead", "unroll", "in_flight", "dependent_launch")  # fmt: skip
ROWS = {**SingleTileConfig.rows, **PipelineConfig.rows}
WAYS = tuple(name for name, row in ROWS.items() if name not in ORDINARY and not row.switch)
"""Knobs whose values are left alone when their kernels hang again and again: every one but those."""
HANGS_ALLOWED = 3
"""Kernels of one way of working that may hang, or crash, before it is left alone."""
LISTED = 100_000
"""Products up to which all are looked at."""
BASES, BASES_AT_ONCE = 80, 4
"""Of a larger space: configurations around which the other knobs are tried, and how many by one call."""
Part = tuple[list[tuple[int, float]], dict[str, int]]


def usual_values() -> dict[str, int]:
    """The usual value of every knob of both kernels, of which the one with a pipeline is usual."""
    return {name: 0 if name == CHOICE else row.default for name, row in ROWS.items() if not row.switch}


def value_of(config: Any, name: str) -> Any:
    """The value of a knob of the space; None where it means nothing to the configuration's kernel."""
    return config.to_dict().get(name, 0 if name == CHOICE else None)


def widened(workload: ConvWorkload, arch_name: str, configs: Sequence[WgmmaConfig] = ()) -> WgmmaSpace:
    """The space of a layer, its lists with the values of some configurations that lie outside it."""
    space = wgmma_space(workload, arch(arch_name), WGMMA)
    knobs = {name: list(values) for name, values in space.knobs.items()}
    usual = usual_values()
    for values in ({CHOICE: 0, **config.to_dict()} for config in configs):
        if any(values[name] != value for name, value in space.fixed.items()):
            continue
        for name in (name for name in values if name not in space.fixed):
            known = knobs.setdefault(name, [usual[name]])
            known += [values[name]] if values[name] not in known else []
    kept = {name: tuple(values) for name, values in knobs.items() if name in space.knobs or len(values) > 1}
    return WgmmaSpace(workload, space.arch, kept, space.kind, space.fixed)


def sorted_part(space: WgmmaSpace, indices: Sequence[int]) -> Part:
    """The valid ones of some indices with their estimated cycles, and how many were refused by kind of reason."""
    valid: list[tuple[int, float]] = []
    refused = Counter[str]()
    for index in indices:
        reason = space.check(index)
        if reason is None:
            valid.append((index, estimated_cycles(space.plan(index))))
        else:
            refused[reason.split(":")[0]] += 1
    return valid, dict(refused)


def near_part(space: WgmmaSpace, bases: Sequence[int]) -> Part:
    """The same of all indices that differ from one of ``bases`` in at most two knobs that leave the shape as it is, or
    in any of those that change how a block works and one other."""
    weights, weight = {}, 1
    for name, values in space.knobs.items():
        weights[name] = weight
        weight *= len(values)
    free = [name for name in space.knobs if name not in SHAPE_KNOBS]
    near: set[int] = set()
    for base in bases:
        steps = {name: _steps(base, weights[name], len(space.knobs[name])) for name in free}
        modes = [base]
        for name in (name for name in free if name in MODE_KNOBS):
            modes += [mode + step for mode in modes for step in steps[name]]
        near.update(modes)
        near.update(mode + step for mode in modes for name in free if name not in MODE_KNOBS for step in steps[name])
        near.update(base + x + y for one, two in combinations(free, 2) for x in steps[one] for y in steps[two])
    return sorted_part(space, sorted({_of_its_kernel(space, index, weights) for index in near}))


def _of_its_kernel(space: WgmmaSpace, index: int, weights: Mapping[str, int]) -> int:
    """The index of the kernel that an index chooses: knobs that mean nothing to it at the first of their values."""
    own = own_values(space.values_at(index))
    return sum(index // weights[name] % len(values) * weights[name]
               for name, values in space.knobs.items() if name in own or name == CHOICE)  # fmt: skip


def _steps(index: int, weight: int, count: int) -> list[int]:
    """What must be added to an index to give one knob each of its other values."""
    digit = index // weight % count
    return [(other - digit) * weight for other in range(count) if other != digit]


def sorted_space(
    space: WgmmaSpace,
    pool: Executor,
    kept: Path | None = None,
    limit: int = LISTED,
    include: Sequence[WgmmaConfig] = (),
) -> tuple[WgmmaSpace, list[int]]:
    """A space, enumerated side by side, and its valid indices in the order of their estimates.

    Of a space of more than ``limit`` products is looked at whatever is near (:func:`near_part`) the best by estimate of
    each shape that ``compile`` would consider, or near ``include``. What was found is kept in the folder ``kept``, for
    other processes that search the same space; one of other knobs or rules has another name there.
    """
    workload, arch_name = space.workload, space.arch.name
    space = WgmmaSpace(workload, space.arch, space.knobs, space.kind, space.fixed)  # without what it has found out
    file = kept / f"{workload.spec}.{space.rules_hash}.pickle" if kept is not None else None
    if file is not None and file.exists():
        parts: list[Part] = pickle.loads(file.read_bytes())
    else:
        size = prod(len(values) for values in space.knobs.values())
        if size <= limit:
            parts = _parts(pool, sorted_part, space, range(size), PART)
        else:
            chosen = pool.submit(likely, workload, arch_name, None).result()
            places = [place_of(space, config) for config in (*include, *chosen)]
            shaped = _each_shape(space, [place for place in places if place is not None])
            bases = [*(place for place in places[: len(include)] if place is not None), *shaped[:BASES]]
            parts = _parts(pool, near_part, space, list(dict.fromkeys(bases)), BASES_AT_ONCE)
        if file is not None:
            replace_file(file, pickle.dumps(parts))
    refused: Counter[str] = sum((Counter(part[1]) for part in parts), Counter())
    found = {index: cycles for part in parts for index, cycles in part[0]}
    # What the property of the same name would find by itself, one configuration after the other.
    space.__dict__["_enumerated"] = (tuple(sorted(found)), dict(refused))
    space.__dict__["listed"] = True  # also beyond the size up to which strategies list a space
    return space, sorted(found, key=lambda index: (found[index], index))


def _parts(
    pool: Executor, look: Callable[..., Part], space: WgmmaSpace, indices: Sequence[int], count: int
) -> list[Part]:
    chunks = [indices[first : first + count] for first in range(0, len(indices), count)]
    return [future.result() for future in [pool.submit(look, space, chunk) for chunk in chunks]]


def _each_shape(space: WgmmaSpace, ordered: Iterable[int]) -> list[int]:
    """The best by estimate of each way to divide the work."""
    found: dict[tuple[Any, ...], int] = {}
    for index in ordered:
        config = space.config(index)
        found.setdefault(tuple(value_of(config, name) or 0 for name in SHAPE_KNOBS), index)
    return list(found.values())


def place_of(space: WgmmaSpace, config: WgmmaConfig) -> int | None:
    """The index of a configuration, None when it lies outside the space."""
    try:
        return space.index(config)
    except InvalidInput:
        return None


def likely(workload: ConvWorkload, arch_name: str, count: int | None) -> list[WgmmaConfig]:
    """What ``compile`` would take, the best by estimate first, with stages that the space lists."""
    depths = wgmma_space(workload, arch(arch_name), WGMMA).knobs["stages"]
    found = []
    for config in candidates(workload, arch(arch_name))[:count]:
        fitting = [stages for stages in depths if stages <= config.stages]
        found.append(config.with_values({"stages": max(fitting)}) if fitting else config)
    return found


def seeds(space: WgmmaSpace, first: Sequence[WgmmaConfig], by_estimate: Sequence[int], count: int) -> list[WgmmaConfig]:
    """Configurations to begin with: ``first`` as far as they are listed, and the best by estimate of each way to
    divide the work."""
    listed = set(by_estimate)
    found = [config for config in first if place_of(space, config) in listed]
    for index in _each_shape(space, by_estimate):
        if len(found) >= count:
            break
        found.append(space.config(index))
    return found


def build_clean(workload: ConvWorkload, config: Any, arch_name: str) -> Any:
    """Like :func:`subbyte.build`; a kernel of the wgmma family that needs local memory is refused."""
    kernel = subbyte.build(workload, config, arch_name)
    if isinstance(config, WgmmaConfig) and kernel.resources.local_bytes:
        raise BuildFailed(f"{config.key} needs {kernel.resources.local_bytes} bytes of local memory")
    return kernel


class ForkedBuilders(Executor):
    """Building processes that are forked from this one after it has loaded TVM: a hundred of them are there at once,
    where a hundred interpreters that load it for themselves take a minute. They stand back behind the processes that
    measure, which else wait for a processor 30 times longer than they measure. After a death ordinary ones take over.
    """

    def __init__(self, count: int) -> None:
        import subbyte.tirx.lower  # noqa: F401 - loads TVM, before anything is forked

        self._count = count
        self._pool: Executor = ProcessPoolExecutor(count, get_context("fork"), os.nice, (NICENESS,))
        self._pool.submit(os.getpid).result()  # starts all of them, while this process has no threads yet

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """As for an executor; arguments have no names."""
        try:
            return self._pool.submit(function, *arguments)
        except BrokenExecutor:
            self._pool = WorkerPool(self._count, "building")
            return self._pool.submit(function, *arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As for an executor."""
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)


class Guarded:
    """A runner that leaves a way of working alone once it has stopped the GPU several times: a kernel that hangs costs
    seconds and the process that holds the operands of all layers, one that is wrong costs milliseconds."""

    def __init__(self, runner: Any, allowed: int = HANGS_ALLOWED) -> None:
        self._runner, self._allowed = runner, allowed
        self._stopped = Counter[tuple[str, int]]()
        self._worked = Counter[tuple[str, int]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    def __enter__(self) -> Guarded:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def run(self, workload: ConvWorkload, configs: Sequence[Any]) -> list[Result]:
        """As :meth:`iterate`, all at once."""
        return list(self.iterate(workload, configs))

    def iterate(self, workload: ConvWorkload, configs: Sequence[Any]) -> Iterator[Result]:
        """The runner's results in order, without asking it for what is left alone."""
        reasons = [self.left_alone(config) for config in configs]
        asked = [config for config, reason in zip(configs, reasons, strict=True) if reason is None]
        measured = self._runner.iterate(workload, asked)
        try:
            for config, reason in zip(configs, reasons, strict=True):
                if reason is not None:
                    yield Failed("timeout", reason, device=self._runner.device)
                    continue
                result = next(measured)
                self._note(config, result)
                yield result
        finally:
            measured.close()

    def left_alone(self, config: Any) -> str | None:
        """Why a configuration is not tried, None when it is."""
        for way in ways_of(config):
            if self._stopped[way] >= self._allowed and self._stopped[way] > self._worked[way]:
                return f"not tried: {self._stopped[way]} kernels with {way[0]}={way[1]} did not end"
        return None

    def _note(self, config: Any, result: Result) -> None:
        for way in ways_of(config):
            self._stopped[way] += isinstance(result, Failed) and result.kind in ("timeout", "crash")
            self._worked[way] += isinstance(result, Measured)


def ways_of(config: Any) -> list[tuple[str, int]]:
    """The knobs of a configuration that make its blocks work in another way than usual, with their values."""
    if not isinstance(config, WgmmaConfig):
        return []
    usual, given = usual_values(), {CHOICE: 0, **config.to_dict()}
    return [(name, given[name]) for name in WAYS if name in given and given[name] != usual[name]]


@dataclass(frozen=True)
class MakeNetworkBody(MakeGpuBody):
    """Makes the body of a measuring process whose answers come from the GPU."""

    def __call__(self) -> Body:
        """The body, in the process that calls."""
        return NetworkBody(self.devices, self.protocol, self.seed)


class NetworkBody(GpuBody):
    """A GPU; the exact answer of each workload is computed on it (see ``shared/gpu_case.py``)."""

    _kept = KEPT_WORKLOADS

    def _case(self, workload: ConvWorkload) -> GpuCase:
        return GpuCase(workload, self._seed)

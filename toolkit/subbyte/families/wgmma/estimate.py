"""Which configuration to use without measurements: the best of a small list, by estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, cast

from subbyte.device.arch import Arch
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.cycles import estimated_cycles
from subbyte.families.wgmma.pipeline.config import FLAT, FLAT_BATCH, ROW_REUSE, ROWS, PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import sizes
from subbyte.families.wgmma.skipping import skipping
from subbyte.families.wgmma.values import value_lists
from subbyte.workload import ConvWorkload, ceil_div

SPARSE_GAIN = 0.92
"""A 2:4 kernel is expected to be faster only if its estimated time is at most this fraction of the dense kernel's. The
ratios are estimated with an error of 12 % (root mean square, the kernels of ``benchmarks/results/sparse``; batch 256:
6 %)."""

DIVIDING = ("tile_width", "tile_rows", "consumers_m", "consumers_n", "consumers_rows", "segments", "cluster_split_k",
            "channel_groups", "row_reuse", "m_iterations", "pixels", "tiles_m", "resident")  # fmt: skip
"""Knobs that decide how the work is divided."""
FEW = {"tile_width": 4, "segments": 6, "tiles_m": 1, "pixels": 3}
"""Number of a knob's values that are combined with all others; 2 for knobs not named."""
TURNS, BRED = 4, 24
"""How many times single knobs are varied, and around how many of the best."""
COPIED_AHEAD = 3
"""Stages of bytes in flight, if there is room for them."""
CONDITION_REGISTERS = 16
"""Additional registers of a producer thread whose loads each have a condition, or a row to be located."""


def candidates(workload: ConvWorkload, arch: Arch) -> list[PipelineConfig]:
    """Configurations that can be built, fewest :func:`estimated_cycles` first; for weights with a
    pattern of zeros those of both kernels, starting with the kernel that is expected to be faster.

    All combinations of a few values of the knobs that divide the work are estimated, then several times all variants of
    the best found so far that differ in one of these knobs. The other knobs follow from them (:func:`_completed`).
    """
    found = _estimated(workload, arch, PipelineConfig, value_lists(workload))
    own = skipping(workload)
    if own is not None:
        sparse = _estimated(workload, arch, own.kind, own.values(workload))
        gain = expected_gain(found, sparse)
        first, second = (sparse, found) if gain is not None and gain < SPARSE_GAIN else (found, sparse)
        return [*sorted(first, key=first.__getitem__), *sorted(second, key=second.__getitem__)]
    return sorted(found, key=found.__getitem__)


def expected_gain(dense: Mapping[PipelineConfig, float], sparse: Mapping[PipelineConfig, float]) -> float | None:
    """Estimated time of the best kernel that skips zeros over that of the best dense one; None if either is missing."""
    return min(sparse.values()) / min(dense.values()) if sparse and dense else None


def _estimated(
    workload: ConvWorkload, arch: Arch, kind: type[PipelineConfig], values: Mapping[str, Sequence[int]]
) -> dict[PipelineConfig, float]:
    """Configurations of a kernel that can be built, with their estimates."""
    lists = {name: tuple(listed) for name, listed in values.items() if name in DIVIDING}
    lists["row_reuse"] = tuple(value for value in lists.get("row_reuse", (1,)) if value in (0, 1))
    lists["pixels"] = tuple(value for value in lists.get("pixels", (ROWS,)) if value in (ROWS, FLAT, FLAT_BATCH))
    usual = {name: getattr(kind(stagger=0), name) for name in DIVIDING if name in kind.rows}
    found: dict[PipelineConfig, float] = {}
    seen: set[tuple[int, ...]] = set()
    _look_at(workload, arch, kind, ({**usual, **one} for one in _combinations(lists)), found, seen)
    for _ in range(TURNS):
        best = [{name: getattr(one, name) for name in usual} for one in sorted(found, key=found.__getitem__)[:BRED]]
        near = ({**one, name: value} for one in best for name, values in lists.items() for value in values)
        _look_at(workload, arch, kind, near, found, seen)
    return found


def _look_at(
    workload: ConvWorkload,
    arch: Arch,
    kind: type[PipelineConfig],
    divided: Iterable[dict[str, int]],
    found: dict[PipelineConfig, float],
    seen: set[tuple[int, ...]],
) -> None:
    """Add the buildable ones of these ways to divide the work, a value for each of DIVIDING, to ``found``, with their
    estimates. Most recur in each round, so configurations are only made for new ones."""
    for values in divided:
        values["row_reuse"] = ROW_REUSE[values["row_reuse"]][0]
        if (way := tuple(values.values())) in seen:
            continue
        seen.add(way)
        for one in _completed(WgmmaPlan(workload, kind(**cast(Any, values), stagger=0), arch)):
            plan = WgmmaPlan(workload, one, arch)
            if why_not(plan) is None:
                found[one] = estimated_cycles(plan)


def _combinations(lists: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """All combinations of at most FEW values of each knob, spread evenly over its list."""
    few = {name: tuple(values[:: ceil_div(len(values), FEW.get(name, 2))]) for name, values in lists.items()}
    for values in product(*few.values()):
        yield dict(zip(few, values, strict=True))


def _copying(plan: WgmmaPlan, fitting: int, least: int) -> dict[str, int]:
    """Stages in flight in their own buffers: as many as there is room for besides those that are read, at most 3."""
    config, whole = plan.knobs, plan.most_staged * plan.knobs.channel_groups
    if not config.keep_rows:
        least, whole = plan.group_stages * (2 if config.channel_groups > 1 else 1) + (plan.tap_rows == 1), fitting
    stages = min(fitting, whole, max(least, config.consumers) + COPIED_AHEAD)
    ahead = min(COPIED_AHEAD, stages - least + 1, stages - config.consumers)
    return {"stages": max(1, stages), "copies_ahead": max(0, ahead), "load_ahead": 1}


def _completed(plan: WgmmaPlan) -> Iterator[PipelineConfig]:
    """The configuration with a pipeline as deep as fits, and as many weights fetched ahead as registers allow."""
    config, base = plan.knobs, cast(PipelineConfig, plan.config)
    if plan.channel_blocks % (config.cluster_split_k * config.channel_groups) or sizes(plan):
        return
    changes: dict[str, int] = {"load_ahead": 1 if plan.accumulators > 112 else 2}
    spare = plan.arch.shared_per_block - 12 * plan.parameter_channels - 4096
    whole = plan.most_staged
    fitting = spare // max(plan.buffer_bytes, 1)
    least = (plan.window + (config.consumers_rows - 1) * plan.next_iteration) * config.channel_groups
    if plan.keep_rows and plan.tap_rows > 1 and least > fitting:  # an iteration's rows do not fit at once
        changes["row_reuse"] = 2
        least = replace(plan, config=base.with_values(changes)).held_stages
    changes["stages"] = max(1, min(fitting, whole * config.channel_groups, least + 3 * config.channel_groups))
    if not config.keep_rows:
        changes["stages"] = max(1, min(fitting, 6))
    if plan.bytes_in:
        changes |= _copying(plan, fitting, max(least, config.consumers))
    room = 200 - plan.accumulators - 44
    words = plan.fragment_words // 128 * plan.workload.s
    if config.listed:
        words = plan.fragment_registers
    steps = [n for n in (4, 2, 1) if plan.steps % n == 0 and words * n <= min(room, 48)]
    changes["unroll"] = steps[0] if steps and not config.resident and not config.listed else 1
    if config.consumers == 1 and plan.workload.s > 1:  # a lone warpgroup has no other to fill its pauses
        fragments = plan.unroll if config.listed else changes["unroll"] * plan.workload.s
        changes["in_flight"] = max(1, min(3, fragments - 1))
    completed = WgmmaPlan(plan.workload, base.with_values(changes), plan.arch)
    ragged = plan.flat and not config.flat_batch and plan.flat_pixels % plan.width_covered > 0
    conditional = plan.x_tiles > 1 or ragged or plan.flat_strided
    if conditional and completed.registers[0] != completed.registers[1]:  # conditions need registers of their own
        changes["producer_registers"] = completed.producer_least + CONDITION_REGISTERS
    yield base.with_values(changes)

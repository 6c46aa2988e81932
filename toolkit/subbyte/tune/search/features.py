"""What a cost model sees of a configuration: its knobs, or the loops and memory traffic of its plan.

``knob``: one column per numeric knob, one per value for knobs with text or truth values. ``plan``: the columns of
``knob`` and, for spaces whose configurations have a plan, the extents of the generated loops, what each level of
memory moves, what a multiprocessor can hold, and an analytic estimate; all of it from the plan, nothing is compiled. Of
the warpgroup family it is the estimate alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

WARPGROUP_KINDS = ("wgmma", "wgmma-small", "warpgroup", "warpgroup-small")
from subbyte.records.describe import SpaceLike
from subbyte.tune.search.grid import Grid, Indices, grid_of

if TYPE_CHECKING:
    from subbyte.families.mma.plan import Plan
    from subbyte.families.wgmma.plan import WarpgroupPlan

Table = npt.NDArray[np.float32]

KINDS = ("knob", "plan")
MULTIPROCESSORS = 132
"""Of the GPU that waves are counted for (H200)."""
_EAGER = {True: 20_000, False: 200_000}
"""Valid configurations up to which a listed space is computed wholly at once, with plan columns and without."""


class Features:
    """Feature rows of a space by index. Plan columns, and small listed spaces as a whole, are computed once."""

    def __init__(self, space: SpaceLike, kind: str = "knob", grid: Grid | None = None) -> None:
        self._grid: Grid = grid or grid_of(space)
        self._columns = [_knob_columns(values) for values in self._grid.values]
        self._plan: Callable[[int], Any] | None = getattr(space, "plan", None) if kind == "plan" else None
        warpgroup = space.kind in WARPGROUP_KINDS
        self._row: Callable[[Any], list[float]] = warpgroup_features if warpgroup else plan_features
        self._planned = WARPGROUP_FEATURES if warpgroup else PLAN_FEATURES
        self.names: tuple[str, ...] = tuple(
            name if table.shape[1] == 1 else f"{name}[{value}]"
            for name, values, table in zip(self._grid.names, self._grid.values, self._columns, strict=True)
            for value in (values if table.shape[1] > 1 else (None,))
        ) + (self._planned if self._plan is not None else ())
        self._rows: dict[int, list[float]] = self._grid.cache.setdefault("plan rows", {})
        self._whole: Table | None = None
        if self._grid.listed and len(self._grid.valid) <= _EAGER[self._plan is not None]:
            key = ("features", self._plan is not None)
            if key not in self._grid.cache:
                self._grid.cache[key] = self._table(self._grid.valid)
            self._whole = self._grid.cache[key]

    @property
    def whole(self) -> Table | None:
        """float32[valid, features] of all valid configurations, in index order; None for spaces too large for it."""
        return self._whole

    def __call__(self, indices: Indices | Sequence[int]) -> Table:
        """float32[n, features] of valid indices [n]."""
        asked = np.asarray(indices, dtype=np.int64)
        return self._whole[self._grid.rows(asked)] if self._whole is not None else self._table(asked)

    def _table(self, indices: Indices) -> Table:
        digits = self._grid.digits(indices)
        parts = [table[digits[:, knob]] for knob, table in enumerate(self._columns)]
        if self._plan is not None:
            for index in indices.tolist():
                if index not in self._rows:
                    self._rows[index] = self._row(self._plan(index))
            rows = [self._rows[index] for index in indices.tolist()]
            parts.append(np.array(rows, dtype=np.float32).reshape(len(rows), len(self._planned)))
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(indices), 0), dtype=np.float32)


def _knob_columns(values: Sequence[Any]) -> Table:
    """float32[values, columns]: the numbers themselves, or one column per value."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=np.float32)[:, None]
    return np.eye(len(values), dtype=np.float32)


def knob_coordinates(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """float64[values, columns] with values in [0, 1], for distances and smooth models.

    Positive numbers that grow by factors go by their logarithm, others by value, anything else one column per value.
    """
    if len(values) == 1:
        return np.zeros((1, 0))
    if not all(isinstance(value, int | float) for value in values):
        return np.eye(len(values)) / np.sqrt(2.0)
    numbers = np.array(values, dtype=np.float64)
    if numbers.min() > 0 and numbers.max() / numbers.min() > 3:
        numbers = np.log2(numbers)
    spread = float(numbers.max() - numbers.min()) or 1.0
    return ((numbers - numbers.min()) / spread)[:, None]


PLAN_FEATURES = (
    "pixels", "columns", "threads", "warps", "iterations", "chunks", "taps_staged", "instructions_tap",
    "instructions_body", "blocks", "resident_blocks", "resident_warps", "waves", "tail", "edge_waste", "shared_bytes",
    "registers", "accumulators", "fragments", "slots", "copies_thread", "activation_bytes", "weight_bytes",
    "traffic_bytes", "intensity", "reuse", "matrix_cycles", "issue_cycles", "copy_cycles", "estimate",
)  # fmt: skip
"""Columns of ``plan_features``; counts, sizes and cycles are log2."""


WARPGROUP_FEATURES = ("estimate",)
"""Columns of ``warpgroup_features``."""


def warpgroup_features(plan: WarpgroupPlan) -> list[float]:
    """The logarithm of the estimated cycles."""
    from subbyte.families.wgmma.estimate import estimated_cycles

    return [log2(estimated_cycles(plan))]


def plan_features(plan: Plan) -> list[float]:
    """Loop extents, traffic and occupancy of a plan, in the order of PLAN_FEATURES."""
    from subbyte.families.mma.rules import registers_allowed, registers_needed

    config, work, arch = plan.config, plan.workload, plan.arch
    warps = config.threads // 32
    blocks = plan.launch.grid[0] * plan.launch.grid[1]
    registers = min(registers_needed(plan), registers_allowed(plan))
    by_shared = max(1, arch.shared_per_sm // (plan.shared_bytes + 1024))
    by_registers = max(1, arch.registers_per_sm // (max(registers, 1) * config.threads))
    resident = max(1, min(by_shared, by_registers, arch.threads_per_sm // config.threads, 32))
    held = min(resident, -(-blocks // MULTIPROCESSORS))
    turns = blocks / (MULTIPROCESSORS * resident)
    waves = float(-(-blocks // (MULTIPROCESSORS * resident)))
    taps = work.r * work.s
    per_tap = plan.pairs * config.warp_col_tiles
    body = plan.taps_staged * per_tap * config.chunk
    activations = plan.activation_words * 4 * plan.iterations
    weights = plan.weight_words * 4 * plan.iterations
    height, width = plan.pixel_tiles
    waste = height * width * config.pixels / (work.p * work.q)
    channel_blocks = work.channel_blocks / config.split_channels
    loads = plan.fragments * (work.r / plan.rows_staged) + taps * config.warp_col_tiles
    busy_warps = held * warps / 4.0
    matrix = channel_blocks * taps * per_tap * 16.0 * max(1.0, busy_warps)
    issue = channel_blocks * (taps * per_tap * 2.0 + loads * 6.0) * max(1.0, busy_warps)
    copied = (activations + weights) / 48.0 * held
    exposed = plan.iterations * 700.0 / max(1.0, min(plan.stages - 1.0, 2.0) * held)
    estimate = waves * (max(matrix, issue, copied) + 0.3 * (matrix + issue + copied) + exposed + 1500.0)
    logs = (
        config.pixels, config.columns, config.threads, warps, plan.iterations, plan.chunks, plan.taps_staged, per_tap,
        body, blocks, resident, resident * warps, waves,
    )  # fmt: skip
    sizes = (
        plan.shared_bytes, registers, plan.accumulators, plan.fragments, plan.slots,
        (plan.activation_copies + plan.weight_copies) / config.threads, activations, weights,
        float(blocks) * (activations + weights),
    )  # fmt: skip
    instructions = channel_blocks * taps * per_tap * warps
    return [
        *(log2(max(value, 1e-3)) for value in logs),
        waves / turns if turns else 1.0,
        waste,
        *(log2(max(value, 1e-3)) for value in sizes),
        log2(instructions / (activations + weights)),
        log2(taps * config.warp_row_tiles / (plan.fragments * (work.r / plan.rows_staged))),
        log2(matrix),
        log2(issue),
        log2(copied),
        log2(estimate),
    ]

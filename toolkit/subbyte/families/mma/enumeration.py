"""Which configurations of a space are valid, computed for all of them at once.

Every rule of :mod:`subbyte.families.mma.rules` reads only a few knobs. It is evaluated once for each combination of
those, and the answers are broadcast over the whole space as arrays; only the two sums over many knobs are computed
here. The result is the same as calling :func:`subbyte.families.mma.rules.why_not` for every configuration, which tests
compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.mma import rules
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import COPY_WORDS, Plan
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP

SAME = "same program"
"""Kind of refusal for a configuration that builds the same program as another one of its space."""
READS: dict[Callable[[Plan], str | None], tuple[str, tuple[str, ...]]] = {
    rules._operands: ("operands", ()),
    rules._sizes: ("index", ()),
    rules._coverage: ("not covered", ()),
    rules._atom: ("atom", ()),
    rules._accumulator: ("accumulator", ()),
    rules._columns: ("divisibility", ("blk_col_warps", "warp_col_tiles")),
    rules._grid: ("grid", ("blk_col_warps", "warp_col_tiles")),
    rules._chunk: ("divisibility", ("chunk", "split_channels", "unroll")),
    rules._tile: ("divisibility", ("blk_row_warps", "warp_row_tiles", "tile_height")),
    rules._index: ("index", ()),
    rules._stages: ("stages", ("stages",)),
    rules._threads: ("threads", ("blk_row_warps", "blk_col_warps", "split_channels")),
    rules._shared: ("shared memory", ()),
    rules._registers: ("registers", ()),
    rules._unrolled: ("code size", ("reorder_inner", "warp_row_tiles", "warp_col_tiles", "unroll")),
}
"""Kind of reason and knobs read for each rule; shared memory and registers have their own functions."""
_PIXELS = ("blk_row_warps", "warp_row_tiles", "tile_height")
_COLUMNS = ("blk_col_warps", "warp_col_tiles")
_RING = ("stages", "chunk", "reorder_inner")
EFFECTS: tuple[tuple[str, tuple[str, ...], Callable[[Plan], Any]], ...] = (
    ("tile_height", _PIXELS, lambda plan: plan.tile),
    ("stages", _RING, lambda plan: plan.stages),
    ("min_blocks", ("min_blocks",), lambda plan: max(1, plan.config.min_blocks)),
)
"""Knobs of which several values can mean the same program: which knobs decide, and what the program depends on."""

Knobs = tuple[tuple[str, tuple[int, ...]], ...]
Fixed = tuple[tuple[str, Any], ...]
Array = NDArray[np.int64]


def plainest(plan: Plan, knobs: Mapping[str, tuple[int, ...]]) -> MmaConfig:
    """The first configuration in the value lists ``knobs`` that builds the same program as that of ``plan``."""
    config = plan.config
    values = {}
    for name, _, effect in EFFECTS:
        for value in knobs.get(name, ()):
            other = config.with_values({name: value})
            if value == getattr(config, name) or (
                rules._tile(_like(plan, other)) is None and effect(_like(plan, other)) == effect(plan)
            ):
                values[name] = value
                break
    return config.with_values(values)


def _like(plan: Plan, config: MmaConfig) -> Plan:
    return Plan(plan.workload, config, plan.arch)


def sort_out(
    workload: ConvWorkload, arch: Arch, knobs: Mapping[str, tuple[int, ...]], fixed: Mapping[str, Any]
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Indices of the valid configurations, ascending (int64), and the number of refused ones by kind of reason."""
    spilled = rules.seen_to_spill(workload.spec, arch.name)
    return _sort_out(workload, arch, tuple(knobs.items()), tuple(fixed.items()), spilled)


@lru_cache(64)
def _sort_out(
    workload: ConvWorkload, arch: Arch, knobs: Knobs, fixed: Fixed, spilled: frozenset[str]
) -> tuple[NDArray[np.int64], dict[str, int]]:
    return _Enumeration(workload, arch, knobs, fixed).enumerated(spilled)


class _Enumeration:
    """Arrays over a space have one axis for each knob, the last knob first, so that flattening gives the index."""

    def __init__(self, workload: ConvWorkload, arch: Arch, knobs: Knobs, fixed: Fixed) -> None:
        self.workload, self.arch, self.fixed = workload, arch, dict(fixed)
        self.knobs = dict(knobs)
        self.names = tuple(reversed(self.knobs))
        self.shape = tuple(len(self.knobs[name]) for name in self.names)

    def enumerated(self, spilled: frozenset[str]) -> tuple[NDArray[np.int64], dict[str, int]]:
        refused: dict[str, int] = {}
        left = np.ones(self.shape, dtype=bool)
        for rule, (kind, reads) in READS.items():
            if rule is rules._shared:
                bad: NDArray[Any] = self._shared() > self.arch.shared_per_block
            elif rule is rules._registers:
                bad = self._registers(spilled)
            else:
                bad = self.table(reads, rule, rectangles=rule is not rules._tile)
            self._take(left, bad, kind, refused)
            if not left.any():
                break
        else:
            for name, reads, effect in EFFECTS:
                if name in self.knobs:
                    self._take(left, self._repeats(name, reads, effect), SAME, refused)
        return np.flatnonzero(left), refused

    @staticmethod
    def _take(left: NDArray[np.bool_], bad: NDArray[Any], kind: str, refused: dict[str, int]) -> None:
        before = int(left.sum())
        left &= ~(bad != 0)
        if gone := before - int(left.sum()):
            refused[kind] = refused.get(kind, 0) + gone

    def table(self, reads: tuple[str, ...], ask: Callable[[Plan], Any], rectangles: bool = True) -> Array:
        """``ask`` for every combination of the knobs it reads, as int64: a number, or 1 for a reason and 0 for none.

        Combinations whose pixels do not form a rectangle are rejected anyway and stay 0.
        """
        shape = tuple(size if name in reads else 1 for name, size in zip(self.names, self.shape, strict=True))
        table = np.zeros(shape, dtype=np.int64)
        tiled = rectangles and set(_PIXELS) <= set(reads)
        for place in np.ndindex(*shape):
            planned = self.plan(place, reads)
            if tiled and rules._tile(planned) is not None:
                continue
            answer = ask(planned)
            table[place] = answer if isinstance(answer, int) else answer is not None
        return table

    def plan(self, place: tuple[int, ...], reads: tuple[str, ...]) -> Plan:
        digits = zip(self.names, place, strict=True)
        values = {name: self.knobs[name][digit] for name, digit in digits if name in reads}
        return Plan(self.workload, MmaConfig(**{**self.fixed, **values}), self.arch)

    def _shared(self) -> Array:
        """Bytes of shared memory, summed like :attr:`Plan.shared_bytes`."""
        stage = self.table((*_PIXELS, "reorder_inner", "chunk"), lambda plan: plan.activation_words)
        stage = stage + self.table((*_COLUMNS, "reorder_inner", "chunk"), lambda plan: plan.weight_words)
        words = self.table(_RING, lambda plan: plan.stages) * stage
        owners = self.table(("blk_row_warps", "blk_col_warps"), lambda plan: plan.threads_per_split)
        sums = owners * self.table(("warp_row_tiles", "warp_col_tiles"), lambda plan: plan.accumulators)
        words = np.maximum(words, sums * self.table(("split_channels",), lambda plan: plan.config.split_channels - 1))
        if not self.fixed["register_packing"]:
            rows = BATCH_GROUP * self.table(("blk_row_warps", "warp_row_tiles"), lambda plan: plan.config.pixels)
            words = np.maximum(words, rows * self.table(_COLUMNS, lambda plan: plan.output_row_words))
        return COPY_WORDS * (words + self.table(_COLUMNS, lambda plan: plan.parameter_words))

    def _registers(self, spilled: frozenset[str]) -> NDArray[np.bool_]:
        needed = self.table((*_PIXELS, "warp_col_tiles", "reorder_inner"), rules.registers_needed)
        reads = ("blk_row_warps", "blk_col_warps", "split_channels", "min_blocks")
        bad = np.broadcast_to(needed > self.table(reads, rules.registers_allowed), self.shape).copy()
        for key in spilled:
            place = self._place(MmaConfig.from_key(key))
            if place is not None:
                bad[place] = True
        return bad

    def _place(self, config: MmaConfig) -> tuple[int, ...] | None:
        """The position of a configuration in the space; None if it is outside."""
        held = {**MmaConfig(**self.fixed).to_dict(), **{name: getattr(config, name) for name in self.names}}
        if held != config.to_dict() or any(getattr(config, name) not in self.knobs[name] for name in self.names):
            return None
        return tuple(self.knobs[name].index(getattr(config, name)) for name in self.names)

    def _repeats(self, name: str, reads: tuple[str, ...], effect: Callable[[Plan], Any]) -> NDArray[np.bool_]:
        """Where an earlier value of the knob has the same effect."""
        numbers: dict[Any, int] = {}
        known = self.table(reads, lambda plan: 1 + numbers.setdefault(effect(plan), len(numbers)))
        along = np.moveaxis(known, self.names.index(name), 0)
        repeats = np.zeros(along.shape, dtype=bool)
        for place in range(1, len(along)):
            repeats[place] = ((along[:place] == along[place]) & (along[place] > 0)).any(axis=0)
        return np.moveaxis(repeats, 0, self.names.index(name))

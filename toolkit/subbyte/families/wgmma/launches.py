"""Which two batches could replace a layer's single launch: if a last wave of blocks is nearly empty, two launches can
pay.

Every way to divide the groups of images is evaluated with only a few configurations: those that are expected to be
fastest for the whole batch, and those of the same layer at another batch size. The parts of the best ways then get
their own search.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from subbyte.device.arch import Arch
from subbyte.families.base import Way
from subbyte.families.wgmma import features
from subbyte.families.wgmma.batches import choice, expected_at_least, searched, whole
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.model import shipped
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP

LEAST = 64
"""Up to this many images two launches gain nothing (benchmarks/notes/tuning.md)."""
FEW = 8
"""Configurations of the whole batch with which every part is evaluated."""
SIZES = 48
"""The most sizes of the first part that are evaluated."""
NEAR, SEARCHED = 1.05, 4
"""How much slower than one launch a way may seem for its parts to be searched, and for how many ways they are."""


@lru_cache(256)
def ways(workload: ConvWorkload, arch: Arch) -> tuple[Way, ...]:
    """Ways to split a batch into two launches that may be faster than one, the one expected to be fastest first; none
    for batches that are too small."""
    layer = whole(workload)
    one = choice(layer, arch) if workload.n > LEAST and workload.kind == "conv" else None
    if one is None:
        return ()
    groups, step = layer.batch_groups, -(-layer.batch_groups // SIZES)
    firsts = range(groups - step, (groups - 1) // 2, -step)
    times = _times(layer, arch, one.config, sorted({n for first in firsts for n in (first, groups - first)}))
    hints = {n: times[n] + times[groups - n] for n in firsts if n in times and groups - n in times}
    near = [n for n in sorted(hints, key=lambda n: hints[n]) if hints[n] < NEAR * one.microseconds]
    found = []
    for first in near[:SEARCHED]:
        parts = [choice(replace(layer, n=BATCH_GROUP * n), arch, wide=False) for n in (first, groups - first)]
        sizes = BATCH_GROUP * first, workload.n - BATCH_GROUP * first
        found.append((sizes, sum(part.microseconds if part else float("inf") for part in parts)))
    return tuple(sorted(found, key=lambda way: way[1]))


def _times(layer: ConvWorkload, arch: Arch, first: WgmmaConfig, sizes: list[int]) -> dict[int, float]:
    """Time in microseconds of the fastest of a few configurations, by number of groups of images."""
    model = shipped()
    same = [one for one in model.winners if replace(one.layer, n=layer.n) == layer]
    few = [first, *searched(layer, arch)[:FEW], *(one.config for one in same)]
    rows: list[list[float]] = []
    of: list[ConvWorkload] = []
    configs: list[WgmmaConfig] = list(dict.fromkeys(few))
    for part in (replace(layer, n=BATCH_GROUP * groups) for groups in sizes):
        for plan in (WgmmaPlan(part, config, arch) for config in configs):
            if why_not(plan) is None:
                rows.append(features.row(plan))
                of.append(part)
    found = {one.layer.batch_groups: one.microseconds for one in same}
    measured = frozenset(found)
    for part, time in zip(of, model.microseconds(rows) if rows else (), strict=True):
        groups = part.batch_groups
        if groups not in measured:
            found[groups] = min(found.get(groups, float("inf")), expected_at_least(part, float(time)))
    return found

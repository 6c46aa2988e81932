"""Which convolutions kernels cover: the one answer that ``workloads``, ``build``, ``compile`` and ``tune`` give."""

from __future__ import annotations

from functools import lru_cache

from subbyte.arguments import checked, one_of
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.wgmma.estimate import warpgroup_candidates
from subbyte.families.mma.config import ConvConfig
from subbyte.families.registry import FAMILIES
from subbyte.families.mma.plan import Plan
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.families import space
from subbyte.families.mma.rules import hopeless_warp, why_not
from subbyte.families.wgmma.space import warpgroup_values
from subbyte.families.wgmma.rules import hopeless_warpgroup, why_not_warpgroup
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

ASKED = ("auto", *FAMILIES)
"""What ``family`` may be."""
_SMALL = ConvConfig(blk_row_warps=1, blk_col_warps=1, warp_row_tiles=1, warp_col_tiles=1, reorder_inner=1)
"""The configuration of the paper's space that asks for least: where it can be built, no other need be looked at."""


@checked
def covered(workload: ConvWorkload | str, arch: Arch | str = "sm_90a", family: str = "auto") -> str | None:
    """Why no kernel of a family (``warp``, ``warpgroup``, or ``auto``: of either) covers the workload on an
    architecture; None when one does.

    Sizes beyond reason, and what a family lacks, are answered at once. Raises InvalidInput for an unknown workload,
    architecture or family.
    """
    found, target = workload_named(workload), arch_named(arch) if isinstance(arch, str) else arch
    one_of(family, "family", ASKED)
    if family == "warp":
        return _warp(found, target)
    if family == "warpgroup":
        return _warpgroup(found, target)
    reason = _warp(found, target)
    other = reason and _warpgroup(found, target)
    return f"{reason} (the warp family); {other} (the warpgroup family)" if other else None


@lru_cache(256)
def candidates(workload: ConvWorkload, arch: Arch) -> tuple[WarpgroupConfig, ...]:
    """Configurations of the warpgroup family that can be built, the best by estimate first; empty where none can."""
    return tuple(warpgroup_candidates(workload, arch)) if hopeless_warpgroup(workload, arch) is None else ()


def _warp(workload: ConvWorkload, arch: Arch) -> str | None:
    reason = hopeless_warp(workload, arch)
    if reason is not None or why_not(Plan(workload, _SMALL, arch)) is None:
        return reason
    paper = space(workload, arch)
    return None if paper.valid else paper.why_not(0) or "no configuration of the warp family fits"


def _warpgroup(workload: ConvWorkload, arch: Arch) -> str | None:
    reason = hopeless_warpgroup(workload, arch)
    if reason is not None or candidates(workload, arch):
        return reason
    narrowest = min(warpgroup_values(workload)["tile_width"])
    plainest = WarpgroupPlan(workload, WarpgroupConfig(tile_width=narrowest), arch)
    return why_not_warpgroup(plainest) or "no configuration of the warpgroup family fits"

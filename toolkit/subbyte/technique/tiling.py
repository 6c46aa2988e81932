"""How a convolution becomes a matrix product and how that is divided: block tiles, warp tiles, matrix instructions."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.families.mma.explain.tiling import Band, BlockTile, Multiply, Step, Tiling, WarpTile
from subbyte.families.wgmma.explain.tiling import WarpgroupLevel, WarpgroupTiling
from subbyte.spaces.configuration import Configuration
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload

__all__ = [
    "Band",
    "BlockTile",
    "Multiply",
    "Step",
    "Tiling",
    "WarpTile",
    "WarpgroupLevel",
    "WarpgroupTiling",
    "tiling",
    "warpgroup_tiling",
]


@checked
def tiling(workload: ConvWorkload | str, config: Configuration | None = None, *, arch: str = "sm_90a") -> Tiling:
    """The tiles of ``workload`` under ``config`` (default: ``MmaConfig()``) on ``arch``.

    Raises InvalidInput for unknown names, and with the reason for a configuration that the constraints reject.
    """
    return explained(Tiling, workload, config, arch)


@checked
def warpgroup_tiling(
    workload: ConvWorkload | str, config: Configuration | None = None, arch: str = "sm_90a"
) -> WarpgroupTiling:
    """How a configuration of the wgmma family (default: the one that would be tried first) divides a workload.

    Raises InvalidInput for an unknown workload or architecture, Unsupported with the reason for a configuration that
    cannot be built.
    """
    return explained(WarpgroupTiling, workload, config, arch)

"""Memory accesses of one warp as data: every lane's address, and the sectors, lines and banks it touches."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.families.mma.explain.accesses import Access, Accesses
from subbyte.spaces.configuration import Configuration
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload

__all__ = ["Access", "Accesses", "accesses"]


@checked
def accesses(
    workload: ConvWorkload | str,
    config: Configuration | None = None,
    layout: str | None = None,
    *,
    arch: str = "sm_90a",
    block: tuple[int, int] = (0, 0),
    warp: int = 0,
    iteration: int = 0,
) -> Accesses:
    """What one warp of the kernel for ``config`` reads and writes, and what each access costs.

    ``layout`` (``nhwc``, ``hwnc`` or ``nhwcnc``) replaces the configuration's; no kernel uses ``hwnc``, it is offered
    for comparison. ``block``: (pixel tile, column block) of the launch grid. ``iteration``: stage of the main loop.
    Without a configuration the default one is used. Raises InvalidInput for names or numbers out of range, and for a
    configuration that the constraints reject, with the reason.
    """
    return explained(Accesses, workload, config, arch, layout=layout, block=block, warp=warp, iteration=iteration)

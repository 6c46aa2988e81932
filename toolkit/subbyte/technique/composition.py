"""Where a kernel on bit planes keeps its planes, and how a thread composes an output from their counts."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.families.bits.explain.composition import Band, Composed, PlaneComposition, Term
from subbyte.spaces.configuration import Configuration
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload

__all__ = ["Band", "Composed", "PlaneComposition", "Term", "plane_composition"]


@checked
def plane_composition(
    workload: ConvWorkload | str, config: Configuration | None = None, image: int = 0, pixel: int = 0, seed: int = 0,
    x: NDArray[Any] | None = None, w: NDArray[Any] | None = None,
) -> PlaneComposition:  # fmt: skip
    """The planes of a kernel's first tile and 32 outputs of one of its pixels, for values x [N,H,W,C] and w [K,R,S,C],
    or random ones by default. ``config`` defaults to the one that would be tried first. Raises InvalidInput for a
    configuration that is rejected, or a pixel outside the tile."""
    return explained(PlaneComposition, workload, config, image=image, pixel=pixel, seed=seed, x=x, w=w)

"""The shape of a block's tile of output pixels, if the configuration does not fix it."""

from __future__ import annotations

from subbyte.families.shared.axis import Axis
from subbyte.workload.conv import ConvWorkload, ceil_div


def choose_tile(workload: ConvWorkload, pixels: int) -> tuple[int, int]:
    """The rectangle of ``pixels`` outputs that wastes the fewest at edges, then stages the fewest inputs, then is
    widest."""

    def cost(height: int) -> tuple[int, int, int]:
        width = pixels // height
        covered = ceil_div(workload.p, height) * ceil_div(workload.q, width)
        halo = (
            Axis.of(height, workload.r, workload.stride, workload.dilation).count
            * Axis.of(width, workload.s, workload.stride, workload.dilation).count
        )
        return covered, halo, height

    height = min((h for h in range(1, pixels + 1) if pixels % h == 0), key=cost)
    return height, pixels // height

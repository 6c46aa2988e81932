"""The TIRx function of a kernel: one convolution of packed int4 on warpgroup matrix instructions, as its plan says."""

from __future__ import annotations

from typing import Any

from subbyte.families.wgmma.blocks.emit.kernel import listed
from subbyte.families.wgmma.emit.coordinates import coordinates
from subbyte.families.wgmma.pipeline.emit.kernel import pipeline
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.single.emit.kernel import single
from subbyte.tirx.function import named_function


def wgmma_kernel(plan: WgmmaPlan) -> Any:
    """The TIRx function of a plan. Its buffers are flat; the plan's index maps give them meaning."""
    body = single if isinstance(plan.config, SingleTileConfig) else listed if plan.knobs.listed else pipeline

    return named_function(plan, 1, lambda plan, buffers: body(coordinates(plan, buffers)))

"""The schedule of a kernel for block-sparse weights."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.schedule import Schedule
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import knob, whole


@configuration
class BlocksConfig(PipelineConfig):
    """A schedule of the wgmma kernel for block-sparse weights (sm_90a): the knobs of the pipeline, and the number of
    live blocks in one loop body.

    A block is 64 filters x 32 channels of one tap. Each tile of 64 filters has a list of its live blocks, stored
    after their weights: one kernel serves every list.
    """

    prefix: ClassVar[str] = "wgb-"
    skips_zeros: ClassVar[bool] = True

    live_pairs: int = knob(
        "lp", whole(),
        "pairs of live blocks in one loop body, and fetched ahead in registers; the list of a tile is filled up with "
        "zeros to whole bodies",
        default=2, always=True,
    )  # fmt: skip

    @property
    def schedule(self) -> Schedule:
        """The same choices as geometry, memory and emitter need them."""
        return replace(super().schedule, listed=1)

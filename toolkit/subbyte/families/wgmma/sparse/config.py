"""The schedule of the kernel for 2:4 sparse weights."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.schedule import Schedule
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import knob, whole


@configuration
class SparseConfig(PipelineConfig):
    """A schedule of the wgmma kernel for 2:4 sparse weights (sm_90a): the knobs of the pipeline, and where weights are
    kept.

    One instruction takes 64 input channels, and of every four neighbouring ones the two that the weights keep.
    """

    prefix: ClassVar[str] = "wg24-"
    skips_zeros: ClassVar[bool] = True

    resident: int = knob(
        "res", whole(0, 2),
        "1 = a consumer's weights stay in its registers from one tile iteration to the next, 3 for each tap and 64 "
        "input channels; 0 = they are fetched anew, those of a loop body ahead; 2 = the same, those of all kernel rows "
        "of a channel group ahead",
        default=0, always=True,
    )  # fmt: skip

    @property
    def schedule(self) -> Schedule:
        """The same choices as geometry, memory and emitter need them."""
        return replace(super().schedule, sparse=1, resident=int(self.resident == 1), rows_ahead=int(self.resident == 2))

"""How to schedule the kernel on one-bit products of warps."""

from __future__ import annotations

from typing import ClassVar

from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import choice, switch

AUTO = "auto"
OPERATIONS = (AUTO, "and", "xor")
ONES, POPCOUNT = "ones", "popcount"


@configuration
class BmmaConfig(PlaneConfig):
    """A schedule of the bmma family (mma.sync b1, sm_75 and later)."""

    prefix: ClassVar[str] = "bmma-"

    operation: str = switch(
        "op.", choice(*OPERATIONS), "what the instruction counts; auto = xor on sm_75, and up to sm_89 of bipolar "
        "weights, which need no correction then; else and", default=AUTO,
    )  # fmt: skip
    correction: str = switch(
        "", choice(ONES, POPCOUNT), "activations' bits are counted by the instruction, as one more tile of columns, or "
        "by the integer units", default=ONES,
    )  # fmt: skip

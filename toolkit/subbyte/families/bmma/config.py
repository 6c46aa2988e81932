"""The schedule of a kernel on one-bit warp products."""

from __future__ import annotations

from typing import ClassVar

from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import choice, switch

AUTO = "auto"
OPERATIONS = (AUTO, "and", "xor")
ONES, POPCOUNT, DOUBLE = "ones", "popcount", "double"
REGISTERS, SHARED = "registers", "shared"


@configuration
class BmmaConfig(PlaneConfig):
    """A schedule of the bmma family (mma.sync b1, sm_75 and later)."""

    prefix: ClassVar[str] = "bmma-"

    operation: str = switch(
        "op.", choice(*OPERATIONS), "what the instruction counts; auto = xor on sm_75, and up to sm_89 of bipolar "
        "weights, which need no correction then; else and", default=AUTO,
    )  # fmt: skip
    correction: str = switch(
        "", choice(ONES, POPCOUNT, DOUBLE), "activations' bits are counted by the instruction, as one more tile of "
        "columns, or by the integer units; double = equal bits are counted instead, by two products", default=ONES,
    )  # fmt: skip
    combine: str = switch(
        "cmb.", choice(REGISTERS, SHARED), "a warp multiplies all pairs of planes and combines them in registers, or "
        "one pair, and warps add up in shared memory", default=REGISTERS,
    )  # fmt: skip

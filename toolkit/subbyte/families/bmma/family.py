"""The family of kernels on one-bit warp products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

from subbyte.families.base import Function, Plan
from subbyte.families.bmma.config import BmmaConfig
from subbyte.families.bmma.estimate import estimated_cycles
from subbyte.families.bmma.plan import BmmaPlan
from subbyte.families.bmma.rules import BMMA_RULES
from subbyte.families.shared.planes.family import PlaneFamily
from subbyte.families.shared.planes.plan import PlanePlan


class BmmaFamily(PlaneFamily):
    """Kernels that multiply bit planes with ``mma.sync``."""

    name = "bmma"
    title = "mma.sync b1, sm_75 and later"
    rank = 0
    configurations = (BmmaConfig,)
    kinds: ClassVar[Mapping[str, str]] = {"bmma": "the six knobs of the paper on one-bit products of warps"}
    planned = BmmaPlan
    lanes = True
    rules = BMMA_RULES

    def cycles(self, plan: PlanePlan) -> float:
        """A rough cycle count."""
        return estimated_cycles(plan)

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.bmma.emit.multiply import bmma_kernel

        function: Function = bmma_kernel(cast(BmmaPlan, plan))
        return function


BMMA = BmmaFamily()

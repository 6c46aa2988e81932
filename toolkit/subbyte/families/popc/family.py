"""The family of kernels that count bits on the integer units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

from subbyte.families.base import Function, Plan
from subbyte.families.popc.config import PopcConfig
from subbyte.families.popc.estimate import estimated_cycles
from subbyte.families.popc.plan import PopcPlan
from subbyte.families.shared.planes.family import PlaneFamily
from subbyte.families.shared.planes.plan import PlanePlan


class PopcFamily(PlaneFamily):
    """Kernels that count the bits of 32-bit words."""

    name = "popc"
    title = "popc, integer units of any GPU"
    rank = -1
    configurations = (PopcConfig,)
    kinds: ClassVar[Mapping[str, str]] = {"popc": "the six knobs of the paper on popcounts of 32-bit words"}
    planned = PopcPlan
    lanes = False

    def cycles(self, plan: PlanePlan) -> float:
        """A rough cycle count."""
        return estimated_cycles(plan)

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.popc.emit.multiply import popc_kernel

        function: Function = popc_kernel(cast(PopcPlan, plan))
        return function


POPC = PopcFamily()

"""What records of such kernels are made of: plans that can be built."""

from __future__ import annotations

from subbyte.errors import InvalidInput
from subbyte.families.registry import family_of
from subbyte.families.shared.planes.plan import PlanePlan


def require_built(plan: PlanePlan) -> None:
    """Raises InvalidInput with the reason for a plan that is refused."""
    if reason := family_of(plan.config).check(plan):
        raise InvalidInput(f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} is refused: {reason}")

"""A check for the records of such kernels: their plans must be buildable."""

from __future__ import annotations

from subbyte.errors import InvalidInput
from subbyte.families.registry import family_of
from subbyte.families.shared.planes.plan import PlanePlan


def require_built(plan: PlanePlan) -> None:
    """Raises InvalidInput with the reason for a plan that is rejected."""
    if reason := family_of(plan.config).check(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )

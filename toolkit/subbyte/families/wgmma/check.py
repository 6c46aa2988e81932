"""Whether a plan of either kernel can be built, and why not: its rules, asked in order."""

from __future__ import annotations

from subbyte.families.wgmma.pipeline import rules as pipeline
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import first_reason
from subbyte.families.wgmma.single import rules as single
from subbyte.families.wgmma.single.config import SinglePassConfig


def why_not(plan: WgmmaPlan) -> str | None:
    """The reason why this plan cannot be built, beginning with its kind and a colon; None when it can."""
    if isinstance(plan.config, SinglePassConfig):
        return first_reason((*single.RULES, single.order_of_loads), plan)
    return first_reason(pipeline.RULES, plan)

"""Rules that this kind adds."""

from __future__ import annotations

from typing import cast

from subbyte.families.bmma.config import DOUBLE, POPCOUNT, SHARED, BmmaConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.rules import RULES
from subbyte.numerics.bit_products import AND, XOR


def operation(plan: PlanePlan) -> str | None:
    """The Tensor Cores must have the bit product."""
    config = cast(BmmaConfig, plan.config)
    if config.correction == DOUBLE and config.operation == XOR:
        return "operation: correction=double counts equal bits by and, not by xor"
    if plan.operation == XOR and not plan.arch.native_s4:
        return f"operation: xor is emulated on {plan.arch.name}; and runs on its Tensor Cores"
    if plan.operation == AND and not plan.arch.async_copy:
        return f"operation: one-bit products of {plan.arch.name} are xor, not and"
    return None


def same_program(plan: PlanePlan) -> str | None:
    """Each program must occur once."""
    config = cast(BmmaConfig, plan.config)
    if config.correction == POPCOUNT and not plan.counts.pixel:
        return f"same program: activations' bits are not needed; correction={config.correction} counts none"
    if config.combine == SHARED and plan.splits == 1:
        return "same program: one pair of planes; combine=shared has nothing to add up"
    return None


BMMA_RULES = (operation, *RULES, same_program)

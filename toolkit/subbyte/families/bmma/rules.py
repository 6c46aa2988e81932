"""What this kind adds to the rules."""

from __future__ import annotations

from typing import cast

from subbyte.families.bmma.config import ONES, BmmaConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.rules import RULES
from subbyte.numerics.bit_products import AND, XOR


def operation(plan: PlanePlan) -> str | None:
    """Bit products that the Tensor Cores have."""
    if plan.operation == XOR and not plan.arch.native_s4:
        return f"operation: xor is emulated on {plan.arch.name}; and runs on its Tensor Cores"
    if plan.operation == AND and not plan.arch.async_copy:
        return f"operation: one-bit products of {plan.arch.name} are xor, not and"
    return None


def same_program(plan: PlanePlan) -> str | None:
    """Each program once."""
    config = cast(BmmaConfig, plan.config)
    if config.correction != ONES and not plan.counts.pixel:
        return f"same program: activations' bits are not needed; correction={config.correction} counts none"
    return None


BMMA_RULES = (operation, *RULES, same_program)

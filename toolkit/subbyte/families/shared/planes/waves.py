"""From the work of a warp to that of a launch, roughly: blocks run in waves, and stages have a latency.

The constants were set by hand; no GPU from sm_75 to sm_89 was measured.
"""

from __future__ import annotations

from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.rules import registers_needed
from subbyte.workload.conv import ceil_div

MULTIPROCESSORS = 108
"""Multiprocessors of the GPU that estimates assume (A100); others run the same configurations in more or fewer
waves."""
START, TURN, LATENCY = 2000.0, 900.0, 500.0
"""Cycles from launch to the first product, for the start and end of a block, and for a stage that nothing hides."""
BYTES_PER_CYCLE = 40.0
"""Bytes per cycle that the L2 delivers to a multiprocessor."""
DIRECT = 3.0
"""How much longer a load from global memory takes."""


def in_waves(plan: PlanePlan, work: float, alone: float) -> float:
    """A rough cycle count. ``work``: cycles of a scheduler for a warp; ``alone``: cycles of a warp that runs
    undisturbed."""
    per_sm = ceil_div(plan.blocks, MULTIPROCESSORS)
    together = min(_resident(plan), per_sm)
    busy = work * max(1.0, plan.threads / 128 * together)
    waits = plan.iterations * LATENCY / max(1, plan.stages - 1) / together + alone
    loaded = 4 * plan.stage_words * plan.iterations * per_sm / BYTES_PER_CYCLE
    return START + ceil_div(per_sm, together) * (max(busy, waits) + TURN) + 0.5 * loaded


def load_cost(plan: PlanePlan) -> float:
    """The cost of loading an operand, relative to a load from shared memory."""
    return 1.0 if plan.staged else DIRECT


def _resident(plan: PlanePlan) -> int:
    """Resident blocks of a multiprocessor, with the estimated registers."""
    arch, registers = plan.arch, min(plan.arch.registers_per_thread, registers_needed(plan))
    by_shared = arch.shared_per_sm // (plan.shared_bytes + 1024)
    by_registers = arch.registers_per_sm // (plan.threads * registers)
    return max(1, min(by_shared, by_registers, arch.threads_per_sm // plan.threads, arch.blocks_per_sm))

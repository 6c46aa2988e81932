"""Which configurations to try without measurements: those of the paper's space, by estimate."""

from __future__ import annotations

from functools import lru_cache

from subbyte.device.arch import Arch
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan
from subbyte.families.mma.rules import registers_needed
from subbyte.families.mma.space import Space, held_fields
from subbyte.families.mma.values import value_lists
from subbyte.workload import ConvWorkload, ceil_div

MULTIPROCESSORS = 132
"""Multiprocessors of the GPU that the estimate assumes (H200); smaller ones run the same configurations in more
waves."""


@lru_cache(maxsize=64)
def estimated_first(workload: ConvWorkload, arch: Arch) -> tuple[MmaConfig, ...]:
    """All configurations of the paper's space that can be built, the one with the fewest :func:`estimated_cycles`
    first. Kept, because a layer is asked for again and again, by each way to build it."""
    space = Space(workload, arch, "paper", value_lists("paper", workload), held_fields({}))
    ranked = sorted((estimated_cycles(space.plan(index)), index) for index in space.valid)
    return tuple(space.config(index) for _, index in ranked)


def estimated_cycles(plan: Plan) -> float:
    """A rough count of cycles from launch to end, good enough to rank configurations of one workload.

    Blocks run in waves; in a wave every scheduler works through its warps' instructions, or waits for the latency of
    one block if there is too little work to hide it; the L2 delivers the data that blocks stage. The constants were
    tuned by hand on the recorded landscapes of ResNet50 stages 2 and 3.
    """
    config = plan.config
    blocks = plan.launch.grid[0] * plan.launch.grid[1]
    taps, channel_blocks = plan.workload.r * plan.workload.s, plan.workload.channel_blocks
    matrix = taps * plan.pairs * config.warp_col_tiles
    fragments = plan.fragments * plan.workload.r / plan.rows_staged
    copies = (plan.activation_copies + plan.weight_copies) * plan.iterations / config.threads
    share = channel_blocks / config.split_channels
    issue = share * (1.6 * matrix + 5 * fragments + 4 * taps * config.warp_col_tiles) + 5 * plan.accumulators
    warp = max(TENSOR_CYCLES * share * matrix, issue + 12 * copies + 40)
    exposed = max(0, DEPENDENT_CYCLES - TENSOR_CYCLES * plan.pairs * config.warp_col_tiles)
    latency = 900 + 450 * plan.iterations / max(1, plan.stages - 1) + share * taps * exposed
    per_sm = ceil_div(blocks, MULTIPROCESSORS)
    together = min(per_sm, _resident(plan))
    busy = warp * max(1.0, together * config.threads / 128)
    staged = 4 * plan.stage_words * plan.iterations
    return 1800 + ceil_div(per_sm, together) * max(busy, latency + warp) + blocks * staged / MULTIPROCESSORS / 80


TENSOR_CYCLES = 7.0
"""Cycles of one multiprocessor quarter's Tensor Core for one m16n8k32 instruction on int8 (measured peak, H200)."""
DEPENDENT_CYCLES = 33.0
"""Cycles from a matrix instruction to the next one on the same accumulators."""


def _resident(plan: Plan) -> int:
    """Resident blocks of a multiprocessor, with the estimated registers."""
    arch, threads = plan.arch, plan.config.threads
    registers = min(arch.registers_per_thread, registers_needed(plan))
    by_shared = arch.shared_per_sm // (plan.shared_bytes + 1024)
    return max(1, min(by_shared, arch.threads_per_sm // threads, arch.registers_per_sm // (threads * registers)))

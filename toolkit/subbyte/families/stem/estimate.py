"""A rough estimate of a kernel's time: what its warpgroups issue, multiply, copy and store.

Constants fit 663 kernels of seven layers that were timed on an H200 and an H100 (benchmarks/notes/stem.md): the error
is 5 to 12 % for each layer (root mean square of its logarithm).
"""

from __future__ import annotations

from math import log2

from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import registers_allowed, registers_needed
from subbyte.workload.conv import BATCH_GROUP, ceil_div

MULTIPROCESSORS = 132
START_CYCLES = 2890.0
"""Fixed cycles of a launch: launch, first bytes, last stores."""
BLOCK_CYCLES = 755.0
"""Cycles of a block besides its turns: barriers, weights, first words."""
STORED = 12.7
"""Bytes per cycle and multiprocessor stored to memory when all store at once."""
ISSUED = 1.6
"""Cycles of an instruction of each scheduler's warp."""
MULTIPLIED = (0.36, 0.26)
"""What remains of a Tensor Core cycle beside them; less where weights stay in registers."""
PER_TURN, PER_WORD, PER_STEP, PER_SUM, PER_TILE = 60.0, 1.9, 2.0, 1.5, 12.0
"""Instructions of a warp: per turn; per word of a string, including the words it is made from; per wgmma, sum and tile
of 64 rows."""
EXCHANGED = 6.0
"""More of them per tile where results change places between lanes."""
ALONE, BEHIND = 0.5, 0.62
"""Fraction of a turn's latency that a warpgroup does not hide, and how much of it stays where the next tile is
multiplied meanwhile, in blocks of one warpgroup."""
LATENCY = 146.0
"""Cycles of a turn's barriers."""
NOT_AHEAD = 854.0
"""Cycles until words arrive that were not read ahead."""
MORE_REGISTERS = 60
"""Registers that the compiler takes besides those that are counted, where it may."""
NOT_BESIDE = 0.1
"""Fraction of the shorter one of storing and everything else that is not hidden behind the longer one."""
FEATURES = ("estimate", "products", "instructions", "written", "waves", "resident", "shared")


def product_cycles(columns: int) -> float:
    """Cycles of an s8 wgmma (measured on an H200 with both operands in shared memory)."""
    return max(columns / 2, 16 + columns / 4)


def resident(plan: StemPlan) -> int:
    """Resident blocks of a multiprocessor."""
    arch, threads = plan.arch, plan.config.threads
    registers = min(registers_allowed(plan), ceil_div(registers_needed(plan) + MORE_REGISTERS, 8) * 8)
    room = arch.shared_per_sm // (plan.shared_bytes + arch.shared_per_sm - arch.shared_per_block)
    return max(1, min(room, arch.threads_per_sm // threads, arch.registers_per_sm // (threads * registers)))


def products(plan: StemPlan) -> float:
    """Tensor Core cycles per turn."""
    columns = BATCH_GROUP * plan.config.pixels if plan.config.held_weights else plan.config.filters
    return plan.tiles * plan.config.turn_rows * plan.strings.steps * product_cycles(columns)


def instructions(plan: StemPlan) -> float:
    """Instructions per turn that a scheduler issues."""
    config, lay = plan.config, plan.strings
    words = PER_WORD * config.turn_rows * lay.kinds * lay.length + plan.input_rows * lay.span
    exchanged = EXCHANGED * config.held_weights * (1 + config.wide)
    each = lay.steps * PER_STEP + plan.row_sums * PER_SUM + PER_TILE * (1 + config.wide) + exchanged
    return PER_TURN + plan.passes * words + plan.tiles * config.turn_rows * each


def written(plan: StemPlan) -> float:
    """Bytes of strings per turn."""
    return plan.buffer_bytes


def estimated_cycles(plan: StemPlan) -> float:
    """A rough cycle count."""
    config, together = plan.config, resident(plan)
    waves = ceil_div(plan.blocks, MULTIPROCESSORS * together)
    beside = min(together, ceil_div(plan.blocks, MULTIPROCESSORS))
    work, issue = products(plan), ISSUED * instructions(plan)
    read = 0 if config.ahead or config.turns == 1 else NOT_AHEAD
    latency = ALONE * (work + issue + read + LATENCY) * (BEHIND if plan.behind and config.consumers == 1 else 1)
    each = config.turns * ((issue + MULTIPLIED[config.held_weights] * work) * beside * config.consumers + latency)
    outside = BLOCK_CYCLES + plan.weight_bytes * beside / 60
    w = plan.workload
    stored = w.batch_groups * BATCH_GROUP * w.p * w.q * w.padded_filters / 2 / (MULTIPROCESSORS * STORED)
    busy = waves * (each + outside)
    return START_CYCLES + max(busy, stored) + NOT_BESIDE * min(busy, stored)


def feature_row(plan: StemPlan) -> list[float]:
    """The features of a plan for a cost model."""
    found = (
        estimated_cycles(plan), products(plan), instructions(plan), written(plan),
        ceil_div(plan.blocks, MULTIPROCESSORS), resident(plan), plan.shared_bytes,
    )  # fmt: skip
    return [log2(1 + value) for value in found]

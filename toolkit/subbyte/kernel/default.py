"""Which configuration to take when the user names none."""

from __future__ import annotations

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import Unsupported
from subbyte.kernel.recommended import recommendation
from subbyte.schedule import ConvConfig, Plan
from subbyte.space import space
from subbyte.workload import ConvWorkload, ceil_div, covered

MULTIPROCESSORS = 132
"""Of the GPU the estimate aims at (H200); smaller ones take the same configurations in more waves."""


def default_config(workload: ConvWorkload, arch: Arch | str) -> ConvConfig:
    """The recommended configuration of this workload and architecture, else the one of the paper's space that
    :func:`estimated_cycles` ranks first. Raises Unsupported when no configuration can be built."""
    target = arch_named(arch) if isinstance(arch, str) else arch
    found = recommendation(workload.spec, target.name)
    return found.config if found is not None else _estimated(workload, target)


def _estimated(workload: ConvWorkload, arch: Arch) -> ConvConfig:
    candidates = space(workload, arch)
    if not candidates.valid:
        reason = covered(workload) or candidates.why_not(0)
        raise Unsupported(f"{workload}: no kernel computes it on {arch.name}: {reason}")
    return min((candidates.config(i) for i in candidates.valid), key=lambda c: estimated_cycles(candidates.plan(c)))


def estimated_cycles(plan: Plan) -> float:
    """A rough count of cycles: waves of blocks, each as long as the busiest of its three pipes.

    Matrix instructions take 8 cycles of one of four Tensor Cores, fragment loads and unpacking one issue slot per
    instruction, copies 16 bytes per lane from the L2 at 64 bytes per cycle.
    """
    config, workload = plan.config, plan.workload
    warps = config.threads // 32
    taps, blocks = workload.r * workload.s, workload.channel_blocks
    per_tap = plan.pairs * config.warp_col_tiles
    loads = plan.fragments * (workload.r / plan.rows_staged) + taps * config.warp_col_tiles
    matrix = taps * per_tap * 8.0
    issue = taps * per_tap + loads * 4.0
    copied = (plan.activation_words + plan.weight_words) * 4.0 / config.chunk * (workload.r / plan.rows_staged)
    busy = max(max(matrix, issue) * ceil_div(warps, 4), copied / 64.0)
    start = 1500.0 + 700.0 * plan.iterations / plan.stages
    waves = ceil_div(plan.launch.grid[0] * plan.launch.grid[1], MULTIPROCESSORS)
    latency = 600.0 / max(1.0, per_tap * ceil_div(warps, 4) / 16.0)
    return waves * (blocks * busy + start) + latency

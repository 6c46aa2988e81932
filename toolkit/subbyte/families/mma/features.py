"""The features of a plan for a cost model: loop extents, traffic and occupancy, and an analytic estimate."""

from __future__ import annotations

from math import log2

from subbyte.families.mma.plan import Plan
from subbyte.families.mma.rules import registers_allowed, registers_needed

MULTIPROCESSORS = 132
"""Multiprocessors of the GPU for which waves are counted (H200)."""
PLAN_FEATURES = (
    "pixels", "columns", "threads", "warps", "iterations", "chunks", "taps_staged", "instructions_tap",
    "instructions_body", "blocks", "resident_blocks", "resident_warps", "waves", "tail", "edge_waste", "shared_bytes",
    "registers", "accumulators", "fragments", "slots", "copies_thread", "activation_bytes", "weight_bytes",
    "traffic_bytes", "intensity", "reuse", "matrix_cycles", "issue_cycles", "copy_cycles", "estimate",
)  # fmt: skip
"""Columns of :func:`plan_features`; counts, sizes and cycles are log2."""


def plan_features(plan: Plan) -> list[float]:
    """Loop extents, traffic and occupancy of a plan, in the order of PLAN_FEATURES."""
    config, work, arch = plan.config, plan.workload, plan.arch
    warps = config.threads // 32
    blocks = plan.launch.grid[0] * plan.launch.grid[1]
    registers = min(registers_needed(plan), registers_allowed(plan))
    by_shared = max(1, arch.shared_per_sm // (plan.shared_bytes + 1024))
    by_registers = max(1, arch.registers_per_sm // (max(registers, 1) * config.threads))
    resident = max(1, min(by_shared, by_registers, arch.threads_per_sm // config.threads, 32))
    held = min(resident, -(-blocks // MULTIPROCESSORS))
    turns = blocks / (MULTIPROCESSORS * resident)
    waves = float(-(-blocks // (MULTIPROCESSORS * resident)))
    taps = work.r * work.s
    per_tap = plan.pairs * config.warp_col_tiles
    body = plan.taps_staged * per_tap * config.chunk
    activations = plan.activation_words * 4 * plan.iterations
    weights = plan.weight_words * 4 * plan.iterations
    height, width = plan.pixel_tiles
    waste = height * width * config.pixels / (work.p * work.q)
    channel_blocks = work.channel_blocks / config.split_channels
    loads = plan.fragments * (work.r / plan.rows_staged) + taps * config.warp_col_tiles
    busy_warps = held * warps / 4.0
    matrix = channel_blocks * taps * per_tap * 16.0 * max(1.0, busy_warps)
    issue = channel_blocks * (taps * per_tap * 2.0 + loads * 6.0) * max(1.0, busy_warps)
    copied = (activations + weights) / 48.0 * held
    exposed = plan.iterations * 700.0 / max(1.0, min(plan.stages - 1.0, 2.0) * held)
    estimate = waves * (max(matrix, issue, copied) + 0.3 * (matrix + issue + copied) + exposed + 1500.0)
    logs = (
        config.pixels, config.columns, config.threads, warps, plan.iterations, plan.chunks, plan.taps_staged, per_tap,
        body, blocks, resident, resident * warps, waves,
    )  # fmt: skip
    sizes = (
        plan.shared_bytes, registers, plan.accumulators, plan.fragments, plan.slots,
        (plan.activation_copies + plan.weight_copies) / config.threads, activations, weights,
        float(blocks) * (activations + weights),
    )  # fmt: skip
    instructions = channel_blocks * taps * per_tap * warps
    return [
        *(log2(max(value, 1e-3)) for value in logs),
        waves / turns if turns else 1.0,
        waste,
        *(log2(max(value, 1e-3)) for value in sizes),
        log2(instructions / (activations + weights)),
        log2(taps * config.warp_row_tiles / (plan.fragments * (work.r / plan.rows_staged))),
        log2(matrix),
        log2(issue),
        log2(copied),
        log2(estimate),
    ]

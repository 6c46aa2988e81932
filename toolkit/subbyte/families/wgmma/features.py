"""The features of a plan for a model of the kernel's time: the estimate's terms, then the plan's sizes and knobs."""

from __future__ import annotations

from math import log2

from subbyte.families.wgmma.cycles import bytes_touched, terms
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig

LAYER = ("r", "stride", "pad", "channel_blocks", "filter_blocks", "p", "q", "batch_groups")
"""Features of the workload."""
KNOBS = (
    "tile_width", "tile_rows", "consumers_m", "consumers_n", "consumers_rows", "segments", "m_iterations", "tiles_m",
    "cluster_split_k", "channel_groups", "stages", "keep_rows", "early_release", "stage_per_iteration", "load_ahead",
    "unroll", "in_flight", "stagger", "dependent_launch", "flatten", "flat_batch", "producers", "image_groups",
    "half_rows", "producer_late", "lean_start", "multicast", "weights_ahead", "late_parameters", "early_parameters",
    "early_start", "copies_ahead", "operands_apart",
)  # fmt: skip
"""Features of the schedule."""
SHARES = ("own", "together", "producer", "fetched", "setup", "memory")
"""Terms of the estimate, each as a fraction of a wave's cycles."""
SIZES = (
    "cycles", "waves", "full_waves", "tail", "busy_share", "resident", "blocks", "iterations", "row_stages", "tensor",
    "weights", "pixels", "waste", "columns_share", "channels_share", "filters_share", "accumulators",
    "consumer_registers", "producer_registers", "shared_bytes", "copies", "threads", "row_pixels", "macs", "bytes",
)  # fmt: skip
"""Features derived from both."""
REGISTERS = (
    "consumer_left", "producer_left", "launch_left", "held_words", "operand_words", "loads_ahead", "x_tiles",
    "instructions", "written_out", "row_variants", "tiles_skipped",
)  # fmt: skip
"""Features that decide whether registers suffice: those left over from the counted ones, and what the code keeps."""
NAMES = (*SIZES, *(f"{name}_share" for name in SHARES), *REGISTERS, *KNOBS, *LAYER)
"""Names of the values that :func:`row` returns, in order."""
PLAIN, OF_SUMS, OF_VARIANTS, OF_INSTRUCTIONS, OF_SINGLE = 46.0, 1.07, 7.6, 12.2, -57.0
"""Registers that the compiler gives a thread without a bound: for the code itself, for each accumulator, for
each doubling of the ways in which a row of the image meets kernel rows, and of the unrolled multiplications;
less in the kernel of a single tile iteration. Fitted to 263 compiled kernels (root mean square error 27;
accumulators plus 64 would be off by 50)."""
PEAK = 4096
"""Multiply-adds per cycle on a multiprocessor."""


def row(plan: WgmmaPlan) -> list[float]:
    """The features of a plan; sizes as logarithms to base 2."""
    w, knobs, found = plan.workload, plan.knobs, terms(plan, registers=expected_registers(plan))
    at_once = found.multiprocessors * found.resident
    exact = plan.grid_blocks / at_once
    block = found.iterations * knobs.consumers * found.tensor  # cycles of a block's multiplications
    ideal = w.macs / (found.multiprocessors * PEAK)
    every = block * plan.grid_blocks / found.multiprocessors
    waste = block * found.waves * found.resident / max(ideal, 1.0)
    columns = 1.0 if plan.flat else w.q / (plan.x_tiles * plan.width_covered)
    consumer, producer = plan.registers
    sizes = (
        log2(found.cycles), found.waves, log2(exact), found.waves / exact, ideal / max(1.0, every), found.resident,
        log2(plan.grid_blocks), log2(found.iterations), log2(max(1, found.stages)), log2(found.tensor),
        log2(found.weights + 1), log2(found.pixels + 1), log2(max(1e-3, waste)), columns,
        w.c / (32 * w.channel_blocks), w.k / (64 * plan.filter_tiles), plan.accumulators, consumer, producer,
        log2(plan.shared_bytes), plan.copies, knobs.threads, plan.row_pixels, log2(w.macs), log2(bytes_touched(w)),
    )  # fmt: skip
    wave = found.own + found.together + found.producer + found.fetched + found.setup
    shares = [getattr(found, name) / wave for name in SHARES]
    return [
        *map(float, sizes), *shares, *map(float, _registers(plan)), *(float(getattr(knobs, name)) for name in KNOBS),
        *(float(getattr(w, name)) for name in LAYER),
    ]  # fmt: skip


def expected_registers(plan: WgmmaPlan) -> float:
    """Registers that the compiler is expected to give a thread without a bound. They determine how many blocks a
    multiprocessor holds at a time, and hence the number of waves."""
    variants, instructions = len(plan.tap_variants(range(plan.tap_rows))[0]), max(1, plan.multiplications)
    code = PLAIN + OF_VARIANTS * log2(max(1, variants)) + OF_INSTRUCTIONS * log2(instructions)
    return code + OF_SUMS * plan.accumulators + OF_SINGLE * isinstance(plan.config, SingleTileConfig)


def _registers(plan: WgmmaPlan) -> tuple[float, ...]:
    """Values of ``REGISTERS``. A thread is compiled for the registers it has at launch; warpgroups then move registers
    between them."""
    knobs, (consumer, producer) = plan.knobs, plan.registers
    at_launch = plan.arch.registers_per_sm // knobs.threads // 8 * 8
    operands = 4 * plan.operands * (1 + plan.in_flight) * knobs.tiles_m
    variants, skipped = plan.tap_variants(range(plan.tap_rows))
    return (
        consumer - plan.accumulators - plan.held_words, producer - 4 * plan.loads_ahead - plan.producer_overhead,
        at_launch - 4 * plan.row_pixels, plan.held_words, operands, plan.loads_ahead, min(plan.x_tiles, 8),
        log2(max(1, plan.multiplications)), plan.taps_unrolled, len(variants), skipped,
    )  # fmt: skip

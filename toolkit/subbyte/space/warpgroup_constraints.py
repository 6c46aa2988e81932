"""Which configurations of the warpgroup family can be built, and why the others cannot: one rule, one reason each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from subbyte.device.arch import Arch
from subbyte.schedule.atoms import UNPACKED_REDUCTION_LIMIT
from subbyte.schedule.warpgroup import WarpgroupConfig
from subbyte.schedule.warpgroup_plan import WarpgroupPlan
from subbyte.workload import ConvWorkload

WIDTHS = (1, 2, 3, 4, *range(6, 29, 2))
"""Pixels of an instruction: N = 8, 16, 24, 32 or a multiple of 16 up to 224 (PTX ISA, wgmma with .s8)."""
CONSUMER_OVERHEAD = 44
"""Registers of a consumer thread for addresses, loop state and unpacked operands, beside accumulators and weights."""
LOADS_AT_ONCE = 12
"""16-byte loads a producer thread may have in flight for one part."""
CODE_LIMIT = 900
"""wgmma instructions of one kernel: beyond it the instruction cache is outgrown several times."""
WORD_LIMIT = 1 << 31
"""Word indices of the kernel are 32-bit."""
GRID_LIMIT = 65535
"""Blocks of a launch along y (CUDA)."""


def _arch(plan: WarpgroupPlan) -> str | None:
    if plan.arch.name != "sm_90a":
        return f"atom: wgmma exists on sm_90a alone, not on {plan.arch.name}"
    return None


def _accumulator(plan: WarpgroupPlan) -> str | None:
    depth = plan.workload.r * plan.workload.s * plan.workload.c
    if depth >= UNPACKED_REDUCTION_LIMIT:
        return f"accumulator: R*S*C = {depth} reaches {UNPACKED_REDUCTION_LIMIT}, where 32 bits could overflow"
    return None


def _width(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.tile_width not in WIDTHS:
        return f"tile: tile_width {config.tile_width} is none of {', '.join(map(str, WIDTHS))}"
    if not plan.flat and (config.groups_x - 1) * config.tile_width >= plan.workload.q:
        covered = f"{config.groups_x} times {config.tile_width}"
        return f"tile: {covered} columns leave a warpgroup without any of {plan.workload.q}"
    if not plan.flat and config.tile_width > plan.workload.q + 3:
        return f"tile: {config.tile_width} columns are too wide for an output of {plan.workload.q}"
    if plan.x_tiles > 1 and plan.width_covered * plan.cols.pixel_step < plan.left_zeros:
        return f"tile: {plan.width_covered} columns are narrower than the padding"
    return None


def _padding(plan: WarpgroupPlan) -> str | None:
    if not _every_row_reached(plan.workload, plan.arch):
        return "padding: an output row meets padding alone"
    return None


@cache
def _every_row_reached(workload: ConvWorkload, arch: Arch) -> bool:
    """Some kernel row of every output row lies in the image."""
    plan = WarpgroupPlan(workload, WarpgroupConfig(), arch)
    (first, last), step, tap_step = plan.row_range, plan.rows.pixel_step, plan.rows.tap_step
    return all(
        any(first <= row * step + tap * tap_step <= last for tap in range(workload.r))
        for row in range(plan.output_size[0])
    )


def _rows(plan: WarpgroupPlan) -> str | None:
    config, height = plan.config, plan.output_size[0]
    if config.segments > height:
        return f"divisibility: {config.segments} segments of {height} rows"
    most = -(-height // config.segments)
    if config.tile_rows > most:
        return f"divisibility: passes of {config.tile_rows} rows in segments of {most}"
    if config.groups_y > 1 and config.tile_rows * (config.groups_y - 1) >= height // config.segments:
        return f"divisibility: no pass for the last of {config.groups_y} warpgroups in segments of {most} rows"
    return None


def _warpgroups(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.consumers > 3:
        return f"threads: {config.consumers} consumer warpgroups leave too few registers"
    if config.groups_m * config.filter_passes > plan.filter_tiles:
        return (
            f"divisibility: {config.groups_m} warpgroups times {config.filter_passes} passes of 64 output channels "
            f"exceed {plan.filter_tiles} tiles of 64"
        )
    return None


def _channels(plan: WarpgroupPlan) -> str | None:
    config, blocks = plan.config, plan.workload.channel_blocks
    if blocks % (config.split * config.channel_groups):
        return f"divisibility: split * channel_groups = {config.split * config.channel_groups} does not divide {blocks}"
    if plan.halves == 1 and blocks > 1 and blocks % 2 == 0:
        return "divisibility: a part of an odd number of channel blocks would use half of each weight word"
    if plan.steps % config.unroll:
        return f"divisibility: unroll {config.unroll} does not divide {plan.steps} channel steps of a part"
    if plan.lowered and plan.workload.r == plan.workload.s == 1:
        return "same program: a kernel of one tap has no duplicates; duplicate_aware=full loads the same"
    if plan.lowered and not config.keep_rows:
        return "same program: without the duplicate-aware load no row is kept; keep_rows=1 builds the same"
    if not config.keep_rows and config.channel_groups == 1:
        return "stages: with all channels in one part, rows are kept (keep_rows=1)"
    if not plan.keep_rows and config.groups_y > 1:
        return "stages: warpgroups on alternating passes keep rows (keep_rows=1, duplicate_aware=full)"
    if not plan.keep_rows and config.stagger and config.consumers == 2:
        return "stages: warpgroups that share every part of the ring go together (stagger=0) where rows are not kept"
    if (
        config.in_flight > max(plan.in_flight, 1) and not plan.lowered
    ):  # the same schedule is to exist with a switch off
        return f"same program: a loop body has operands for in_flight={plan.in_flight}, not {config.in_flight}"
    commits = plan.steps * plan.tap_rows * plan.tap_cols
    if not config.keep_rows and config.in_flight > commits:
        return f"stages: in_flight {config.in_flight} exceeds the {commits} instruction groups of a channel group"
    return None


def _split(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.split == 1:
        return None
    if config.split not in (2, 4, 8):
        return f"cluster: split {config.split}: allowed: 1, 2, 4, 8"
    if config.groups_y > 1 or config.filter_passes > 1 or config.segments * config.tile_rows < plan.output_size[0]:
        return "cluster: blocks that share input channels must have a single pass each"
    if config.tile_rows * config.tile_width % config.split:
        return f"cluster: split {config.split} does not divide {config.tile_rows * config.tile_width} pixels"
    return None


def _at_once(plan: WarpgroupPlan) -> str | None:
    config, default = plan.config, WarpgroupConfig()
    if not config.at_once:
        return None
    if config.groups_y > 1 or config.filter_passes > 1 or config.segments * config.tile_rows < plan.output_size[0]:
        return "stages: a block that loads everything at once (at_once) must have a single pass"
    if config.at_once > max(1, plan.workload.r - 1):
        return f"stages: {config.at_once} loading warpgroups for {plan.workload.r - 1} kernel rows behind the first"
    if config.ring != plan.window:
        return f"stages: at_once keeps every row: ring must be {plan.window}"
    for name in ("channel_groups", "keep_rows", "load_ahead", "unroll", "weight_ring", "in_flight", "duplicate_aware"):
        if getattr(config, name) != getattr(default, name):
            return f"same program: {name} has no meaning with at_once; leave it at {getattr(default, name)}"
    if config.stagger:
        return "stages: warpgroups that load everything at once multiply at once (stagger=0)"
    return None


def _ring(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.at_once:
        return None
    rows = max(plan.staged_rows(segment) for segment in range(config.segments))
    if plan.keep_rows:
        whole = rows * config.channel_groups
        if config.ring > whole:
            return f"stages: a ring of {config.ring} slots for {whole} parts builds the same program as fewer"
        held = plan.window + (config.groups_y - 1) * config.tile_rows * plan.rows.pixel_step
        least = min(held * config.channel_groups, whole)
    elif plan.lowered:
        least = plan.window + 1
    else:
        least = plan.window * (2 if config.channel_groups > 1 else 1) + 1
    if config.weight_ring == 1:
        return "stages: weight_ring 1; the ring of weights needs at least 2 slots"
    if config.load_ahead > 2:
        return f"stages: load_ahead {config.load_ahead}: allowed: 1, 2"
    if config.ring < max(least, config.consumers):
        return f"stages: a ring of {config.ring} slots; a pass needs {max(least, config.consumers)}"
    return None


def _shared(plan: WarpgroupPlan) -> str | None:
    allowed = plan.arch.shared_per_block
    if plan.config.blocks > 1:
        allowed = min(allowed, plan.arch.shared_per_sm // plan.config.blocks - 1024)
    if plan.shared_bytes > allowed:
        return f"shared memory: {plan.shared_bytes} bytes exceed {allowed} of a block on {plan.arch.name}"
    return None


def _registers(plan: WarpgroupPlan) -> str | None:
    consumer, producer = plan.registers
    if plan.config.at_once:
        needed = max(plan.accumulators, 4 * plan.loads_at_once) + CONSUMER_OVERHEAD
        return f"registers: about {needed} of a thread needed, {consumer} allowed" if needed > consumer else None
    needed = plan.accumulators + 4 * plan.held_fragments + CONSUMER_OVERHEAD
    if needed > consumer:
        return f"registers: about {needed} of a consumer thread needed, {consumer} allowed"
    if plan.copies > LOADS_AT_ONCE:
        return f"registers: {plan.copies} loads of a producer thread exceed {LOADS_AT_ONCE}; use channel_groups"
    needed = 4 * plan.copies * plan.config.load_ahead + plan.producer_overhead
    if needed > producer:
        return f"registers: about {needed} of a producer thread needed, {producer} allowed"
    return None


def _code(plan: WarpgroupPlan) -> str | None:
    if plan.config.at_once:
        count = plan.fragments * plan.halves * plan.config.tile_rows
        return f"code size: {count} matrix instructions exceed {CODE_LIMIT}" if count > CODE_LIMIT else None
    rows = sum(high - low for low, high in plan.tap_variants(range(plan.tap_rows))[0])
    count = plan.unroll * plan.tap_cols * plan.halves * rows
    if count > CODE_LIMIT:
        return f"code size: {count} matrix instructions exceed {CODE_LIMIT}"
    return None


def _index(plan: WarpgroupPlan) -> str | None:
    words = max(argument.nbytes // 4 for argument in plan.launch.arguments)
    if words >= WORD_LIMIT:
        return f"index: a tensor of {words} words exceeds 32-bit indices; split the batch"
    if plan.grid[1] > GRID_LIMIT:
        return f"index: {plan.grid[1]} blocks along y exceed {GRID_LIMIT}; split the batch"
    return None


WARPGROUP_RULES: tuple[Callable[[WarpgroupPlan], str | None], ...] = (
    _arch, _at_once, _accumulator, _padding, _width, _rows, _warpgroups, _channels, _split, _ring, _shared, _registers,
    _code, _index,
)  # fmt: skip


def why_not_warpgroup(plan: WarpgroupPlan) -> str | None:
    """The reason why this plan cannot be built, beginning with its kind and a colon; None when it can."""
    for rule in WARPGROUP_RULES:
        reason = rule(plan)
        if reason is not None:
            return reason
    return None

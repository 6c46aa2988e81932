"""Which configurations of the warpgroup family can be built, and why the others cannot: one rule, one reason each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from subbyte.device.arch import Arch
from subbyte.device.atoms import UNPACKED_REDUCTION_LIMIT
from subbyte.families.wgmma import bulk_rules as bulk
from subbyte.families.wgmma import halves
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.workload import ConvWorkload, ceil_div
from subbyte.workload.coverage import int4_alone, largest_tensor, too_large

WIDTHS = (1, 2, 3, 4, *range(6, 29, 2))
"""Pixels of an instruction: N = 8, 16, 24, 32 or a multiple of 16 up to 224 (PTX ISA, wgmma with .s8)."""
CONSUMER_OVERHEAD = 44
"""Registers of a consumer thread for addresses, loop state and unpacked operands, beside accumulators and weights."""
INSTRUCTION_OVERHEAD = 34
"""Registers that the compiler wants beside the sums of one wgmma among those that a thread has when it is launched."""
LOADS_AT_ONCE = 12
"""16-byte loads a producer thread may have in flight for one part."""
PASS_LOADS = 16
"""The same for a part of several rows (``pass_parts``)."""
CONDITIONAL_LOADS = 13
"""16-byte loads a producer thread may have in flight where columns are divided among blocks and a block has more than
two warpgroups: of 109 kernels with more of them 102 needed local memory, of 217 others 19."""
LANES = 32
"""Slots of the ring that a warp gives back at once: a lane each."""
CODE_LIMIT = 900
"""wgmma instructions of one kernel: beyond it the instruction cache is outgrown several times."""
MOST_ROWS = 1 << 14
"""Output rows of an image as a kernel sees them: a plan lists the passes over all of them."""
GRID_LIMIT = 65535
"""Blocks of a launch along y (CUDA)."""


def _arch(plan: WarpgroupPlan) -> str | None:
    if plan.arch.name != "sm_90a":
        return f"atom: wgmma exists on sm_90a alone, not on {plan.arch.name}"
    return None


def sizes(plan: WarpgroupPlan) -> str | None:
    """Why a plan is of other operands or of sizes beyond reason; None when it is not. Asked before whatever goes
    through all rows."""
    w = plan.workload
    return int4_alone(w) or too_large(largest_tensor(w)) or _rows_listed(plan.output_size[0])


def _rows_listed(rows: int) -> str | None:
    if rows > MOST_ROWS:
        return f"rows: {rows} output rows exceed the {MOST_ROWS} that this family plans; split the image"
    return None


def hopeless_warpgroup(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no configuration of the family can be built, whatever it is; None when some may. Takes no time."""
    w = workload
    flat = ceil_div(w.p * w.q, 2 * max(WIDTHS)) if w.r == w.s == 1 and w.pad == 0 else w.p
    rows = flat if w.stride == 1 else min(flat, w.p)
    reason = int4_alone(w) or _arch(WarpgroupPlan(w, WarpgroupConfig(), arch)) or too_large(largest_tensor(w))
    return reason or sum_limit(w) or _rows_listed(rows)


def _accumulator(plan: WarpgroupPlan) -> str | None:
    return sum_limit(plan.workload)


def sum_limit(workload: ConvWorkload) -> str | None:
    """Why sums of the workload do not fit an accumulator of the family; None when they do."""
    depth = workload.r * workload.s * workload.c
    if depth >= UNPACKED_REDUCTION_LIMIT:
        return f"accumulator: R*S*C = {depth} reaches {UNPACKED_REDUCTION_LIMIT}, where 32 bits could overflow"
    return None


def _width(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if plan.row_pixels not in WIDTHS:
        groups = f" of {config.image_groups} groups of images" if config.image_groups > 1 else ""
        return f"tile: tile_width {config.tile_width}{groups} is none of {', '.join(map(str, WIDTHS))}"
    if not plan.flat and (config.groups_x - 1) * config.tile_width >= plan.workload.q:
        covered = f"{config.groups_x} times {config.tile_width}"
        return f"tile: {covered} columns leave a warpgroup without any of {plan.workload.q}"
    if not plan.flat and config.tile_width > plan.workload.q + 3:
        return f"tile: {config.tile_width} columns are too wide for an output of {plan.workload.q}"
    if config.flatten and (not plan.flat or plan.workload.stride == 1):
        return "same program: flatten is for 1 x 1 kernels with a stride and without padding; leave it at 0"
    if plan.x_tiles > 1 and plan.width_covered * plan.cols.pixel_step < plan.left_zeros:
        return f"tile: {plan.width_covered} columns are narrower than the padding"
    return None


def _images(plan: WarpgroupPlan) -> str | None:
    config, groups = plan.config, plan.workload.batch_groups
    if config.image_groups == 1:
        return None
    if groups % config.image_groups:
        return f"divisibility: image_groups {config.image_groups} does not divide {groups} groups of 8 images"
    if plan.flat or plan.x_tiles > 1 or plan.cols.pixel_step > 1 or plan.lowered or config.at_once:
        return "tile: several groups of images in one instruction (image_groups) need whole rows of stride 1"
    return None


def _half_rows(plan: WarpgroupPlan) -> str | None:
    config, height, tile_rows = plan.config, plan.output_size[0], plan.config.tile_rows
    if not config.half_rows:
        return None
    if not halves.divided(height, config.segments):
        return f"divisibility: {config.segments} segments of {height} rows do not end in the middle of one (half_rows)"
    if config.groups_y != 2 or tile_rows * 2 != plan.segment_end(0):
        return f"divisibility: half_rows needs groups_y 2 and tile_rows of half of a block's {plan.segment_end(0)} rows"
    if plan.row_pixels % 2 or plan.narrow_pixels not in WIDTHS or plan.workload.q % plan.width_covered:
        return f"tile: half_rows needs a tile_width that divides {plan.workload.q} columns, and half of it is a width"
    if plan.flat or plan.lowered or config.at_once or config.split > 1 or config.filter_passes > 1:
        return "stages: half_rows goes neither with 1x1 kernels, at_once, split, filter_passes nor duplicate_aware=none"
    if config.early_release or config.producers > 1 or config.tiles_m > 1:
        return "stages: half_rows goes neither with early_release, tiles_m nor two producers"
    cuts = {segment: plan.cut(segment) for segment in range(config.segments)}
    narrow = [plan.segment_start(i) + (0 if cut else tile_rows) for i, cut in cuts.items() if cut in (0, 1)]
    if any(plan.tap_rows_at(row, tile_rows, tap) != (0, tile_rows) for row in narrow for tap in range(plan.tap_rows)):
        return "padding: half a row too near to the edge of the image"
    return None


def _padding(plan: WarpgroupPlan) -> str | None:
    if not _every_row_reached(plan.workload, plan.arch):
        return "padding: an output row meets padding alone"
    if plan.config.stagger == 2 and all(plan.tap_variants([tap])[1] for tap in range(plan.tap_rows)):
        return "padding: every kernel row meets padding alone in some pass, which none may for stagger=2"
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
    most, least = -(-height // config.segments), height // config.segments
    if config.half_rows:
        most = least = plan.segment_end(0)
    if config.tile_rows > most:
        return f"divisibility: passes of {config.tile_rows} rows in segments of {most}"
    if config.groups_y > 1 and config.tile_rows * (config.groups_y - 1) >= least:
        return f"divisibility: no pass for the last of {config.groups_y} warpgroups in segments of {most} rows"
    if not plan.keep_rows and not all(_divided(plan, rows) for rows in (most, least)):
        return f"divisibility: a pass without rows for the last of {config.groups_y} warpgroups (keep_rows=1 allows it)"
    return None


def _divided(plan: WarpgroupPlan, rows: int) -> bool:
    """Every warpgroup has a row in the last pass over this many rows."""
    last = rows % plan.rows_together
    return last == 0 or last > plan.rows_together - plan.config.tile_rows


def _warpgroups(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.consumers + config.producers > 4:
        return f"threads: {config.consumers} consumers beside {config.producers} producers leave too few registers"
    if config.groups_m * plan.consumer_tiles > plan.filter_tiles:
        each = f"{config.filter_passes} passes of {64 * config.tiles_m} output channels"
        return f"divisibility: {config.groups_m} warpgroups times {each} exceed {plan.filter_tiles} tiles of 64"
    if config.tiles_m > 2:
        return f"registers: {config.tiles_m} tiles of 64 output channels in a pass: allowed: 1, 2"
    if config.tiles_m > 1 and (config.at_once or config.split > 1 or plan.lowered or config.early_release):
        return "stages: tiles_m=2 goes with none of at_once, split, early_release and duplicate_aware=none"
    if config.tiles_m > 1 and config.weight_ring:
        return "stages: weights of two tiles are fetched ahead into registers (weight_ring=0)"
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
    if not plan.keep_rows and config.early_release:
        return "same program: early_release has no meaning where rows are not kept; leave it at 0"
    if not config.keep_rows and config.channel_groups == 1:
        return "stages: with all channels in one part, rows are kept (keep_rows=1)"
    if plan.lowered and config.groups_y > 1:
        return "stages: warpgroups on alternating passes keep rows (duplicate_aware=full)"
    if not plan.keep_rows and config.stagger and config.consumers == 2 and (plan.lowered or config.stagger == 1):
        return "stages: warpgroups that share every part of the ring take no turns where rows are not kept (stagger=0)"
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
    if config.tile_rows * plan.row_pixels % config.split:
        return f"cluster: split {config.split} does not divide {config.tile_rows * plan.row_pixels} pixels"
    return None


def _joined(plan: WarpgroupPlan) -> str | None:
    if not plan.config.joined:
        return None
    if not plan.flat:
        return "tile: joined groups of images need a 1x1 kernel with stride 1 or flatten"
    if plan.config.image_groups > 1:
        return "tile: joined groups of images go one by one (image_groups=1)"
    if plan.workload.h != plan.workload.stride * plan.workload.p:
        return "tile: joined groups of images need a height that the stride divides"
    if not plan.packed:
        return "tile: joined groups of images lie one behind the other in the nhwcnc layout alone"
    if plan.workload.batch_groups == 1:
        return "same program: one group of images; joined=0 builds the same"
    return None


def _producers(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.producers > 2:
        return f"threads: {config.producers} producer warpgroups: allowed: 1, 2"
    if config.producers == 2 and config.producer_late:
        return "stages: two producers ask for their first parts at once (producer_late=0)"
    if config.producer_late and plan.keep_rows and plan.most_staged * config.channel_groups <= config.consumers:
        return "same program: the consumers bring every part; leave producer_late at 0"
    if config.producers == 2 and config.at_once:
        return "same program: producers has no meaning with at_once; leave it at 1"
    if config.producers == 2 and config.ring < config.consumers + 2:
        return f"stages: a ring of {config.ring} slots leaves one of 2 producers without a part at the start"
    return None


def _start(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.lean_start and (config.at_once or config.split > 1 or config.producers > 1 or plan.lowered):
        return "stages: lean_start goes neither with at_once, split, two producers nor duplicate_aware=none"
    return None


def _pass_parts(plan: WarpgroupPlan) -> str | None:
    if plan.config.pass_parts and (plan.keep_rows or plan.lowered or plan.tap_rows == 1):
        return "stages: pass_parts is for kernels of several rows whose passes load their own (keep_rows=0)"
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
    for name in ("channel_groups", "keep_rows", "load_ahead", "unroll", "weight_ring", "in_flight", "duplicate_aware",
                 "early_release", "producer_late"):  # fmt: skip
        if getattr(config, name) != getattr(default, name):
            return f"same program: {name} has no meaning with at_once; leave it at {getattr(default, name)}"
    if config.stagger:
        return "stages: warpgroups that load everything at once multiply at once (stagger=0)"
    return None


def _ring(plan: WarpgroupPlan) -> str | None:
    config = plan.config
    if config.at_once or config.bulk_weights:
        return None
    rows = plan.most_staged
    if plan.keep_rows:
        whole = rows * config.channel_groups
        if config.ring > whole:
            return f"stages: a ring of {config.ring} slots for {whole} parts builds the same program as fewer"
        least = min(plan.held_parts, whole)
    elif plan.lowered:
        least = plan.window + 1
    else:
        if plan.tap_rows > 1 and plan.group_parts > LANES:  # see OwnRows._give_back_group
            return f"stages: a pass of {plan.window} rows; where none are kept (keep_rows=0) a warp gives back {LANES}"
        early = plan.tap_rows > 1  # slots are given back behind the first kernel row of the next channel group
        least = plan.group_parts * (2 if config.channel_groups > 1 else 1) + (0 if early else 1)
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
    asked, least = plan.config.producer_registers, plan.producer_least
    if asked and (plan.config.at_once or consumer == producer):
        return "same program: producer_registers has no meaning where all threads have as many; leave it at 0"
    if asked and (asked % 8 or asked <= least):
        return f"registers: producer_registers {asked}: allowed: multiples of 8 above {least}, which 0 gives"
    if plan.config.at_once:
        needed = max(plan.accumulators, 4 * plan.loads_at_once) + CONSUMER_OVERHEAD
        return f"registers: about {needed} of a thread needed, {consumer} allowed" if needed > consumer else None
    at_launch = plan.arch.registers_per_sm // plan.config.blocks // plan.config.threads // 8 * 8
    if 4 * plan.config.tile_width + INSTRUCTION_OVERHEAD > at_launch:
        one = 4 * plan.config.tile_width + INSTRUCTION_OVERHEAD
        return f"registers: an instruction needs {one} of a thread, {at_launch} at launch"
    needed = plan.accumulators + 4 * plan.held_fragments + CONSUMER_OVERHEAD
    if needed > consumer:
        return f"registers: about {needed} of a consumer thread needed, {consumer} allowed"
    most = PASS_LOADS if plan.config.pass_parts else LOADS_AT_ONCE
    if plan.copies > most:
        return f"registers: {plan.copies} loads of a producer thread exceed {most}; use channel_groups"
    if plan.x_tiles > 1 and plan.config.threads > 256 and plan.loads_ahead > CONDITIONAL_LOADS:
        return f"registers: {plan.loads_ahead} loads with a condition each spill; use channel_groups or load_ahead=1"
    needed = 4 * plan.loads_ahead + plan.producer_overhead
    if needed > producer:
        return f"registers: about {needed} of a producer thread needed, {producer} allowed"
    return None


def _code(plan: WarpgroupPlan) -> str | None:
    if plan.config.at_once:
        count = plan.fragments * plan.halves * plan.config.tile_rows
        return f"code size: {count} matrix instructions exceed {CODE_LIMIT}" if count > CODE_LIMIT else None
    rows = sum(high - low for low, high in plan.tap_variants(range(plan.tap_rows))[0])
    count = plan.unroll * plan.tap_cols * plan.halves * rows * plan.config.tiles_m
    if count > CODE_LIMIT:
        return f"code size: {count} matrix instructions exceed {CODE_LIMIT}"
    return None


def _index(plan: WarpgroupPlan) -> str | None:
    reason = too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))
    if reason is not None:
        return reason
    if plan.grid[1] > GRID_LIMIT:
        return f"index: {plan.grid[1]} blocks along y exceed {GRID_LIMIT}; split the batch"
    return None


WARPGROUP_RULES: tuple[Callable[[WarpgroupPlan], str | None], ...] = (
    bulk.early, _arch, sizes, _joined, _producers, _start, _pass_parts, _at_once, _accumulator, _padding, _width,
    _images, _half_rows, _rows, _warpgroups, _channels, _split, bulk.bulk, _ring, _shared, _registers, _code, _index,
    bulk.bulk_only,
)  # fmt: skip


def why_not_warpgroup(plan: WarpgroupPlan) -> str | None:
    """The reason why this plan cannot be built, beginning with its kind and a colon; None when it can."""
    for rule in WARPGROUP_RULES:
        reason = rule(plan)
        if reason is not None:
            return reason
    return None

"""Which configurations of the wgmma kernels can be built, and why the others cannot: one reason per rule.

These are the rules that both kernels share; those of one kernel are in :mod:`~subbyte.families.wgmma.pipeline.rules`
and :mod:`~subbyte.families.wgmma.single.rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from subbyte.device.arch import Arch
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.workload import ConvWorkload
from subbyte.workload.coverage import largest_tensor, sum_limit, too_large, whole_codes

WIDTHS = (1, 2, 3, 4, *range(6, 29, 2))
"""Pixels per instruction: N = 8, 16, 24, 32 or a multiple of 16 up to 224 (PTX ISA, wgmma with .s8)."""
CONSUMER_OVERHEAD = 44
"""Registers of a consumer thread for addresses, loop state and unpacked operands, besides accumulators and weights."""
LONE_SPARED = 12
"""The part of these that a consumer with a single tile iteration that unpacks half a fragment at a time does not
need."""
INSTRUCTION_OVERHEAD = 34
"""Registers that the compiler needs besides the sums of one wgmma, out of those that a thread has at launch."""
LOADS_AT_ONCE = 12
"""Most 16-byte loads that a producer thread may have in flight for one stage."""
ITERATION_LOADS = 16
"""The same for a stage with several rows (``stage_per_iteration``)."""
COPIED_LOADS = 24
"""The same if the producer's stages are in flight in shared memory, and only the first ones in registers."""
DIRECT_LOADS = 48
"""The same if they go straight into stage buffers: each is a few instructions of the text."""
CONDITIONAL_LOADS = 13
"""Most 16-byte loads that a producer thread may have in flight if columns are divided among blocks and a block has more
than two warpgroups: of 109 kernels with more loads 102 needed local memory, of 217 others 19."""
CODE_LIMIT = 900
"""Most wgmma instructions in one kernel: beyond it the instruction cache overflows several times over."""
MOST_ROWS = 1 << 14
"""Most output rows of an image as a kernel sees it: a plan lists the tile iterations over all of them."""
GRID_LIMIT = 65535
"""Most blocks of a launch along y (CUDA)."""


def architecture(plan: WgmmaPlan) -> str | None:
    """wgmma exists only on sm_90a."""
    if plan.arch.name != "sm_90a":
        return f"atom: wgmma exists only on sm_90a, not on {plan.arch.name}"
    return None


def operands(plan: WgmmaPlan) -> str | None:
    """Operands must have 4 or 8 bits, in tensors whose words can be indexed."""
    return whole_codes(plan.workload) or too_large(largest_tensor(plan.workload))


def sizes(plan: WgmmaPlan) -> str | None:
    """An image must have few enough rows. Checked before anything that iterates over all of them."""
    return rows_listed(plan.output_size[0])


def rows_listed(rows: int) -> str | None:
    """Why a plan has too many output rows; None when it does not."""
    if rows > MOST_ROWS:
        return f"rows: {rows} output rows exceed the {MOST_ROWS} that this family plans; split the image"
    return None


def accumulator(plan: WgmmaPlan) -> str | None:
    """32 bits must hold every sum, which unpacking multiplies by 16 or 256."""
    return sum_limit(plan.workload, plan.atom.scale_log2)


def width(plan: WgmmaPlan) -> str | None:
    """The width of an instruction must be one of wgmma's and fit the output."""
    config = plan.knobs
    if plan.row_pixels not in WIDTHS:
        groups = f" of {config.image_groups} groups of images" if config.image_groups > 1 else ""
        return f"tile: tile_width {config.tile_width}{groups} is none of {', '.join(map(str, WIDTHS))}"
    if not plan.flat and (config.consumers_n - 1) * config.tile_width >= plan.workload.q:
        covered = f"{config.consumers_n} times {config.tile_width}"
        return f"tile: {covered} columns leave a warpgroup without any of {plan.workload.q}"
    if not plan.flat and config.tile_width > plan.workload.q + 3:
        return f"tile: {config.tile_width} columns are too wide for an output of {plan.workload.q}"
    if config.flatten and not plan.flat_strided:
        return "same program: pixels=flat is for 1 x 1 kernels with a stride and without padding; take rows"
    if plan.x_tiles > 1 and plan.width_covered * plan.cols.pixel_step < plan.left_zeros:
        return f"tile: {plan.width_covered} columns are narrower than the padding"
    return None


def images(plan: WgmmaPlan) -> str | None:
    """Several groups of images can share an instruction only in whole rows with stride 1."""
    config, groups = plan.knobs, plan.workload.batch_groups
    if config.image_groups == 1:
        return None
    if groups < config.image_groups:
        return f"divisibility: {config.image_groups} groups of pixels exceed {groups} groups of 8 images"
    if plan.flat or plan.x_tiles > 1 or plan.cols.pixel_step > 1 or plan.lowered:
        return "tile: several groups of images in one instruction (pixels) need whole rows of stride 1"
    return None


def padding(plan: WgmmaPlan) -> str | None:
    """Every output row must meet an input row."""
    kind = type(plan.config)
    if not _every_row_reached(plan.workload, kind, plan.arch):  # type: ignore[arg-type]  # a class can be hashed
        return "padding: an output row reads only padding"
    if plan.knobs.stagger == 2 and all(plan.tap_variants([tap])[1] for tap in range(plan.tap_rows)):
        return "padding: every kernel row reads only padding in some tile iteration, which stagger=2 does not allow"
    return None


@cache
def _every_row_reached(workload: ConvWorkload, kind: type[WgmmaConfig], arch: Arch) -> bool:
    """Whether some kernel row of every output row is inside the image."""
    plan = WgmmaPlan(workload, kind(), arch)
    (first, last), step, tap_step = plan.row_range, plan.rows.pixel_step, plan.rows.tap_step
    return all(
        any(first <= row * step + tap * tap_step <= last for tap in range(workload.r))
        for row in range(plan.output_size[0])
    )


def row_division(plan: WgmmaPlan) -> str | None:
    """Segments, tile iterations and consumers must divide the rows."""
    config, height = plan.knobs, plan.output_size[0]
    if config.segments > height:
        return f"divisibility: {config.segments} segments of {height} rows"
    most, least = -(-height // config.segments), height // config.segments
    if config.half_rows:
        most = least = plan.segment_end(0)
    if config.tile_rows > most:
        return f"divisibility: tile iterations of {config.tile_rows} rows in segments of {most}"
    if config.consumers_rows > 1 and config.tile_rows * (config.consumers_rows - 1) >= least:
        return f"divisibility: no tile iteration for the last of {config.consumers_rows} consumers in {most} rows"
    if not plan.keep_rows and not all(_divided(plan, rows) for rows in (most, least)):
        last = f"the last of {config.consumers_rows} consumers"
        return f"divisibility: a tile iteration without rows for {last} (row_reuse=1 allows it)"
    return None


def _divided(plan: WgmmaPlan, rows: int) -> bool:
    """Whether every warpgroup has a row in the last tile iteration over this many rows."""
    last = rows % plan.rows_together
    return last == 0 or last > plan.rows_together - plan.knobs.tile_rows


def consumers(plan: WgmmaPlan) -> str | None:
    """Consumers and producers must fit into a block and have work."""
    config = plan.knobs
    if config.consumers + config.producers > 4:
        return f"threads: {config.consumers} consumers and {config.producers} producers leave too few registers"
    if config.consumers_m * plan.consumer_tiles > plan.filter_tiles:
        each = f"{config.m_iterations} iterations of {64 * config.tiles_m} output channels"
        return f"divisibility: {config.consumers_m} warpgroups times {each} exceed {plan.filter_tiles} tiles of 64"
    if config.tiles_m > 2:
        return f"registers: {config.tiles_m} tiles of 64 output channels in a tile iteration: allowed: 1, 2"
    if config.tiles_m > 1 and (config.cluster_split_k > 1 or plan.lowered or config.early_release):
        return "stages: tiles_m=2 goes with none of cluster_split_k, row_reuse=2 and duplicate_aware=none"
    return None


def channel_division(plan: WgmmaPlan) -> str | None:
    """Blocks of input channels must divide evenly, and each technique must have an effect."""
    config, blocks = plan.knobs, plan.channel_blocks
    parts = config.cluster_split_k * config.channel_groups
    if blocks % parts:
        return f"divisibility: cluster_split_k * channel_groups = {parts} does not divide {blocks}"
    if plan.halves == 1 and blocks > 1 and blocks % 2 == 0 and not plan.whole_weights:
        return "divisibility: a part of an odd number of channel blocks would use half of each weight word"
    if plan.steps % config.unroll:
        return f"divisibility: unroll {config.unroll} does not divide {plan.steps} channel steps of a stage"
    if plan.lowered and plan.workload.r == plan.workload.s == 1:
        return "same program: a kernel of one tap has no duplicates; duplicate_aware=full loads the same"
    if plan.lowered and not config.keep_rows:
        return "same program: without the duplicate-aware load no row is kept; row_reuse=1 builds the same"
    if not plan.keep_rows and config.early_release:
        return "same program: without the duplicate-aware load no row is released early; row_reuse=1 builds the same"
    if not config.keep_rows and config.channel_groups == 1:
        return "stages: with all channels in one stage, rows are kept (row_reuse=1)"
    if plan.lowered and config.consumers_rows > 1:
        return "stages: consumers_rows above 1 needs rows that are kept (duplicate_aware=full)"
    if not plan.keep_rows and config.stagger and config.consumers == 2 and (plan.lowered or config.stagger == 1):
        return "stages: consumers that share every stage of the pipeline take no turns (stagger=0)"
    if (
        config.in_flight > max(plan.in_flight, 1) and not plan.lowered
    ):  # the same schedule should exist with a switch off
        return f"same program: a loop body has operands for in_flight={plan.in_flight}, not {config.in_flight}"
    commits = plan.steps * plan.tap_rows * plan.tap_cols
    if not config.keep_rows and config.in_flight > commits:
        return f"stages: in_flight {config.in_flight} exceeds the {commits} instruction groups of a channel group"
    return None


def cluster(plan: WgmmaPlan) -> str | None:
    """Blocks that share the input channels must have one tile iteration each."""
    config = plan.knobs
    if config.cluster_split_k == 1:
        return None
    if config.cluster_split_k not in (2, 4, 8):
        return f"cluster: cluster_split_k {config.cluster_split_k}: allowed: 1, 2, 4, 8"
    if config.consumers_rows > 1 or config.m_iterations > 1 or config.segments * config.tile_rows < plan.output_size[0]:
        return "cluster: blocks that share input channels must have a single tile iteration each"
    if config.tile_rows * plan.row_pixels % config.cluster_split_k:
        pixels = config.tile_rows * plan.row_pixels
        return f"cluster: cluster_split_k {config.cluster_split_k} does not divide {pixels} pixels"
    return None


def shared_memory(plan: WgmmaPlan) -> str | None:
    """A block's data must fit into its shared memory."""
    allowed = plan.arch.shared_per_block
    if plan.shared_bytes > allowed:
        return f"shared memory: {plan.shared_bytes} bytes exceed {allowed} of a block on {plan.arch.name}"
    return None


def registers(plan: WgmmaPlan) -> str | None:
    """Sums, weights and loads in flight must fit into the registers of a thread."""
    consumer, producer = plan.registers
    asked, least = plan.knobs.producer_registers, plan.producer_least
    if asked and consumer == producer:
        return "same program: producer_registers has no meaning where all threads have as many; leave it at 0"
    if asked and (asked % 8 or asked <= least):
        return f"registers: producer_registers {asked}: allowed: multiples of 8 above {least}, which 0 gives"
    at_launch = plan.arch.registers_per_sm // plan.knobs.threads // 8 * 8
    if 4 * plan.knobs.tile_width + INSTRUCTION_OVERHEAD > at_launch:
        one = 4 * plan.knobs.tile_width + INSTRUCTION_OVERHEAD
        return f"registers: an instruction needs {one} of a thread, {at_launch} at launch"
    overhead = CONSUMER_OVERHEAD - (LONE_SPARED if plan.lone_iteration else 0)
    needed = plan.accumulators + plan.held_words + overhead
    if needed > consumer:
        return f"registers: about {needed} of a consumer thread needed, {consumer} allowed"
    most = ITERATION_LOADS if plan.knobs.stage_per_iteration else LOADS_AT_ONCE
    most = DIRECT_LOADS if plan.direct else COPIED_LOADS if plan.knobs.copies_ahead else most
    if plan.copies > most:
        return f"registers: {plan.copies} loads of a producer thread exceed {most}; use channel_groups"
    if plan.x_tiles > 1 and plan.knobs.threads > 256 and plan.loads_ahead > CONDITIONAL_LOADS:
        return f"registers: {plan.loads_ahead} loads with a condition each spill; use channel_groups or load_ahead=1"
    needed = 4 * plan.loads_ahead + plan.producer_overhead
    if needed > producer and not plan.knobs.copies_ahead:
        return f"registers: about {needed} of a producer thread needed, {producer} allowed"
    return None


def code_size(plan: WgmmaPlan) -> str | None:
    """The main loop must fit into the instruction cache."""
    rows = sum(high - low for low, high in plan.tap_variants(range(plan.tap_rows))[0])
    count = plan.unroll * plan.tap_cols * plan.operands * rows * plan.knobs.tiles_m
    if count > CODE_LIMIT:
        return f"code size: {count} matrix instructions exceed {CODE_LIMIT}"
    return None


def index(plan: WgmmaPlan) -> str | None:
    """Words must be countable in 32 bits, and blocks must fit CUDA's grid."""
    reason = too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))
    if reason is not None:
        return reason
    if plan.grid[1] > GRID_LIMIT:
        return f"index: {plan.grid[1]} blocks along y exceed {GRID_LIMIT}; split the batch"
    return None


Rule = Callable[[WgmmaPlan], str | None]
"""A function of the plan that returns the reason as "kind: details", or None."""


OF_THE_LAYER: tuple[Rule, ...] = (architecture, operands, accumulator)
"""Rules that only read the workload and the architecture: checked once for all configurations of a space."""

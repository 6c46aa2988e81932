"""Which kernels of the stem family can be built, and why the others cannot: one reason per rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from subbyte.device.arch import Arch
from subbyte.families.shared.reasons import first_reason
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.strings import PIXEL_CHANNELS, ROWS_TOGETHER, strings
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.coverage import int4_alone, largest_tensor, too_large

MOST_CHANNELS = PIXEL_CHANNELS[-1]
MOST_TAPS = 11
"""Most rows and columns of a kernel: AlexNet's first layer has 11."""
REGISTER_OVERHEAD = 4
"""Registers per thread besides sums, packed words, parameters and input words, at least: the compiler
reports spills."""
HELD_OVERHEAD = 6
"""More of them where weights stay in registers: with fewer the compiler serialized the products."""
CHANNEL_ROWS = 64
"""Rows of an instruction."""
MOST_INSTRUCTIONS = 256
"""Most matrix instructions in a turn's tiles: they are unrolled."""
MOST_GROUPS = 16
"""Most tiles of a turn if they are unrolled."""
GRID_LIMIT = (1 << 31) - 1
DESCRIBED = 1 << 18
"""Bytes of shared memory that a descriptor can address."""


@cache
def hopeless(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no configuration at all can be built; None when some may."""
    w = workload
    if not arch.warpgroups:
        return f"atom: wgmma exists only on sm_90a, not on {arch.name}"
    if w.c > MOST_CHANNELS:
        return f"not covered: {w.c} input channels; stem kernels take 1 to {MOST_CHANNELS}, wgmma kernels any"
    if max(w.r, w.s) > MOST_TAPS:
        return f"not covered: {w.r}x{w.s}: stem kernels have at most {MOST_TAPS} rows and columns"
    if w.dilation > 1:
        return f"not covered: dilation {w.dilation}: the taps of a window share words where they are neighbours"
    form = strings(w).form
    stored = w.batch_groups * BATCH_GROUP * form.rows * form.words
    return int4_alone(w) or _pattern(w) or too_large(max(stored, largest_tensor(w)))


def _pattern(workload: ConvWorkload) -> str | None:
    weights = workload.precision.weights
    return None if weights.group is None else f"operands: {weights} have zeros to skip, stem kernels multiply them"


def _layer(plan: StemPlan) -> str | None:
    return hopeless(plan.workload, plan.arch)


def _index(plan: StemPlan) -> str | None:
    if plan.blocks > GRID_LIMIT:
        return f"grid: {plan.blocks} blocks exceed {GRID_LIMIT}; split the batch"
    return too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))


def _tiles(plan: StemPlan) -> str | None:
    config, w = plan.config, plan.workload
    if config.turn_rows not in (1, 2, 4, 8):
        return "divisibility: turn_rows is 1, 2, 4 or 8"
    if plan.row_groups * config.turn_rows > ceil_div(w.p, ROWS_TOGETHER) * ROWS_TOGETHER:
        return f"divisibility: turns of {config.turn_rows} rows reach beyond the rows that are stored"
    if config.together == 3 or config.turn_rows % config.together:
        return f"divisibility: {config.together} rows together do not divide the {config.turn_rows} of a turn"
    if max(config.buffers, 1 + config.ahead) > config.turns:
        return f"divisibility: buffers and reading ahead are for several turns, not {config.turns}"
    if config.turn_rows >= 2 * w.p:
        return f"divisibility: tiles of {config.turn_rows} rows are twice the {w.p} there are"
    if config.filters not in (32, 64, 96, 128):
        return f"divisibility: {config.filters} output channels of a block; allowed: 32, 64, 96, 128"
    if w.padded_filters % config.filters:
        return f"divisibility: {config.filters} output channels of a block do not divide {w.padded_filters}"
    if config.turns > plan.all_turns:
        return f"divisibility: {config.turns} turns of the {plan.all_turns} there are"
    if (config.segments - 1) * plan.segment_units >= plan.strings.units:
        return f"divisibility: {config.segments} segments leave one without any of {plan.strings.units} units of a row"
    if (config.consumers - 1) * config.turns >= plan.all_turns:
        return f"divisibility: {config.consumers} warpgroups leave one without any of {plan.all_turns} turns"
    return None


def _held(plan: StemPlan) -> str | None:
    config = plan.config
    if config.wide and (not config.held_weights or plan.segment_units % 2 or plan.strings.units % plan.segment_units):
        return "tile: wide: instructions of 16 pixels need held_weights and segments of an even number of units"
    if config.streamed and not config.held_weights:
        return "output: streamed: results of kernels with held_weights"
    if not config.held_weights:
        return None
    if plan.config.filters != CHANNEL_ROWS:
        return f"tile: held_weights: a warpgroup's rows are {CHANNEL_ROWS} output channels, not {plan.config.filters}"
    if plan.strings.phases > 2:
        return (
            f"tile: held_weights: the weights of {plan.strings.phases} phases take turns, two at most stay in registers"
        )
    return None


def _code(plan: StemPlan) -> str | None:
    count = plan.config.turn_rows * plan.strings.steps
    return f"code size: {count} matrix instructions exceed {MOST_INSTRUCTIONS}" if count > MOST_INSTRUCTIONS else None


def _behind(plan: StemPlan) -> str | None:
    if not plan.config.behind:
        return None
    if plan.strings.units % plan.segment_units:
        return f"divisibility: behind: {plan.config.segments} segments of {plan.strings.units} units are not alike"
    if not 2 <= plan.groups <= MOST_GROUPS:
        return f"code size: behind: {plan.groups} tiles of a turn one behind the other; 2 to {MOST_GROUPS}"
    return None


def registers_allowed(plan: StemPlan) -> int:
    """Registers per thread that are allowed."""
    resident = plan.config.threads * plan.config.min_blocks
    return min(plan.arch.registers_per_thread, plan.arch.registers_per_sm // resident // 8 * 8)


def registers_needed(plan: StemPlan) -> int:
    """Approximate registers per thread."""
    config, lay = plan.config, plan.strings
    parameters = config.filters // 2 if plan.begun else 24
    if config.held_weights:
        parameters = 4 * lay.steps * lay.phases + (4 if plan.begun else 6) + HELD_OVERHEAD
    read = plan.words_read
    written = lay.length
    multiplied = (1 + plan.behind) * config.together * (plan.row_sums + config.filters // 16)
    ahead = read if config.ahead else 0
    return REGISTER_OVERHEAD + parameters + max(multiplied + ahead, read + written)


def _registers(plan: StemPlan) -> str | None:
    needed, allowed = registers_needed(plan), registers_allowed(plan)
    return f"registers: about {needed} of a thread needed, {allowed} allowed" if needed > allowed else None


def _threads(plan: StemPlan) -> str | None:
    resident = plan.config.threads * plan.config.min_blocks
    most = plan.arch.threads_per_sm
    return f"threads: {resident} of a multiprocessor exceed {most}" if resident > most else None


def _shared(plan: StemPlan) -> str | None:
    most = plan.arch.shared_per_block
    if plan.shared_bytes > most:
        return f"shared memory: {plan.shared_bytes} bytes exceed the {most} of a block on {plan.arch.name}"
    together = plan.config.min_blocks * (plan.shared_bytes + (plan.arch.shared_per_sm - plan.arch.shared_per_block))
    if plan.config.min_blocks > 1 and together > plan.arch.shared_per_sm:
        return f"shared memory: {together} bytes of {plan.config.min_blocks} blocks exceed {plan.arch.shared_per_sm}"
    return None


RULES: tuple[Callable[[StemPlan], str | None], ...] = (
    _layer, _tiles, _index, _held, _code, _behind, _threads, _registers, _shared,
)  # fmt: skip


def why_not(plan: StemPlan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    return first_reason(RULES, plan)

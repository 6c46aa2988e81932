"""Which configurations can be built, and why the others cannot: one reason per rule.

A rule is a function of the plan that returns the reason in words, or None. ``why_not`` returns the first reason that
applies; the order goes from the request itself to the limits of the hardware.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from subbyte.device.arch import Arch
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.coverage import largest_tensor, sum_limit, too_large, warp_limit, whole_codes

REGISTER_OVERHEAD = 40
"""Registers for addresses, loop state and temporaries, besides accumulators and fragments."""
HOISTED_ADDRESSES = 40
"""Registers that the compiler may fill with addresses computed before the loop: just below the hardware's limit it does
so, and then spills other values."""
UNROLLED_LIMIT = 1600
"""Most matrix instructions in one unrolled loop body: beyond it the instruction cache overflows several times over."""
GRID_LIMIT = 65_535
"""Most blocks along the second grid dimension."""
SPILLS = Path(__file__).with_name("spills.json")


def _operands(plan: Plan) -> str | None:
    return whole_codes(plan.workload)


def _sizes(plan: Plan) -> str | None:
    return too_large(largest_tensor(plan.workload))


def _coverage(plan: Plan) -> str | None:
    reason = warp_limit(plan.workload)
    return f"not covered: {reason}" if reason else None


def _atom(plan: Plan) -> str | None:
    if plan.bytes_in and plan.config.atom not in ("auto", "s8.m16n8k32"):
        return f"atom: {plan.config.atom} multiplies values of 4 bits; of 8 bits leave it at auto"
    if plan.bytes_in and plan.config.atom == "s8.m16n8k32" != plan.atom.name:
        return f"atom: this layer has {plan.atom.name} on {plan.arch.name}; leave it at auto"
    if int(plan.arch.name[3:5]) < plan.atom.minimum_sm:
        return f"atom: {plan.atom.name} needs sm_{plan.atom.minimum_sm} or later, not {plan.arch.name}"
    if plan.stored != "s4" and not plan.atom.unpacked:
        return f"atom: {plan.atom.name} multiplies int4 values, so they cannot be stored as bytes"
    return None


def _accumulator(plan: Plan) -> str | None:
    return sum_limit(plan.workload, plan.atom.scale_log2)


def _index(plan: Plan) -> str | None:
    return too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))


def _columns(plan: Plan) -> str | None:
    channels = plan.filters
    if plan.config.warp_col_tiles % plan.tiles_together:
        return "divisibility: 4-bit weights with 8-bit activations need two column tiles: warp_col_tiles 2 or more"
    if plan.config.warp_col_tiles % 4 and plan.config.warp_col_tiles not in (1, 2):
        return (
            f"divisibility: warp_col_tiles {plan.config.warp_col_tiles} is not 1, 2 or a multiple of 4: words "
            "are packed from four tiles together"
        )
    if not plan.config.register_packing and plan.column_tiles % 4 and plan.column_tiles not in (1, 2):
        return (
            f"divisibility: without register_packing a block's {plan.column_tiles} column tiles must be 1, 2 or a "
            "multiple of 4"
        )
    if channels % plan.config.columns:
        return (
            f"divisibility: blocks of {plan.config.columns} output channels do not divide {channels}; "
            f"8 * blk_col_warps * warp_col_tiles may be {_divisors(channels, 8)}"
        )
    return None


def _chunk(plan: Plan) -> str | None:
    blocks, config = plan.workload.channel_blocks, plan.config
    if blocks % config.chunk:
        return (
            f"divisibility: chunk {config.chunk} does not divide {blocks} blocks of "
            f"{plan.workload.precision.activations.block} input channels; "
            f"chunk may be {_divisors(blocks)}"
        )
    turn = config.split_channels * plan.atom.blocks * config.unroll
    if config.chunk % turn:
        return (
            f"divisibility: chunk {config.chunk} is no multiple of split_channels * unroll * channel blocks per "
            f"instruction = {turn}"
        )
    return None


def _grid(plan: Plan) -> str | None:
    if plan.column_blocks > GRID_LIMIT:
        return f"grid: {plan.column_blocks} blocks along the output channels exceed {GRID_LIMIT}"
    return None


def _divisors(number: int, multiple_of: int = 1) -> str:
    return ", ".join(str(d) for d in range(multiple_of, number + 1, multiple_of) if number % d == 0)


def _tile(plan: Plan) -> str | None:
    config = plan.config
    if config.tile_height and config.pixels % config.tile_height:
        return f"divisibility: tile_height {config.tile_height} does not divide {config.pixels} pixels"
    width = plan.tile[1]
    if width % config.warp_row_tiles and config.warp_row_tiles % width:
        return f"divisibility: {config.warp_row_tiles} pixels of a warp are no rectangle in rows of {width}"
    return None


def _stages(plan: Plan) -> str | None:
    if plan.config.stages < 2:
        return f"stages: {plan.config.stages}; the pipeline needs at least 2"
    return None


def _threads(plan: Plan) -> str | None:
    if plan.config.threads > plan.arch.threads_per_block:
        return f"threads: {plan.config.threads} of a block exceed {plan.arch.threads_per_block}"
    return None


def _shared(plan: Plan) -> str | None:
    if plan.shared_bytes > plan.arch.shared_per_block:
        return (
            f"shared memory: {plan.shared_bytes} bytes exceed the {plan.arch.shared_per_block} of a block on "
            f"{plan.arch.name}"
        )
    return None


def _registers(plan: Plan) -> str | None:
    needed, limit = registers_needed(plan), registers_allowed(plan)
    if needed > limit:
        return f"registers: about {needed} per thread needed, {limit} allowed with {plan.config.threads} threads"
    if plan.config.key in seen_to_spill(plan.workload.spec, plan.arch.name):
        return "registers: the compiler was seen to spill this configuration to local memory"
    return None


@cache
def seen_to_spill(spec: str, arch: str) -> frozenset[str]:
    """Keys of the configurations that fit according to the estimate, but for which the compiler used local memory.

    Written by ``tools/resource_table.py`` from compiled kernels.
    """
    found = json.loads(SPILLS.read_text(encoding="utf-8")) if SPILLS.is_file() else {}
    return frozenset(found.get(spec, {}).get(arch, ()))


def _unrolled(plan: Plan) -> str | None:
    config = plan.config
    count = plan.taps_staged * plan.pairs * config.warp_col_tiles * config.unroll
    if count > UNROLLED_LIMIT:
        return f"code size: {count} matrix instructions in one loop body exceed {UNROLLED_LIMIT}"
    return None


RULES: tuple[Callable[[Plan], str | None], ...] = (
    _operands, _sizes, _coverage, _atom, _accumulator, _columns, _grid, _chunk, _tile, _index, _stages, _threads,
    _shared, _registers, _unrolled,
)  # fmt: skip


def why_not(plan: Plan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    for rule in RULES:
        reason = rule(plan)
        if reason is not None:
            return reason
    return None


def hopeless(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no configuration of the family at all can be built; None when some may. Cheap."""
    plan = Plan(workload, MmaConfig(), arch)
    return _operands(plan) or _sizes(plan) or _coverage(plan) or _accumulator(plan)


def registers_needed(plan: Plan) -> int:
    """An estimate of the registers of one thread. Where it was too low, :func:`seen_to_spill` lists the
    configuration."""
    atom = plan.atom
    weights = plan.config.warp_col_tiles * atom.registers + plan.vector
    return plan.accumulators + live_fragments(plan) * atom.registers + weights + REGISTER_OVERHEAD


def registers_allowed(plan: Plan) -> int:
    """Registers a thread may use so that a block, or ``min_blocks`` of them, fit a multiprocessor."""
    resident = plan.config.threads * max(plan.config.min_blocks, 1)
    free = plan.arch.registers_per_thread - HOISTED_ADDRESSES
    return min(free, plan.arch.registers_per_sm // resident // 8 * 8)


def live_fragments(plan: Plan) -> int:
    """Activation fragments a warp holds at the same time: with full sharing, those of rows that are still needed."""
    if plan.config.duplicate_aware != "full":
        return plan.pairs * plan.atom.pixels
    rows = range(plan.rows_staged)
    wanted = [{plan.warp_rows.position(row, r) for row in range(plan.warp_tile[0])} for r in rows]
    live = 0
    for r in rows:
        loaded = set().union(*wanted[: r + 1])
        needed = set().union(*wanted[r:])
        live = max(live, len(loaded & needed))
    return live * plan.warp_cols.count

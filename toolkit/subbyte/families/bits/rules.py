"""Whether a plan can be built, and why not: rules, checked in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from subbyte.device.arch import Arch
from subbyte.families.bits.config import PAIRS
from subbyte.families.bits.geometry import WORKING_REGISTERS
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring import rules as ring
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.tiles import PAIR_CHANNELS, TILE_PIXELS
from subbyte.families.shared.bit_rules import bit_operands, compared_output, compared_range
from subbyte.families.shared.reasons import first_reason
from subbyte.numerics.fusion import SEPARATOR
from subbyte.numerics.reference import accumulator_bound
from subbyte.numerics.residual import GROUP_CHANNELS, LARGEST, NARROW, WIDE
from subbyte.workload.conv import ConvWorkload, ceil_div
from subbyte.workload.operand import SIGNED, UNSIGNED
from subbyte.workload.precision import SUMS

WIDEST_PIECE = 0x3FFF * 16
"""Largest byte offset that a descriptor can hold (PTX ISA, matrix descriptor: 14 bits of 16 bytes)."""
MOST_STEPS = 256
"""Most instructions per tile: they are unrolled."""

Rule = Callable[[BitsPlan], str | None]


def precision(workload: ConvWorkload) -> str | None:
    """Both operands must be bit planes; int4 has its own, faster kernels."""
    return bit_operands(workload, "bits", "wgmma")


def multiplies_whole(workload: ConvWorkload) -> bool:
    """Whether the codes of activations are the bytes that an instruction reads (those of offset and bipolar types are
    not), weights fit into bytes, and padding is 0."""
    weights, pixels = workload.precision.weights, workload.precision.activations
    codes = pixels.bits == 8 and pixels.encoding in (SIGNED, UNSIGNED) and not pixels.zero_point
    return codes and weights.least >= -128 and weights.largest <= 127 and workload.precision.pad_value == 0


def architecture(arch: Arch) -> str | None:
    """The architecture must have one-bit warpgroup products."""
    return None if arch.warpgroups else f"not covered: one-bit wgmma exists on sm_90a, not on {arch.name}"


def output(plan: BitsPlan) -> str | None:
    """Codes must count thresholds."""
    return compared_output(plan.output, plan.view.precision.output)


def sizes(plan: BitsPlan) -> str | None:
    """Knobs must fit the layer."""
    w, config = plan.view, plan.config
    if config.tile_rows > w.p:
        return f"tiles: {config.tile_rows} rows of a layer with {w.p}"
    if config.channels not in (32, 64, 128, 256):
        return f"tiles: {config.channels} output channels; allowed: 32, 64, 128, 256"
    if config.channels // 2 >= -(-w.k // 32) * 32:
        return f"tiles: {config.channels} output channels of a layer with {w.k}"
    if config.run_on and w.stride > 1:
        return "tiles: run_on needs stride 1: pixels of two rows are not equally far apart"
    if config.run_on and w.q > plan.pitch:
        return f"tiles: run_on takes {plan.pitch} pixels from row to row, an output row has {w.q}: it is padded by more"
    if config.row_parts > 1 and (reason := _parts_of_rows(plan)):
        return reason
    if config.tile_rows % config.turn_rows or (config.turn_rows > 1 and config.run_on):
        return f"tiles: {config.turn_rows} rows of a turn divide those of a block ({config.tile_rows}), without run_on"
    if config.consumers > plan.turns:
        return f"tiles: {config.consumers} warpgroups for {plan.turns} turns"
    if config.counted and not plan.form.per_pixel:
        return "same program: no sum needs the activations' bits counted"
    if config.counted and config.run_on:
        return "tiles: windows are counted where tiles end with an output row, without run_on"
    at_once = config.stagger
    if at_once and (at_once == config.consumers or config.consumers % at_once):
        return f"tiles: {at_once} of {config.consumers} warpgroups at a time; say a part of them, or 0 for all"
    if config.whole_values and not multiplies_whole(plan.workload):
        types = plan.workload.precision
        return f"layout: {types.weights} x {types.activations} are not multiplied whole; activations of 8 bits are"
    if config.paired_rows and min(w.c, w.k) > PAIR_CHANNELS:
        return f"layout: {PAIRS} holds at most {PAIR_CHANNELS} channels, not {min(w.c, w.k)}"
    return _paired_rows(plan) if plan.paired_rows else None


def _parts_of_rows(plan: BitsPlan) -> str | None:
    """Rules for blocks that share a row."""
    config = plan.config
    if config.run_on or config.counted:
        return "tiles: parts of rows (row_parts) go neither with run_on nor with counted"
    if config.row_parts * plan.row_tiles - ceil_div(plan.view.q, TILE_PIXELS) >= plan.row_tiles:
        return f"tiles: {config.row_parts} parts of rows with {plan.view.q} outputs, in tiles of {TILE_PIXELS}"
    starts = (
        part * plan.row_tiles * TILE_PIXELS * plan.view.stride - plan.view.pad for part in range(config.row_parts)
    )
    if any(start >= plan.view.w or start + plan.pitch <= 0 for start in starts):
        return f"tiles: of {config.row_parts} parts of rows one reads padding alone, no pixel of the image"
    return None


def _paired_rows(plan: BitsPlan) -> str | None:
    """Rules for rows that are stored in pairs."""
    w = plan.view
    if plan.config.run_on or w.dilation > 1:
        return f"layout: tiles of {PAIRS} end with an output row and have no dilation"
    if plan.form.fill and w.h % 2:
        return f"layout: the row below an odd last one is all zeros in {PAIRS}, the padding is not"
    return None


def fusion(plan: BitsPlan) -> str | None:
    """What can be fused between sums and output."""
    fused, w = plan.fusion, plan.view
    if not (fused.sums or fused.pool > 1):
        return None
    if plan.output.partition(SEPARATOR)[0] == SUMS:
        return "fusion: raw sums are neither pooled nor added to; take the output type"
    if fused.pool > 1 and fused.sums:
        return "fusion: a kernel pools, or adds and keeps sums, not both"
    largest = max(fused.pool, fused.residual_pool, fused.keep_pool)
    if largest > 2:
        return f"fusion: windows of {largest}; kernels pool 2 x 2"
    if max(fused.residual_pool, fused.keep_pool) > 1 and plan.flattened:
        return "fusion: pixels of a 1x1 layer have no neighbours in this kernel; pool in the layer before"
    if max(fused.pool, fused.keep_pool) > 1 and (plan.config.turn_rows != 2 or min(w.p, w.q) < 2):
        return "fusion: a warpgroup pools two rows of a turn: turn_rows=2, and at least 2 x 2 outputs"
    if fused.residual % GROUP_CHANNELS or fused.residual > w.k:
        return f"fusion: {fused.residual} channels are added to {w.k}: a multiple of {GROUP_CHANNELS}, at most as many"
    return _added_and_kept(plan) if fused.sums else None


def _added_and_kept(plan: BitsPlan) -> str | None:
    """Sums must fit the bits in which they are kept, and their differences from thresholds must fit 32."""
    fused, bound = plan.fusion, accumulator_bound(plan.workload)
    if fused.keep and fused.keep_bits == NARROW and bound > LARGEST[NARROW]:
        return f"fusion: sums up to {bound} do not fit 16 bits; keep32 keeps 32"
    reach = max(map(abs, plan.span))
    return f"fusion: counts up to {reach} and what is added may exceed 32 bits" if reach > LARGEST[WIDE] else None


def compared(plan: BitsPlan) -> str | None:
    """The part that varies with the pixel must fit 32 bits for the comparison; everything else is computed modulo
    2^32."""
    by_value = plan.output != SUMS and not plan.by_line and not plan.fusion.sums
    return compared_range(*plan.span) if by_value else None


def instruction(plan: BitsPlan) -> str | None:
    """The instruction must exist, and descriptors must reach."""
    if not plan.n:
        return f"columns: {plan.filter_columns} and those of ones are more than the 256 of an instruction"
    if plan.config.doubled and plan.planes == 1:
        return "columns: doubled needs several planes of activations"
    if plan.steps * plan.planes > MOST_STEPS:
        return f"columns: {plan.steps * plan.planes} instructions of a tile; at most {MOST_STEPS} are written out"
    distances = [plan.step(step)[1] for step in range(plan.steps)]
    if max(*distances, plan.view.stride * plan.pixel_bytes) > WIDEST_PIECE:
        return "columns: pixels lie further apart than a descriptor counts"
    if min(distances) < 0:
        return "columns: rows so narrow that a filter's row ends behind the beginning of the next; take run_on=0"
    return None


def registers(plan: BitsPlan) -> str | None:
    """The counts of a thread must fit its registers."""
    most = plan.granted - WORKING_REGISTERS - plan.held_residual - plan.kept_windows
    held = plan.counts
    return None if held <= most else f"registers: {held} counts of a thread; at most {most}"


def shared_memory(plan: BitsPlan) -> str | None:
    """Rows, weights and table of a block must fit shared memory."""
    most = plan.arch.shared_per_block
    return None if plan.shared_bytes <= most else f"shared: {plan.shared_bytes} bytes of a block; at most {most}"


RULES: tuple[Rule, ...] = (output, sizes, fusion, compared, instruction, registers, shared_memory)


@cache
def hopeless(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no configuration at all can be built; None when some may."""
    return precision(workload) or architecture(arch)


def why_not(plan: BitsPlan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    reason = hopeless(plan.workload, plan.arch)
    if isinstance(plan, RingPlan):
        return reason or ring.why_not(plan)
    return reason or first_reason(RULES, plan)
